"""Operators that read or write elements at computed places."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import webgrad as wg

from ...arrays import np
from .table import Call, operator
from .values import is_array, moves, whole

__all__: list[str] = []


@operator("Gather", known="x indices")
@moves
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """One known index is a slice, which is no launch."""
    if is_array(x):
        x = wg.asarray(x, device="cpu" if is_array(indices) else indices.device)
    if is_array(indices) and indices.ndim == 0:
        at, size = int(indices), x.shape[axis]
        if not -size <= at < size:
            raise wg.IndexingError(f"Gather reads index {at} of axis {axis}, which has {size}")
        chosen = [slice(None)] * x.ndim
        chosen[axis] = at  # type: ignore[call-overload]
        return x[tuple(chosen)]
    return wg.take(x, wg.asarray(indices, device=x.device), axis=axis)


@operator("GatherElements", 11)
@moves
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return wg.gather(x, axis, indices)


@operator("GatherND", 11)
@moves
def gather_slices(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    """Slices by tuples of indices, those of the same place in the batch: rows of a matrix, by one index."""
    batch, depth = tuple(x.shape[:batch_dims]), indices.shape[-1]
    inner = tuple(x.shape[batch_dims + depth :])
    rows = _flat_places(indices, x.shape[batch_dims : batch_dims + depth])
    per_batch = math.prod(x.shape[batch_dims : batch_dims + depth])
    if batch:
        starts = wg.arange(math.prod(batch), dtype=rows.dtype, device=rows.device) * per_batch
        rows = rows + wg.reshape(starts, (*batch, *[1] * (rows.ndim - len(batch))))
    flat = wg.reshape(x, (math.prod(batch) * per_batch, *inner))
    return wg.take(flat, rows, axis=0)


def _flat_places(indices: Any, sizes: Any) -> Any:
    """Tuples of indices along the last axis, which may count from the end, as one index."""
    found = wg.zeros(indices.shape[:-1], dtype=indices.dtype, device=indices.device)
    for at, size in enumerate(sizes):
        each = indices[..., at]
        found = found * size + wg.where(each < 0, each + size, each)
    return found


# Writing; a reduction's name, and webgrad's functions that write slices of an axis
_WRITERS: dict[str, Callable[..., Any]] = {
    "none": wg.index_set,
    "add": wg.index_add,
    "mul": wg.index_multiply,
    "max": wg.index_max,
    "min": wg.index_min,
}


@operator("ScatterElements", 11)
@operator("Scatter", 9)
@moves
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    """An element for each index, which is its place along an axis; along the others it stands there."""
    axis = axis % x.ndim
    parts = []
    for at, size in enumerate(indices.shape):
        places = wg.arange(size, dtype=indices.dtype, device=indices.device)
        parts.append(wg.reshape(places, [size if at == each else 1 for each in range(x.ndim)]))
    parts[axis] = indices
    spread = [wg.broadcast_to(each, indices.shape) for each in parts]
    places = _flat_places(wg.stack(spread, axis=-1), x.shape)
    flat = _WRITERS[reduction](
        wg.reshape(x, (-1,)), wg.reshape(places, (-1,)), wg.reshape(updates, (-1,)), axis=0
    )
    return wg.reshape(flat, x.shape)


@operator("ScatterND", 11)
@moves
def scatter_slices(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    depth = indices.shape[-1]
    outer, inner = x.shape[:depth], x.shape[depth:]
    rows = wg.reshape(_flat_places(indices, outer), (-1,))
    flat = wg.reshape(x, (math.prod(outer), *inner))
    new = wg.reshape(updates, (math.prod(rows.shape), *inner))
    return wg.reshape(_WRITERS[reduction](flat, rows, new, axis=0), x.shape)


@operator("TensorScatter", 24)
def write_cache(past: Any, update: Any, starts: Any = None, *, axis: int = -2, mode: str = "linear") -> Any:
    """Parts of a cache written from a start on, one for each of the batch."""
    axis = axis % past.ndim
    count = update.shape[axis]
    places = wg.arange(count, dtype=wg.int32, device=past.device)
    if starts is not None:
        places = wg.expand_dims(starts.astype(wg.int32), 1) + places
        places = places % past.shape[axis] if mode == "circular" else places
        places = wg.reshape(places, (past.shape[0], *[1] * (axis - 1), count, *[1] * (past.ndim - axis - 1)))
    else:
        places = wg.reshape(places, (count, *[1] * (past.ndim - axis - 1)))
    return scatter_elements(past, wg.broadcast_to(places, update.shape), update, axis=axis)


# Selections


@operator("OneHot", 9, host="depth")
def one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    """On and off values along a new axis; an index below 0 counts from the end, others outside are off."""
    size = whole(depth)
    axis = axis % (indices.ndim + 1)
    places = wg.arange(size, dtype=wg.int32, device=indices.device)
    places = wg.reshape(places, [size if at == axis else 1 for at in range(indices.ndim + 1)])
    wanted = wg.expand_dims(wg.where(indices < 0, indices + size, indices), axis)
    return wg.where(wanted == places.astype(wanted.dtype), values[1], values[0])


@operator("Compress", 9, known="condition")
@moves
def compress(x: Any, condition: Any, *, axis: int | None = None, call: Call) -> Any:
    places = np.flatnonzero(call.host(condition)).astype(np.int32)
    if axis is None:
        x, axis = wg.reshape(x, (-1,)), 0
    return wg.take(x, wg.asarray(places, device=x.device), axis=axis)


@operator("ReverseSequence", 10)
@moves
def reverse_sequences(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """Each sequence's first elements in reverse order, those after its length as they are."""
    count, rank = x.shape[time_axis], x.ndim
    ends = wg.reshape(lengths.astype(wg.int32), [-1 if at == batch_axis else 1 for at in range(rank)])
    steps = wg.reshape(
        wg.arange(count, dtype=wg.int32, device=lengths.device),
        [-1 if at == time_axis else 1 for at in range(rank)],
    )
    places = wg.where(steps < ends, ends - 1 - steps, steps)
    return wg.take_along_axis(x, wg.broadcast_to(places, x.shape), axis=time_axis)
