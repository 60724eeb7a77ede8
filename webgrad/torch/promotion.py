"""torch's promotion of types, where it is not the array API's: tensors without dimensions, and bools.

In: the operands of an operation. Out: the same, in dtypes that webgrad promotes to what torch gives. A tensor
without dimensions only decides a result's dtype if its kind (bool, integer, float, complex) is a higher one.
"""

from __future__ import annotations

import warnings
from typing import Any

import webgrad as wg

from .defaults import integer_of

__all__ = ["cast", "castable", "matched", "result_type", "wrapped"]

_Array = wg.Tensor
_KIND = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def matched(first: Any, second: Any) -> tuple[Any, Any]:
    """Two operands, one of them a tensor, converted as far as torch promotes otherwise than webgrad does."""
    if isinstance(second, _Array):
        if not isinstance(first, _Array):
            swapped, kept = matched(second, first)
            return kept, swapped
        if first.dtype is second.dtype:
            return first, second
        wanted = result_type(first, second)
        return _as(first, wanted), _as(second, wanted)
    if second.__class__ is int:
        if first.dtype is wg.bool:
            return first.astype(integer_of(first.device)), second
        if first.dtype.kind in "iu":
            return first, wrapped(second, first.dtype)
    return first, second


def wrapped(number: Any, dtype: Any) -> Any:
    """An integer as a dtype of integers holds it: modulo its range."""
    if number.__class__ is not int or dtype.kind not in "iu":
        return number
    least, most = dtype.limits
    return number if least <= number <= most else (number - least) % (most - least + 1) + least


def cast(x: Any, dtype: Any) -> Any:
    """In another dtype, if one is given; of complex numbers a real one keeps the real parts."""
    if dtype is None or x.dtype is dtype:
        return x
    dtype = wg.as_dtype(dtype)
    if x.dtype.kind == "c" and dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and dtype.kind != "c":
        warnings.warn("Casting complex values to real discards the imaginary part", stacklevel=4)
        x = wg.real(x)
    return x.astype(dtype, copy=False)


def _as(x: Any, dtype: Any) -> Any:
    return x if x.dtype is dtype else x.astype(dtype)


def result_type(first: Any, second: Any) -> Any:
    """The dtype of a result of two tensors."""
    a, b = first.dtype, second.dtype
    if (first.ndim == 0) != (second.ndim == 0):
        single, full = (a, b) if first.ndim == 0 else (b, a)
        if _KIND[single.kind] <= _KIND[full.kind]:
            return full
        return single if full.kind != "f" else wg.promote(single, full)
    return wg.promote(a, b)


def castable(before: Any, after: Any) -> bool:
    """Whether an in-place operation may write results of one dtype to a tensor of another."""
    return _KIND[wg.as_dtype(before).kind] <= _KIND[wg.as_dtype(after).kind]
