"""Legalisation: ops that have no kernel become ops that have one. Node ids stay.

Sorts take uint32 keys, and know how many bits of them are used; scatters and gathers take 32-bit indices,
wider ones are clamped. Scans of packed dtypes go through 32 bits, since a thread may only store whole words;
so do scatters of many updates. Sums and products of 16-bit floats are computed in float32 and rounded once,
and so is attention; matrix products of integers and of 64-bit types become a multiplication and a sum.
"""

from __future__ import annotations

from .. import dtypes
from ..device_profile import PORTABLE
from ..dtypes import DType
from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE

MAX_SHARED_UPDATES = 1024  # of rows that share words: the kernels for many updates write whole words


def legalise(graph: Snapshot) -> None:
    """Rewrite ops that have no kernel on GPUs, in place."""
    for number in graph.order():
        sig = graph.sigs[number]
        half = sig.dtype.is_half
        if sig.kind == "scan" and sig.dtype.is_packed:
            _through(graph, number, _wide(sig.dtype))
        elif sig.kind == "reduce" and half and sig.op.name in ("sum", "prod"):
            _through(graph, number, dtypes.float32)
        elif sig.kind == "sort":
            (keys,) = graph.inputs[number]
            bits = (graph.sigs[keys].dtype.bits,)
            graph.sigs[number] = signature(sig.op, sig.shape, sig.dtype, sig.device, bits)
            graph.inputs[number] = (cast(graph, keys, dtypes.uint32),)
        elif sig.kind == "scatter":
            base, index, updates = graph.inputs[number]
            graph.inputs[number] = (base, _int32_indices(graph, index, sig.shape[0]), updates)
            shared = sig.dtype.is_packed and sig.shape[1] % 4 != 0  # words hold elements of two rows
            if sig.op.name == "scatter_add" and half:
                _through(graph, number, dtypes.float32, keep=1)
            elif (
                shared and graph.sigs[index].size > MAX_SHARED_UPDATES and _is_bindable(graph, base, updates)
            ):
                _through(graph, number, _wide(sig.dtype), keep=1)
        elif sig.kind == "gather":
            source, index = graph.inputs[number]
            if graph.sigs[index].dtype.itemsize == 8:
                size = graph.sigs[source].shape[sig.attributes[0]]
                graph.inputs[number] = (source, _int32_indices(graph, index, size))
        elif sig.kind == "attend" and half:
            wide = signature(sig.op, sig.shape, dtypes.float32, sig.device, sig.attributes)
            _cast_here(graph, number, graph.add(wide, graph.inputs[number]), sig.dtype)
        elif sig.kind == "contract":
            if sig.dtype.compute != "f32":
                _as_sum(graph, number)
            elif sig.dtype.is_packed:
                inner = graph.add(
                    signature(sig.op, sig.shape, dtypes.float32, sig.device), graph.inputs[number]
                )
                _cast_here(graph, number, inner, sig.dtype)


def _int32_indices(graph: Snapshot, index: int, size: int) -> int:
    """Indices along an axis as int32; what that cannot hold is clamped first, as kernels clamp the rest."""
    dtype = graph.sigs[index].dtype
    if dtype in (dtypes.uint32, dtypes.int64, dtypes.uint64):
        last = graph.number(max(size - 1, 0), dtype, graph.sigs[index].device)
        index = graph.make(TABLE["minimum"], (index, last))
    if dtype is dtypes.int64:
        index = graph.make(TABLE["maximum"], (index, graph.number(0, dtype, graph.sigs[index].device)))
    return cast(graph, index, dtypes.int32)


def _is_bindable(graph: Snapshot, *numbers: int) -> bool:
    """Whether values can be bound in 32 bits on every device."""
    return all(4 * graph.sigs[each].size <= PORTABLE.max_binding_bytes for each in numbers)


def _wide(dtype: DType) -> DType:
    """The 32-bit type that holds a dtype's values."""
    return {"f": dtypes.float32, "u": dtypes.uint32}.get(dtype.kind, dtypes.int32)


def cast(graph: Snapshot, number: int, dtype: DType) -> int:
    """A value in a dtype; itself where it has that."""
    sig = graph.sigs[number]
    if sig.dtype is dtype:
        return number
    return graph.add(signature(TABLE["cast"], sig.shape, dtype, sig.device, (dtype,)), (number,))


def _cast_here(graph: Snapshot, number: int, source: int, dtype: DType) -> None:
    """Make a node the cast of another."""
    sig = graph.sigs[number]
    graph.sigs[number] = signature(TABLE["cast"], sig.shape, dtype, sig.device, (dtype,))
    graph.inputs[number] = (source,)


def _through(graph: Snapshot, number: int, dtype: DType, keep: int = -1) -> None:
    """Compute a node in another dtype, and cast the result back; input `keep` stays as it is."""
    sig = graph.sigs[number]
    inputs = tuple(
        each if at == keep else cast(graph, each, dtype) for at, each in enumerate(graph.inputs[number])
    )
    inner = graph.add(signature(sig.op, sig.shape, dtype, sig.device, sig.attributes), inputs)
    _cast_here(graph, number, inner, sig.dtype)


def _as_sum(graph: Snapshot, number: int) -> None:
    """(…, m, k) @ (…, k, n) as the sum over k of (…, m, 1, k) times (…, 1, n, k)."""
    sig = graph.sigs[number]
    dtype = _wide(sig.dtype) if sig.dtype.is_packed else sig.dtype
    a, b = (cast(graph, each, dtype) for each in graph.inputs[number])
    a_shape, b_shape = graph.sigs[a].shape, graph.sigs[b].shape

    def move(op: str, of: int, shape: tuple[int, ...], attribute: object) -> int:
        return graph.add(signature(TABLE[op], shape, dtype, sig.device, (attribute,)), (of,))

    transposed_shape = (*b_shape[:-2], b_shape[-1], b_shape[-2])
    rank = len(b_shape)
    transposed = move("permute", b, transposed_shape, (*range(rank - 2), rank - 1, rank - 2))
    left_shape = (*a_shape[:-1], 1, a_shape[-1])
    right_shape = (*transposed_shape[:-2], 1, *transposed_shape[-2:])
    left = move("reshape", a, left_shape, left_shape)
    right = move("reshape", transposed, right_shape, right_shape)
    whole = (*sig.shape, a_shape[-1])
    product = graph.add(signature(TABLE["multiply"], whole, dtype, sig.device), (left, right))
    total = signature(TABLE["sum"], sig.shape, dtype, sig.device, ((len(whole) - 1,),))
    if dtype is sig.dtype:
        graph.sigs[number], graph.inputs[number] = total, (product,)
    else:
        _cast_here(graph, number, graph.add(total, (product,)), sig.dtype)
