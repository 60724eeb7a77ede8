"""Rows written to computed places, by NumPy.

In: base (rows, columns), an index, updates. Out: a new array, or the base itself where it may be written to.
Updates to one place are applied in their order; many single floats are added in float64. NumPy writes to
single elements quickest, and by indices of its own type: others are converted in parts that stay in the
cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..arrays import Array, np
from ..runtime.host_buffers import empty
from ..runtime.threads import cores, each_of

__all__ = ["scatter", "set_turned"]

PART = 1 << 15  # elements that are written at a time
SERIAL = 1024  # floats: so many may be added one after another, should all be one row's
WIDE = 256  # columns from which rows are written one by one
SPARSE = 4  # rows for each update from which most are not touched
COUNTED = 1 << 20  # updates that are counted at a time
_UFUNCS = {"add": np.add, "max": np.maximum}


def scatter(how: str, base: Array, index: Array, updates: Array, *, reuse: bool = False) -> Array:
    """base (rows, columns) with rows of updates set, added or maxed into the rows that an index names.

    With `reuse` it is base itself that is written to.
    """
    result = base if reuse else _copied(base)
    if not base.size or not index.size:
        return result
    if how == "set" and index.size == 1:  # as a decoding step does for each of its caches
        result[min(max(int(index.reshape(-1)[0]), 0), len(base) - 1)] = updates[0]
        return result
    rows = _inside(np.ascontiguousarray(index), len(base))
    if rows.dtype == np.uint64:  # which NumPy does not count by
        rows = rows.view(np.int64)
    if base.shape[1] == 1:
        _write_elements(how, result.reshape(-1), rows, updates[:, 0])
    elif how == "set":
        result[rows.astype(np.intp, copy=False)] = updates  # the last of several to one row stays
    elif base.shape[1] >= WIDE:
        ufunc = _UFUNCS[how]
        for row, update in zip(rows.tolist(), updates, strict=True):
            ufunc(result[row], update, out=result[row])
    else:
        _write_rows(_UFUNCS[how], result, rows, updates)
    return result


def set_turned(
    order: tuple[int, ...], axes: int, base: Array, index: Array, updates: Array, *, reuse: bool = False
) -> Array:
    """base with rows set that lie along its first `axes` axes, once its axes are in another order."""
    result = base if reuse else _copied(base)
    if not base.size or not index.size:
        return result
    view = result.transpose(order)
    sides = view.shape[:axes]
    rows = _inside(np.ascontiguousarray(index), math.prod(sides)).astype(np.intp, copy=False)
    view[np.unravel_index(rows, sides)] = updates.reshape(len(rows), *view.shape[axes:])
    return result


def _copied(base: Array) -> Array:
    if base.size and not any(base.strides) and not base.flat[0] and not np.signbit(base.flat[0]):
        return np.zeros(base.shape, base.dtype)  # of which the system clears only what is touched
    result = empty(base.shape, base.dtype)
    np.copyto(result, base)
    return result


def _inside(index: Array, count: int) -> Array:
    """Indices out of range are clamped. Seen without a sign, negative ones are larger than all others."""
    unsigned = index.view(f"u{index.dtype.itemsize}")
    return index if int(unsigned.max()) < count else np.clip(index, 0, count - 1)


def _parts(rows: Array, step: int) -> Iterator[tuple[slice, Array]]:
    """Parts of an index, as NumPy takes them: good until the next one."""
    if rows.dtype == np.intp:
        for start in range(0, len(rows), step):
            yield slice(start, min(start + step, len(rows))), rows[start : start + step]
        return
    places = np.empty(min(step, len(rows)), np.intp)
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        at = places[: part.stop - start]
        np.copyto(at, rows[part], casting="unsafe")
        yield part, at


def _write_elements(how: str, result: Array, rows: Array, updates: Array) -> None:
    single = updates.strides[0] == 0
    if how == "add" and len(rows) > SERIAL and (single or result.dtype.kind == "f"):
        _add_counted(result, rows, updates, single)
        return
    for part, at in _parts(rows, PART):
        values = updates[0] if single else np.ascontiguousarray(updates[part])
        if how == "set":
            result[at] = values
        else:
            _UFUNCS[how].at(result, at, values)


def _add_counted(result: Array, rows: Array, updates: Array, single: bool) -> None:
    """Add by `bincount`, for which NumPy drops the GIL: floats in float64, equal numbers by counting them."""
    if len(result) > SPARSE * len(rows):
        touched, numbers = np.unique(rows, return_inverse=True)
        result[touched] += _totals(numbers, updates, len(touched), single).astype(result.dtype)
        return
    totals = _totals(rows, updates, len(result), single)
    np.add(result, totals, out=result, casting="unsafe")


def _totals(rows: Array, updates: Array, count: int, single: bool) -> Array:
    """What is added to each row, in float64; of equal whole numbers in int64."""
    pieces = cores() * -(-len(rows) // (COUNTED * cores())) if count * cores() <= 2 * len(rows) else 1
    step = -(-len(rows) // pieces)

    def total(start: int) -> Array:
        part = slice(start, start + step)
        return np.bincount(rows[part], None if single else updates[part], count)

    first, *others = each_of(total, range(0, len(rows), step))
    for each in others:
        first += each
    totals: Array = first
    if single:
        totals = totals * updates[0].astype(np.float64 if updates.dtype.kind == "f" else np.int64)
    return totals


def _write_rows(ufunc: np.ufunc, result: Array, rows: Array, updates: Array) -> None:
    """As single elements: NumPy has quick ways for those."""
    columns = result.shape[1]
    offsets = np.arange(columns)
    flat = result.reshape(-1)
    for part, at in _parts(rows, max(1, PART // columns)):
        places = at[:, None] * columns + offsets
        ufunc.at(flat, places.reshape(-1), np.ascontiguousarray(updates[part]).reshape(-1))
