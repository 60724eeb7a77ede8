"""Reductions of what is not NaN: `nansum`, `nanmean`, `nanmax` …, by NumPy's names.

In: tensors, and axes as everywhere. Out: tensors without those axes. Integers have no NaN: of them these are
the plain reductions. Where there is nothing but NaN, means and extremes are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...ops.shapes import check_kind
from ...tensor import Tensor
from . import reductions, scans
from .creation import as_tensor
from .elementwise import isnan, logical_not, maximum, sqrt, where
from .elementwise import square as squared
from .reductions import Axis
from .statistics import median, nanquantile


def nansum(x: Tensor, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, NaN taken as 0.

    >>> wg.nansum(wg.asarray([1.0, wg.nan, 2.0])).item()
    3.0
    """
    return reductions.sum(_filled("nansum", x, 0), axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Tensor, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes, NaN taken as 1.

    >>> wg.nanprod(wg.asarray([3.0, wg.nan, 2.0])).item()
    6.0
    """
    return reductions.prod(_filled("nanprod", x, 1), axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The sums so far along an axis, NaN taken as 0.

    >>> wg.nancumsum(wg.asarray([1.0, wg.nan, 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return scans.cumsum(_filled("nancumsum", x, 0), axis, dtype)


def nancumprod(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The products so far along an axis, NaN taken as 1.

    >>> wg.nancumprod(wg.asarray([2.0, wg.nan, 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    return scans.cumprod(_filled("nancumprod", x, 1), axis, dtype)


def nanmean(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The mean over axes of what is not NaN.

    >>> wg.nanmean(wg.asarray([1.0, wg.nan, 2.0])).item()
    1.5
    """
    x = _of_floats("nanmean", x)
    return _shared(nansum(x, axis, keepdims=keepdims), _count(x, axis, keepdims), x)


def nanvar(x: Tensor, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over axes of what is not NaN, divided by its count less `correction`.

    >>> wg.nanvar(wg.asarray([1.0, wg.nan, 3.0])).item()
    1.0
    """
    x = _of_floats("nanvar", x)
    check_kind("nanvar", "f", x.dtype)
    distance = where(isnan(x), 0, x - nanmean(x, axis, keepdims=True))
    total = reductions.sum(squared(distance), axis, keepdims=keepdims)
    return _shared(total, _count(x, axis, keepdims) - correction, x)


def nanstd(x: Tensor, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over axes of what is not NaN.

    >>> wg.nanstd(wg.asarray([1.0, wg.nan, 3.0])).item()
    1.0
    """
    return sqrt(nanvar(x, axis, correction=correction, keepdims=keepdims))


def nanmax(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest element over axes that is not NaN.

    >>> wg.nanmax(wg.asarray([1.0, wg.nan, 2.0])).item()
    2.0
    """
    return _extreme("nanmax", reductions.max, -math.inf, x, axis, keepdims)


def nanmin(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element over axes that is not NaN.

    >>> wg.nanmin(wg.asarray([1.0, wg.nan, 2.0])).item()
    1.0
    """
    return _extreme("nanmin", reductions.min, math.inf, x, axis, keepdims)


def nanargmax(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first largest element that is not NaN; -1 where there is nothing but NaN.

    >>> wg.nanargmax(wg.asarray([1.0, wg.nan, 2.0])).item()
    2
    """
    return _place("nanargmax", nanmax, x, axis, keepdims)


def nanargmin(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first smallest element that is not NaN; -1 where there is nothing but NaN.

    >>> wg.nanargmin(wg.asarray([wg.nan, 1.0, 2.0])).item()
    1
    """
    return _place("nanargmin", nanmin, x, axis, keepdims)


def nanmedian(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The middle element of what is not NaN; of an even number of them the mean of two, as in NumPy.

    >>> wg.nanmedian(wg.asarray([3.0, wg.nan, 1.0])).item()
    2.0
    """
    if as_tensor("nanmedian", x).dtype.kind != "f":
        return median(x, axis, keepdims=keepdims)
    return nanquantile(x, 0.5, axis, method="midpoint", keepdims=keepdims)


def _filled(op: str, x: Any, value: float) -> Tensor:
    """x with a number for NaN."""
    x = as_tensor(op, x)
    return where(isnan(x), value, x) if x.dtype.kind in "fc" else x


def _of_floats(op: str, x: Any) -> Tensor:
    found = as_tensor(op, x)
    return found if found.dtype.kind in "fc" else found.astype(dtypes.float32)


def _count(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return reductions.sum(logical_not(isnan(x)), axis, keepdims=keepdims)


def _shared(total: Tensor, count: Tensor, like: Tensor) -> Tensor:
    """total / count; NaN where nothing is counted, without asking a GPU to divide by zero."""
    return where(count > 0, total / maximum(count, 1).astype(like.dtype), math.nan)


def _extreme(
    op: str, fold: Callable[..., Tensor], lowest: float, x: Any, axis: Axis, keepdims: bool
) -> Tensor:
    x = as_tensor(op, x)
    if x.dtype.kind != "f":
        return fold(x, axis, keepdims=keepdims)
    nothing = reductions.all(isnan(x), axis, keepdims=keepdims)
    return where(nothing, math.nan, fold(where(isnan(x), lowest, x), axis, keepdims=keepdims))


def _place(op: str, extreme: Callable[..., Tensor], x: Any, axis: int | None, keepdims: bool) -> Tensor:
    x = as_tensor(op, x)
    found = (x == extreme(x, axis, keepdims=True)).astype(dtypes.uint8)
    place = reductions.argmax(found, axis, keepdims=keepdims)
    return where(reductions.max(found, axis, keepdims=keepdims) == 0, -1, place)
