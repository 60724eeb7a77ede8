"""Matrix products with a long k are split, so that there is work for every thread.

(m, k) @ (k, n) becomes P products over k / P, a batch of them, and a sum over P. Where no good P divides k,
both operands are padded with zeros, which costs no kernel. Products with few blocks of C are split; and, on
software adapters, thin ones that would read too many of B's long rows at once. Node ids stay.
"""

from __future__ import annotations

import math

from ..device_profile import DeviceProfile
from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from .axes import factors
from .plan import MAX_THIN_ROWS

MAX_STREAMS = 32  # rows of B that are read at once: processors prefetch that many streams, not more
MIN_LONG_ROW = 1024  # elements from which a row of B is pages away from the next
MIN_FAR_SIZE = 2**21  # elements of B from which it is not in the cache


def split_products(graph: Snapshot, profile: DeviceProfile) -> None:
    """Rewrite the products of a graph in place."""
    for number in graph.order():
        if graph.sigs[number].op.name == "matmul" and graph.sigs[number].size:
            _split(graph, number, profile)


def _split(graph: Snapshot, number: int, profile: DeviceProfile) -> None:
    a, b = graph.inputs[number]
    a_shape, b_shape, shape = (graph.sigs[each].shape for each in (a, b, number))
    k, n = b_shape[-2:]
    one_b = math.prod(b_shape[:-2]) == 1  # then batches are more rows
    m = math.prod(shape[:-1]) if one_b else shape[-2]
    count = 1 if one_b else math.prod(shape[:-2])
    merged = _merged(graph, a, len(a_shape) - 1) | _merged(graph, b, len(b_shape) - 2)
    parts = _few(profile, count, m, n, k)
    if parts <= 1 and m <= MAX_THIN_ROWS and _is_far(graph, b, profile):
        parts = -(-k // MAX_STREAMS)
    chunk = _chunk(k, parts, merged) if parts > 1 else k
    if chunk < k:
        _in_parts(graph, number, m if one_b else 0, k, n, chunk)


def _few(profile: DeviceProfile, count: int, m: int, n: int, k: int) -> int:
    """Into how many parts a product with few blocks of C is split; 1 or less: not at all."""
    if profile.kind == "software":
        blocks = count * -(-m // 16) * -(-n // 32)
        return min(16 // blocks, k // 512) if blocks < 8 and blocks * k >= 8192 else 1
    blocks = count * -(-m // 64) * -(-n // 64)
    return min(64 // blocks, k // 512) if blocks < 32 and k >= 4096 else 1


def _is_far(graph: Snapshot, b: int, profile: DeviceProfile) -> bool:
    """Whether a software adapter would read a B that is not in the cache across its rows."""
    sig = graph.sigs[b]
    k, n = sig.shape[-2:]
    large = profile.kind == "software" and n >= MIN_LONG_ROW and k * n >= MIN_FAR_SIZE
    return large and _along(graph, b) == len(sig.shape) - 1


def _chunk(k: int, parts: int, merged: set[int]) -> int:
    """How much of k a part takes: a divisor, a multiple of four if possible; k itself: no parts.

    `merged` are the lengths of the stretches of k that an operand was merged from: a part is some of them, or
    a part of one, so that indices in it need no divisions.
    """
    wanted = -(-k // parts)
    found = [
        each
        for low in range(1, math.isqrt(k) + 1)
        for each in ({low, k // low} if k % low == 0 else ())
        if wanted // 4 < each <= wanted
        and all(each % stretch == 0 or stretch % each == 0 for stretch in merged)
    ]
    if found:
        return max(found, key=lambda each: (each % 4 == 0, each))
    return k if merged else -(-wanted // 4) * 4


def _merged(graph: Snapshot, number: int, axis: int) -> set[int]:
    """The lengths of the stretches of an axis that a reshape made of several: of one, of two, …"""
    while True:
        sig, inputs = graph.sigs[number], graph.inputs[number]
        if sig.kind == "cast":
            number = inputs[0]
        elif sig.op.name == "permute":
            number, axis = inputs[0], sig.attributes[0][axis]
        elif sig.op.name == "reshape":
            before = graph.sigs[inputs[0]].shape
            (old,) = [old for old, new in factors(before, sig.shape) if axis in new]
            sizes = [before[each] for each in old if before[each] != 1]
            return {math.prod(sizes[at:]) for at in range(1, len(sizes))}
        else:
            return set()


def _along(graph: Snapshot, number: int) -> int:
    """The axis along which a value is contiguous in memory; -1: not known."""
    sig, inputs = graph.sigs[number], graph.inputs[number]
    if sig.kind == "cast":
        return _along(graph, inputs[0])
    if sig.op.name == "permute":
        inner = _along(graph, inputs[0])
        return sig.attributes[0].index(inner) if inner >= 0 else -1
    if sig.kind == "move" and sig.op.name not in ("slice", "expand", "reshape"):
        return -1
    return len(sig.shape) - 1


def _in_parts(graph: Snapshot, number: int, lines: int, k: int, n: int, chunk: int) -> None:
    """The product as a sum of products. `lines`: all rows of A, where there is one B for them; else 0."""
    sig = graph.sigs[number]
    a, b = graph.inputs[number]

    def move(op: str, of: int, shape: tuple[int, ...], attribute: object, *others: int) -> int:
        made = signature(TABLE[op], shape, graph.sigs[of].dtype, sig.device, (attribute,))
        return graph.add(made, (of, *others))

    def reshape(of: int, *shape: int) -> int:
        return of if graph.sigs[of].shape == shape else move("reshape", of, shape, shape)

    def pad(of: int, axis: int, more: int) -> int:
        if not more:
            return of
        shape = graph.sigs[of].shape
        widths = tuple((0, more if at == axis else 0) for at in range(len(shape)))
        longer = tuple(size + after for size, (_, after) in zip(shape, widths, strict=True))
        return move("pad", of, longer, widths, graph.number(0, graph.sigs[of].dtype, sig.device))

    if lines:
        a, b = reshape(a, lines, k), reshape(b, k, n)
    parts = -(-k // chunk)
    a, b = (
        pad(a, len(graph.sigs[a].shape) - 1, parts * chunk - k),
        pad(b, len(graph.sigs[b].shape) - 2, parts * chunk - k),
    )
    *before, rows, _ = graph.sigs[a].shape
    rank = len(before)
    a = reshape(a, *before, rows, parts, chunk)
    a = move("permute", a, (*before, parts, rows, chunk), (*range(rank), rank + 1, rank, rank + 2))
    b = reshape(b, *graph.sigs[b].shape[:-2], parts, chunk, n)
    leading = () if lines else sig.shape[:-2]
    whole = (*leading, parts, rows, n)
    products = graph.add(signature(sig.op, whole, sig.dtype, sig.device), (a, b))
    total = signature(TABLE["sum"], (*leading, rows, n), sig.dtype, sig.device, ((len(leading),),))
    if total.shape == sig.shape:
        graph.sigs[number], graph.inputs[number] = total, (products,)
    else:
        graph.inputs[number] = (graph.add(total, (products,)),)
        graph.sigs[number] = signature(TABLE["reshape"], sig.shape, sig.dtype, sig.device, (sig.shape,))
