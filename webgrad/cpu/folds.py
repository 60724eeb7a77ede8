"""Folds: axes of an array folded by addition, multiplication, maximum or minimum.

In: an array of any strides and the axes, counted from the front in order. Out: a new array without them. The
invariant: no sum of floats has one long running accumulator; where NumPy would add row after row, the rows
are added in short runs, and the results again in short runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature

__all__ = ["UFUNCS", "fold_of", "sum_floats", "sum_products"]

Fold = Callable[..., Array]

RUN = 16  # additions one after another
DOT = 1024  # elements that BLAS gets at once
SHORT = 128  # elements of a row from which BLAS is quicker
_vecdot = getattr(np, "vecdot", None)  # NumPy 2 has it
_ONES = {np.dtype(kind): np.ones(DOT, kind) for kind in (np.float32, np.float64)}
INNER = 64  # elements behind an axis from which its neighbours are added
FEW = 16  # arrays that are folded one after another, where NumPy's inner loop would be as short
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def fold_of(sig: Signature, dtype: np.dtype[Any]) -> Fold | None:
    """The function (array, axes) of a reduce that is computed in `dtype`; None for one that is not known
    here.
    """
    ufunc = UFUNCS.get(str(sig.op.wgsl))
    if ufunc is None or sig.op.identity is None:
        return None
    if ufunc is np.add and dtype.kind == "f":
        return sum_floats
    start = dtype.type(sig.op.identity(dtype))

    def fold(x: Array, axes: tuple[int, ...]) -> Array:
        if not x.size:
            return np.full([side for axis, side in enumerate(x.shape) if axis not in axes], start)
        if _is_fine(x, axes):
            return _one_by_one(ufunc, x, axes)
        return ufunc.reduce(x, axis=axes, dtype=dtype)  # type: ignore[no-any-return]

    return fold


def sum_floats(x: Array, axes: tuple[int, ...]) -> Array:
    """The sum over axes, pairwise or in short runs."""
    kept = x.ndim - len(axes)
    if _is_fine(x, axes):
        return _one_by_one(np.add, x, axes)
    if axes[0] == kept and x.flags.c_contiguous:
        if len(axes) > 1:
            x = x.reshape(*x.shape[:kept], math.prod(x.shape[kept:]))
        return _sum_rows(x)
    if math.prod(x.shape[axis] for axis in axes) <= RUN:
        return np.add.reduce(x, axis=axes)  # type: ignore[no-any-return]
    for axis in reversed(axes):
        x = _sum_axis(x, axis)
    return x


def _sum_rows(x: Array) -> Array:
    """The sum along the last axis of a contiguous array.

    NumPy adds pairwise there, eight elements at a time. BLAS's product with a row of ones is three times as
    quick; its runs are short too, since it has dozens of accumulators, and since it gets DOT elements.
    """
    if _vecdot is None or x.shape[-1] < SHORT or x.dtype not in _ONES:
        return np.add.reduce(x, axis=-1)  # type: ignore[no-any-return]
    return _dot_rows(x, _ONES[x.dtype])


def sum_products(a: Array, b: Array, axes: tuple[int, ...]) -> Array:
    """The sum of a · b, of one shape and dtype, over axes; the products need not be stored."""
    if _vecdot is None or axes != (a.ndim - 1,) or a.shape[-1] < SHORT or a.dtype not in _ONES:
        return sum_floats(a * b, axes)
    return _dot_rows(a, b)


def _dot_rows(a: Array, b: Array) -> Array:
    """Rows of a times rows of b, or times one row of DOT elements that is repeated; in runs of DOT."""
    assert _vecdot is not None
    length = a.shape[-1]
    if length < DOT:
        return _vecdot(a, b[..., :length])  # type: ignore[no-any-return]
    whole, repeated = length - length % DOT, b.ndim < a.ndim or b.shape[-1] != length
    runs = (*a.shape[:-1], whole // DOT, DOT)
    other = b if repeated else b[..., :whole].reshape(runs)
    total = np.add.reduce(_vecdot(a[..., :whole].reshape(runs), other), axis=-1)
    if whole != length:
        last = b[..., : length - whole] if repeated else b[..., whole:]
        total = total + _vecdot(a[..., whole:], last)
    return np.asarray(total)


def _is_fine(x: Array, axes: tuple[int, ...]) -> bool:
    """Whether few elements are folded, that lie closer together than any others: the windows of a pool."""
    sides = list(zip(x.shape, map(abs, x.strides), strict=True))
    terms = math.prod(x.shape[axis] for axis in axes)
    if not 1 < terms <= FEW or x.size < FEW * terms:
        return False
    folded = min(stride for side, stride in (sides[axis] for axis in axes) if side > 1)
    rest = [stride for axis, (side, stride) in enumerate(sides) if axis not in axes and side > 1]
    return all(folded <= stride for stride in rest)


def _one_by_one(ufunc: np.ufunc, x: Array, axes: tuple[int, ...]) -> Array:
    """All first elements with all second ones, then with all third ones …"""
    first, second, *others = np.ndindex(*(x.shape[axis] for axis in axes))
    terms = np.moveaxis(x, axes, range(len(axes)))
    result = np.empty(terms.shape[len(axes) :], x.dtype)
    ufunc(terms[first], terms[second], out=result)
    for each in others:
        ufunc(result, terms[each], out=result)
    return result


def _sum_axis(x: Array, axis: int) -> Array:
    while x.shape[axis] > RUN and not _is_innermost(x, axis):
        side = x.shape[axis]
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        whole = (slice(None),) * axis
        main = side - side % RUN
        # Splitting an axis is a view. Where little lies behind it, elements far apart are added: NumPy's
        # inner loop is as long as what is left.
        far = math.prod(after) < INNER
        split = (RUN, side // RUN) if far else (side // RUN, RUN)
        runs = x[(*whole, slice(main))].reshape(*before, *split, *after)
        sums = np.add.reduce(runs, axis=axis if far else axis + 1)
        if main != side:
            sums[(*whole, -1)] += np.add.reduce(x[(*whole, slice(main, None))], axis=axis)
        x = sums
    return np.add.reduce(x, axis=axis)  # type: ignore[no-any-return]


def _is_innermost(x: Array, axis: int) -> bool:
    """Whether NumPy's inner loop runs along this axis, so that it adds pairwise."""
    own = abs(x.strides[axis])
    return own != 0 and all(
        own < abs(stride)
        for at, (side, stride) in enumerate(zip(x.shape, x.strides, strict=True))
        if at != axis and side > 1
    )
