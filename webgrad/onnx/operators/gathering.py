"""Operators that read or write elements at computed places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from .table import Call, operator
from .values import is_array, moves, uploaded, whole

__all__: list[str] = []


@operator("Gather", known="x indices")
@moves
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """One known index is a slice, which is no launch."""
    if is_array(x):
        x = uploaded(x, "cpu" if is_array(indices) else indices.device)
    if is_array(indices) and indices.ndim == 0:
        chosen: list[Any] = [slice(None)] * x.ndim
        chosen[axis] = int(_from_start(indices, x.shape[axis]))
        return x[tuple(chosen)]
    return wg.take(x, indices, axis=axis)


@operator("GatherElements", 11, known="indices")
@moves
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    if is_array(indices):
        indices = wg.asarray(_from_start(indices, x.shape[axis]), device=x.device)
    return wg.gather(x, axis, indices)


@operator("GatherND", 11, known="indices")
@moves
def gather_slices(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    """Slices by tuples of indices, those of the same place in the batch: rows of a matrix, by one index."""
    depth = indices.shape[-1]
    outer, inner = x.shape[: batch_dims + depth], x.shape[batch_dims + depth :]
    parts = _steps(indices.shape[:-1])[:batch_dims] + [indices[..., at] for at in range(depth)]
    rows = _flat_places(parts, outer, indices.shape[:-1], x.device)
    flat = wg.reshape(x, (math.prod(outer), *inner))
    return wg.take(flat, rows, axis=0)


def _steps(shape: Sequence[int]) -> list[Array]:
    """Along each axis its own indices."""
    return [np.arange(size).reshape(size, *[1] * (len(shape) - at - 1)) for at, size in enumerate(shape)]


def _flat_places(parts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int], device: Any) -> Any:
    """Indices along the first axes of a tensor as one: an array, where all are known."""
    found: Any = np.zeros(tuple(shape), np.int32)
    for each, size in zip(parts, sizes, strict=False):
        place = _from_start(each, size)
        if is_array(place) != is_array(found):
            place, found = wg.asarray(place, device=device), wg.asarray(found, device=device)
        found = found * size + place
    return found


def _from_start(indices: Any, size: int) -> Any:
    """Indices that may count from the end, from the start. Known ones must be there; others are clamped."""
    if not is_array(indices):
        indices = wg.clip(indices, -size, max(size - 1, 0))
        return wg.where(indices < 0, indices + size, indices).astype(wg.int32)
    if ((indices < -size) | (indices >= size)).any():
        raise wg.IndexingError(f"indices from {indices.min()} to {indices.max()} of an axis of size {size}")
    return np.where(indices < 0, indices + size, indices).astype(np.int32)


# Writing; a reduction's name, and webgrad's functions that write slices of an axis
_WRITERS: dict[str, Callable[..., Any]] = {
    "none": wg.index_set,
    "add": wg.index_add,
    "mul": wg.index_multiply,
    "max": wg.index_max,
    "min": wg.index_min,
}


@operator("ScatterElements", 11, known="indices")
@operator("Scatter", 9, known="indices")
@moves
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    """An element for each index, which is its place along an axis; along the others it stands there."""
    parts: list[Any] = [*_steps(indices.shape)]
    parts[axis] = indices
    places = _flat_places(parts, x.shape, indices.shape, x.device)
    flat = _WRITERS[reduction](wg.reshape(x, (-1,)), places.reshape(-1), wg.reshape(updates, (-1,)), axis=0)
    return wg.reshape(flat, x.shape)


@operator("ScatterND", 11, known="indices")
@moves
def scatter_slices(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    depth = indices.shape[-1]
    outer, inner = x.shape[:depth], x.shape[depth:]
    parts = [indices[..., at] for at in range(depth)]
    rows = _flat_places(parts, outer, indices.shape[:-1], x.device).reshape(-1)
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
    # Narrow types cannot count to every depth.
    if indices.dtype.kind == "f":
        indices = indices.astype(indices.dtype.wide, copy=False)
    elif indices.dtype.itemsize < 4:
        indices = indices.astype(wg.int32)
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
