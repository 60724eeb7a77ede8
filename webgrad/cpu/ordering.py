"""The order of keys, and rows written to computed places, by NumPy.

In: arrays. Out: new arrays. Sorting is stable. A 32-bit key and its place make one 64-bit number, and no two
of those are equal: so they can be sorted by NumPy's quickest way, which is not stable. Updates to one place
are applied in their order; many floats in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .threads import share

__all__ = ["scatter", "sorted_places"]

Array = np.ndarray[Any, Any]

BLOCK = 1 << 16  # keys: as many rows as have about so many are one task
SERIAL = 1024  # floats: so many may be added one after another, should all be one row's
LEAST = 64  # keys of a row from which making pairs is worth it


def sorted_places(keys: Array) -> Array:
    """The stable order of unsigned keys along the last axis, int32."""
    length = keys.shape[-1] if keys.ndim else 1
    if not keys.size or length == 1:
        return np.zeros(keys.shape, np.int32)
    rows = np.ascontiguousarray(keys).reshape(-1, length)
    result = np.empty(keys.shape, np.int32)
    target = result.reshape(rows.shape)
    step = max(1, BLOCK // length)

    def work(left: Iterator[int]) -> None:
        for start in left:
            part = slice(start, start + step)
            target[part] = _order(rows[part])

    share(work, range(0, len(rows), step))
    return result


def _order(rows: Array) -> Array:
    if rows.dtype.itemsize != 4 or rows.shape[1] < LEAST:
        return np.argsort(rows, axis=1, kind="stable")
    pairs = rows.astype(np.uint64)
    pairs <<= np.uint64(32)
    pairs |= np.arange(rows.shape[1], dtype=np.uint64)
    pairs.sort(axis=1)
    return pairs.astype(np.uint32)  # the places are the low halves


def scatter(how: str, base: Array, index: Array, updates: Array) -> Array:
    """base (rows, columns) with rows of updates set, added or maxed into the rows that an index names."""
    result = np.array(base, order="C")
    if not base.size:
        return result
    rows = np.clip(index, 0, len(base) - 1).astype(np.intp, copy=False)
    if how == "set":
        result[rows] = updates  # the last of several to one row stays
    elif base.shape[1] != 1:
        {"add": np.add, "max": np.maximum}[how].at(result, rows, updates)
    elif how == "add" and base.dtype.kind == "f" and len(rows) > SERIAL:
        result[:, 0] += np.bincount(rows, updates[:, 0], len(base))  # in float64
    else:  # of one dimension, for which NumPy has quick ways
        {"add": np.add, "max": np.maximum}[how].at(result[:, 0], rows, np.ascontiguousarray(updates[:, 0]))
    return result
