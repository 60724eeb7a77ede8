"""Sorts, searches and scatters: NaN is the largest, zeros of both signs are equal, equals keep their order.

Indices out of range are clamped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.helpers import Array, flushed, wide
from tests.properties.points.drawer import LENGTHS, Cases, Points

__all__ = ["best", "order", "scatters", "twice"]


def _ranks(array: Array) -> Array:
    """Integers in the order of the elements."""
    values = wide(array)
    if values.dtype.kind == "f":
        values = values + 0.0
    return np.asarray(np.unique(values, return_inverse=True)[1]).reshape(array.shape)


def order(p: Points) -> Cases:
    dtype = p.dtype("iuf")
    shape = (*p.one(((), (1,), (3,), (4,))), p.one(LENGTHS))
    array = p.array(dtype, shape)
    if dtype.kind in "iu" and p.chance(0.5):
        limits = np.iinfo(dtype.numpy)
        array = p.random.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
    if p.on_gpu:
        array = flushed(array)
    x, ranks = p.tensor(array), _ranks(array)
    rising = np.argsort(ranks, -1, kind="stable")
    falling = np.argsort(-ranks, -1, kind="stable")
    label = f"of {dtype.name} {shape}"
    for down, order in ((False, rising), (True, falling)):
        # Which of a row's zeros come first is the order in which they are: signs are compared too.
        values = np.take_along_axis(array, order, -1)
        yield p.case(f"sort {label} {down}", wg.sort(x, axis=-1, descending=down), values)
        yield p.case(
            f"argsort {label} {down}", wg.argsort(x, axis=-1, descending=down), order.astype(np.int32)
        )
    count = min(shape[-1], p.one((1, 3, 10, max(1, shape[-1] // 2), shape[-1])))
    yield p.case(f"topk {count} {label}", wg.topk(x, count, -1)[1], falling[..., :count].astype(np.int32))
    line = array.reshape(-1)
    known = line[~np.isnan(wide(line))] if dtype.kind == "f" else line
    known = known[np.argsort(_ranks(known), kind="stable")] if known.size else known
    side = p.one(("left", "right"))
    found = wg.searchsorted(p.tensor(known), p.tensor(line), side=side)
    yield p.case(f"searchsorted {side} {label}", found, _searched(known, line, side).astype(np.int32))


def best(p: Points) -> Cases:
    """A few of a long line, found by blocks; many are equal."""
    dtype = p.dtype("iuf")
    length, count = p.one(((8_200, 9), (10_000, 40), (20_001, 100), (70_000, 2)))
    shape = (*p.one(((), (1,), (2,))), length)
    different = min(p.one((3, 100, length // 3)), int(dtype.limits[1]))
    array = p.array(dtype, shape, 40) if p.chance(0.3) else p.random.integers(0, different, shape)
    array = flushed(array.astype(dtype.numpy))
    falling = np.argsort(-_ranks(array), -1, kind="stable")[..., :count]
    values, places = wg.topk(p.tensor(array), count, -1)
    label = f"{count} of {dtype.name} {shape}"
    yield p.case(f"topk {label}", places, falling.astype(np.int32))
    yield p.case(f"values of topk {label}", values, np.take_along_axis(array, falling, -1))


def _searched(line: Array, values: Array, side: str) -> Array:
    """NumPy's search; where 16-bit floats have none, in float64."""
    return np.searchsorted(wide(line), wide(values), "left" if side == "left" else "right")


# Indices out of range, which are clamped


INDEXED: dict[str, Callable[[Array, Array], Array]] = {
    "index_add": np.add,
    "index_max": np.maximum,
    "index_set": lambda old, new: new,
}


def scatters(p: Points) -> Cases:
    dtype = p.dtype("if", 4)
    rank = int(p.random.integers(2, 4))
    shape = tuple(int(each) for each in p.random.integers(2, 7, rank))
    x = p.random.integers(0, 9, shape).astype(dtype.numpy)
    axis = int(p.random.integers(rank))
    places = tuple(3 if at == axis else size for at, size in enumerate(shape))
    index = p.random.integers(0, shape[axis] + 3, places).astype(np.int32)
    updates = p.random.integers(0, 9, places).astype(dtype.numpy)
    inside = np.minimum(index, shape[axis] - 1)
    wanted = x.copy()
    for at in np.ndindex(*places):
        spot = (*at[:axis], int(inside[at]), *at[axis + 1 :])
        wanted[spot] = updates[at]
    found = wg.scatter_set(p.tensor(x), p.tensor(index), p.tensor(updates), axis=axis)
    yield p.case(f"scatter_set of {dtype.name} {shape} along {axis}", found, wanted)
    line = p.random.integers(-2 * shape[axis], shape[axis] + 3, 5).astype(np.int32)
    rows = np.clip(np.where(line < 0, line + shape[axis], line), 0, shape[axis] - 1)
    more = p.random.integers(0, 4, (*shape[:axis], 5, *shape[axis + 1 :])).astype(dtype.numpy)
    for name, changed in INDEXED.items():
        wanted = x.copy()
        for turn, row in enumerate(rows):
            to: Any = (slice(None),) * axis + (int(row),)
            by: Any = (slice(None),) * axis + (turn,)
            wanted[to] = changed(wanted[to], more[by])
        found = getattr(wg, name)(p.tensor(x), p.tensor(line), p.tensor(more), axis=axis)
        yield p.case(f"{name} of {dtype.name} {shape} along {axis}", found, wanted)


def twice(p: Points) -> Cases:
    """A scatter of rows of the very buffer that it writes to, which nobody else has any more."""
    rows, width = (int(each) for each in p.random.integers(2, 9, 2))
    x = p.random.integers(0, 9, (rows, width)).astype(np.float32)
    index = p.random.permutation(rows).astype(np.int32)
    name, changed = p.one(tuple(INDEXED.items()))
    tensor = p.tensor(x) + 0
    updates = wg.reshape(tensor, (rows, 1, width))
    wg.eval(tensor, updates)
    updates = wg.reshape(updates, (rows, width))
    wanted = x.copy()
    wanted[index] = changed(x[index], x)
    found = getattr(wg, name)(tensor, p.tensor(index), updates, axis=0)
    del tensor, updates
    yield p.case(f"{name} of a value's own rows", found, wanted)
