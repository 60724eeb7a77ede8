"""Pass 1b, rewrite: matrix products with a long k are split, so that there is work for every thread.

(m, k) @ (k, n) becomes P products over k / P, a batch of them, and a sum over P. Where no good P divides k,
both operands are padded with zeros, which costs no kernel. Split are products with few blocks of C; and, on
software adapters, thin ones that would walk down too many of B's long rows at once. Numbers of nodes stay.
"""

from __future__ import annotations

import math

from .. import dtypes
from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from ..runtime.profile import DeviceProfile
from .axes import factors

__all__ = ["split_products"]

THIN_ROWS = 8
STREAMS = 32  # rows of B that are walked along at once: processors fetch ahead in so many places, not in more
LONG_ROW = 1024  # elements from which a row of B is pages away from the next
LARGE = 2**21  # elements of B from which it comes from far away


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
    count = math.prod(shape[:-2]) if not one_b else 1
    step = math.gcd(_stretch(graph, a, len(a_shape) - 1), _stretch(graph, b, len(b_shape) - 2))
    few = _few(profile, count, m, n, k)
    if few > 1:
        chunk = _chunk(k, few, step)
    elif profile.kind == "software" and m <= THIN_ROWS <= n and n >= LONG_ROW and k * n >= LARGE:
        along_columns = _along(graph, b) == len(b_shape) - 1
        chunk = _chunk(k, -(-k // STREAMS), step) if along_columns else k
    else:
        return
    if chunk < k:
        _in_parts(graph, number, m if one_b else 0, k, n, chunk)


def _few(profile: DeviceProfile, count: int, m: int, n: int, k: int) -> int:
    """Into how many parts a product with few blocks of C is split; 1: not at all."""
    if profile.kind == "software":
        blocks = count * -(-m // 16) * -(-n // 32)
        return min(16 // blocks, k // 512) if blocks < 8 and blocks * k >= 8192 else 1
    blocks = count * -(-m // 64) * -(-n // 64)
    return min(64 // blocks, k // 512) if blocks < 32 and k >= 4096 else 1


def _chunk(k: int, parts: int, step: int) -> int:
    """How much of k a part takes: whole groups of four if it can be.

    `step` is the length of the stretches that an operand's k was merged from (0: none): a part is some of
    them, or a part of one, so that places in it are found without divisions.
    """
    unit = step or 1
    wanted = -(-k // parts)
    fits = [
        size
        for size in range(wanted, max(1, wanted // 2), -1)
        if k % size == 0 and (size % unit == 0 or unit % size == 0)
    ]
    best = next((size for size in fits if size % 4 == 0), fits[0] if fits else 0)
    if best:
        return best
    return min(k, -(-wanted // math.lcm(unit, 4)) * math.lcm(unit, 4))


def _stretch(graph: Snapshot, number: int, axis: int) -> int:
    """The last of the axes that were merged into one by a reshape; 0: it was not merged."""
    while True:
        sig, inputs = graph.sigs[number], graph.inputs[number]
        if sig.kind == "cast":
            number = inputs[0]
        elif sig.kind == "move" and sig.op.name == "permute":
            number, axis = inputs[0], sig.attributes[0][axis]
        elif sig.kind == "move" and sig.op.name == "reshape":
            before = graph.sigs[inputs[0]].shape
            for old, new in factors(before, sig.shape):
                if axis in new:
                    merged = [before[each] for each in old if before[each] != 1]
                    return merged[-1] if len(merged) > 1 else 0
            return 0
        else:
            return 0


def _along(graph: Snapshot, number: int) -> int:
    """The axis of a value along which it lies in memory; -1: not known."""
    sig, inputs = graph.sigs[number], graph.inputs[number]
    if sig.kind == "cast":
        return _along(graph, inputs[0])
    if sig.kind == "move" and sig.op.name == "permute":
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
        sides = tuple((0, more if at == axis else 0) for at in range(len(shape)))
        longer = tuple(side + after for side, (_, after) in zip(shape, sides, strict=True))
        return move("pad", of, longer, sides, _zero(graph, of))

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


def _zero(graph: Snapshot, like: int) -> int:
    """The number 0 of a value's dtype, as a node: scalars of a graph belong to its user."""
    sig = graph.sigs[like]
    first = graph.add(signature(TABLE["iota"], (1,), dtypes.int32, sig.device), ())
    single = graph.add(signature(TABLE["reshape"], (), dtypes.int32, sig.device, ((),)), (first,))
    return graph.add(signature(TABLE["cast"], (), sig.dtype, sig.device, (sig.dtype,)), (single,))
