"""Running totals of arrays: along one axis, in chunks over threads.

In: an array and an axis. Out: a new array. A long axis is cut into chunks; what each comes to is folded
first, so that every chunk can begin with what is before it. Sums of floats are added in short runs, and those
again: no long running accumulator. Products of floats are not cut: where one overflows, another is 0.

One addition after another waits for the one before it. The sums of a short run are its product with a
triangle of ones, which BLAS computes three times as quickly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature
from ..runtime.host_buffers import empty
from ..runtime.threads import each_of
from .blas import single_threaded
from .folds import UFUNCS, sum_floats

__all__ = ["scan_of"]

RUN = 128  # additions one after another
CHUNK = 1 << 17  # elements that stay in a core's cache
MANY = 500  # lines for which NumPy drops the GIL
FEW = 16  # columns: so few are turned, for NumPy's inner loops go along what lies together
WIDTH = 32  # elements of a run that is multiplied with a triangle


def scan_of(sig: Signature, dtype: np.dtype[Any]) -> Callable[[Array], Array] | None:
    """The function of a scan that is computed in `dtype`; None for one that is not known here."""
    ufunc = UFUNCS.get(str(sig.op.wgsl))
    if ufunc is None:
        return None
    axis = sig.attributes[0]
    accurate = ufunc is np.add and dtype.kind == "f"
    whole = ufunc is np.multiply and dtype.kind == "f"

    def scan(x: Array) -> Array:
        before, side, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        if x.size <= CHUNK // 4 and not (accurate and side > RUN):
            return ufunc.accumulate(x, axis=axis, dtype=dtype)
        source = x.reshape(math.prod(before), side, math.prod(after))
        result = empty(x.shape, dtype)
        _fill(ufunc, source, result.reshape(source.shape), accurate, whole)
        return result

    return scan


def _fill(ufunc: np.ufunc, x: Array, result: Array, accurate: bool, whole: bool) -> None:
    rows, side, columns = x.shape
    if not x.size:
        return
    length = side if whole else min(side, max(RUN, CHUNK // columns))
    if rows >= 8 and columns * side <= 4 * CHUNK:  # work enough without cutting rows
        length = side
    share_rows = max(1, CHUNK // (length * columns))
    starts = range(0, side, length)
    items = [(row, start) for row in range(0, rows, share_rows) for start in starts]
    totals = _totals(ufunc, x, length) if len(starts) > 1 else None

    def fill(item: tuple[int, int]) -> None:
        row, start = item
        part = (slice(row, row + share_rows), slice(start, start + length))
        given = totals[part[0], start // length - 1] if start and totals is not None else None
        _chunk(ufunc, x[part], result[part], accurate, given)

    with single_threaded():
        each_of(fill, items)


def _turned(x: Array) -> Array:
    """(rows, length, columns) with the columns before the length, one after another in memory."""
    return np.ascontiguousarray(x.transpose(0, 2, 1))


def _totals(ufunc: np.ufunc, x: Array, length: int) -> Array:
    """What the chunks but the last come to, with those before them."""
    rows, side, columns = x.shape
    count = -(-side // length) - 1
    sums = np.empty((rows, count, columns), x.dtype)
    add = ufunc is np.add and x.dtype.kind == "f"

    def total(chunk: int) -> None:
        part, axis = x[:, chunk * length : (chunk + 1) * length], 1
        if columns < FEW:
            part, axis = _turned(part), 2
        sums[:, chunk] = sum_floats(part, (axis,)) if add else ufunc.reduce(part, axis=axis, dtype=x.dtype)

    each_of(total, range(count))
    with np.errstate(all="ignore"):
        return ufunc.accumulate(sums, axis=1)


def _chunk(ufunc: np.ufunc, x: Array, result: Array, accurate: bool, given: Array | None) -> None:
    """One chunk (rows, length, columns) that stays in the cache, from what is before it, (rows, columns)."""
    rows, length, columns = x.shape
    if accurate and columns < FEW and length > RUN and _multiplied(x, result, given):
        return
    if columns == 1:
        before = None if given is None else given.reshape(rows)
        _along(ufunc, x.reshape(rows, length), result.reshape(rows, length), accurate, before)
    elif columns < FEW:
        turned = np.empty((rows * columns, length), result.dtype)
        before = None if given is None else given.reshape(-1)
        _along(ufunc, _turned(x).reshape(rows * columns, length), turned, accurate, before)
        result[...] = turned.reshape(rows, columns, length).transpose(0, 2, 1)
    else:
        _along(ufunc, x, result, accurate, given)


@cache
def _triangle(columns: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The matrices that make sums of a run of steps, and repeat the columns of one step for all of them."""
    steps = max(4, WIDTH // columns)
    own = np.eye(columns, dtype=dtype)
    return np.kron(np.triu(np.ones((steps, steps), dtype)), own), np.tile(own, steps)


def _multiplied(x: Array, result: Array, given: Array | None) -> bool:
    """Running sums of (rows, length, columns) by products; False where there are infinities and NaN."""
    rows, length, columns = x.shape
    triangle, repeat = _triangle(columns, result.dtype)
    width = len(triangle)
    steps = width // columns
    count = length // steps
    main = count * steps
    runs = result[:, :main].reshape(rows, count, width)
    np.matmul(x[:, :main].reshape(runs.shape), triangle, out=runs)
    ends = np.ascontiguousarray(runs[:, :, -columns:])
    before = np.zeros((rows, count + 1, columns), result.dtype)  # each run, and the rest
    if count <= RUN:
        np.add.accumulate(ends, axis=1, out=before[:, 1:])
    elif not _multiplied(ends, before[:, 1:], None):
        return False
    if given is not None:
        before += given[:, None]
    if not np.isfinite(before[:, -1]).all():
        return False
    runs += before[:, :-1] if columns == 1 else np.matmul(before[:, :-1], repeat)
    if main != length:
        rest = np.add.accumulate(x[:, main:], axis=1, out=result[:, main:])
        rest += before[:, -1:]
    return True


def _accumulate(ufunc: np.ufunc, x: Array, result: Array) -> None:
    """Along axis 1. NumPy drops the GIL for a long line, and for many lines, but not for a few long ones."""
    if x.ndim == 2 and x.shape[1] > MANY > x.shape[0]:
        for source, target in zip(x, result, strict=True):
            ufunc.accumulate(source, out=target)
    else:
        ufunc.accumulate(x, axis=1, out=result)


def _along(ufunc: np.ufunc, x: Array, result: Array, accurate: bool, given: Array | None) -> None:
    """Along axis 1 of x, whatever comes after it; `result` is part of a contiguous array."""
    rows, length, after = x.shape[0], x.shape[1], x.shape[2:]
    if not accurate or length <= RUN:
        _accumulate(ufunc, x, result)
        if given is not None:
            ufunc(result, given[:, None], out=result)
        return
    main = length - length % RUN
    runs = np.add.accumulate(x[:, :main].reshape(rows, main // RUN, RUN, *after), axis=2)
    ends = np.add.accumulate(runs[:, :, -1], axis=1)
    if given is not None:
        ends += given[:, None]
        runs[:, 0] += given[:, None]
    runs[:, 1:] += ends[:, :-1, None]
    result[:, :main] = runs.reshape(rows, main, *after)
    if main != length:
        rest = np.add.accumulate(x[:, main:], axis=1, out=result[:, main:])
        rest += ends[:, -1:]
