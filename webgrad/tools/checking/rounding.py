"""A value with its bound: what it must be, and by how much a right kernel may miss it.

In: values that were computed in float64, and the bounds of what they were computed from. Out: `Bounded`. How
ill-conditioned a value is comes out by computing it again from inputs moved by their bounds. The invariant:
where nothing was rounded nothing may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from ...arrays import Array, ml_dtypes, np
from ...dtypes import DType
from ...graph.node import Signature

__all__ = [
    "SINGLE",
    "TINY",
    "Bounded",
    "applied",
    "distance",
    "errors_of",
    "exact",
    "limits_of",
    "moved",
    "rounded",
    "shifted",
    "unknown",
    "wide",
]

TINY = float(np.finfo(np.float32).tiny)  # below it drivers may read and write zeros
SINGLE = float(np.finfo(np.float32).eps)
DOUBLE_FUNCTION = 1e-12  # relative: what functions of float64 keep to


class Bounded(NamedTuple):
    """A value and its bound: of floats by how much, of integers too, of bools where it may be the other.

    None is a bound of nothing; infinity says that any value may be right.
    """

    value: Array
    error: Array | None = None


def exact(array: Array) -> Bounded:
    """A value that both devices have, to the bit; what is denormal may be read as 0."""
    if array.dtype.kind not in "fV" or array.dtype.itemsize == 8 or not array.size:
        return Bounded(array)
    size = np.abs(array.astype(np.float32, copy=False))
    small = (size < TINY) & (size > 0)
    return Bounded(array, np.where(small, size, 0.0).astype(np.float64)) if small.any() else Bounded(array)


def unknown(value: Array) -> Bounded:
    """A value of which nothing can be said."""
    if value.dtype.kind == "b":
        return Bounded(value, np.ones(value.shape, np.bool_))
    return Bounded(value, np.full(value.shape, np.inf))


def wide(array: Array) -> Array:
    """Floats as float64."""
    return array.astype(np.float64, copy=False) if array.dtype.kind in "fV" else array


def errors_of(x: Bounded) -> Array:
    """A value's bound as an array."""
    return np.broadcast_to(np.float64(0), x.value.shape) if x.error is None else x.error


def applied(sig: Signature, values: Sequence[Array]) -> Array:
    """An op by NumPy: floats stay float64, integers have the result's dtype."""
    made = sig.op.numpy(*values) if sig.kind == "map" else sig.op.numpy(sig, *values)
    result = np.asarray(made)
    if sig.dtype.kind == "f":
        return wide(result).reshape(sig.shape)
    return result.astype(sig.dtype.numpy, copy=False).reshape(sig.shape)


def distance(a: Array, b: Array) -> Array:
    """How far two results are from each other: 0 for equal ones, NaN and infinities too; never NaN."""
    if a.dtype.kind == "b":
        return np.asarray(np.not_equal(a, b))
    a, b = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
    far = np.abs(a - b)
    odd = ~np.isfinite(far)
    if odd.any():
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        far = np.where(odd, np.where(same, 0.0, np.inf), far)
    return np.asarray(far)


@cache
def limits_of(dtype: DType) -> tuple[float, float, float]:
    """A float's distance from 1 to the next, the largest, and the smallest above 0."""
    finfo: Any = ml_dtypes.finfo  # has no types
    info = finfo(dtype.numpy)
    return float(info.eps), float(info.max), float(info.smallest_subnormal)


def rounded(dtype: DType, value: Array, error: Array | None, units: float = 0.0) -> Bounded:
    """A computed float with what its own rounding adds; `units` in the last place where it is a function.

    Where neither inputs nor result were rounded, compilers have no choice: nothing is added.
    """
    value = wide(value)
    epsilon, largest, least = limits_of(dtype)
    settled: Array | None = None
    if not units and dtype.itemsize < 8:
        stored = value.astype(dtype.numpy)
        settled = stored.astype(np.float64) == value
        if error is not None:
            settled &= error == 0
        elif np.all(settled | np.isnan(value)):
            return _flushed(dtype, stored, None)
    size = np.abs(value)
    if dtype.itemsize == 8:
        relative = max(2 * epsilon, DOUBLE_FUNCTION if units else 0.0)
    else:
        relative = 0.51 * epsilon + units * SINGLE
    finite = np.isfinite(size)
    grown = np.where(finite, np.maximum(relative * size, 0.51 * least), 0.0)
    if settled is not None:
        grown = np.where(settled, 0.0, grown)
    if error is not None:
        grown = grown + error
    end = largest * (1 + epsilon / 4)  # what is below is rounded to the largest
    reach = units * SINGLE * size + (0.0 if error is None else error)
    over = finite & (size + reach >= end)
    if over.any():
        grown = np.where(over, np.where(size - reach < end, np.inf, 0.0), grown)
        value = np.where(size >= end, np.copysign(np.inf, value), value)
    return _flushed(dtype, value, grown)


def _flushed(dtype: DType, value: Array, error: Array | None) -> Bounded:
    """The same, where results are so small that they may be written as zeros."""
    if dtype.itemsize == 8:
        return Bounded(value, error)
    size = np.abs(value)
    small = (size < TINY) & (size > 0)
    if small.any():
        error = (0.0 if error is None else error) + np.where(small, wide(size), 0.0)
    return Bounded(value, error)


def shifted(x: Bounded, sign: int) -> Array:
    """A value moved by its bound, as far as its dtype goes; what is unknown stays."""
    assert x.error is not None
    value = x.value
    if value.dtype.kind == "b":
        return np.asarray(np.logical_xor(value, x.error))
    error = np.where(np.isfinite(x.error), x.error, 0.0)
    if value.dtype.kind in "iu":
        ends = np.iinfo(value.dtype)
        there = np.clip(value.astype(np.float64) + sign * error, float(ends.min), float(ends.max))
        return np.where(error == 0, value, there.astype(value.dtype))
    plain = wide(value)
    there = plain + sign * error
    # Not to the other side of 0 by what only drivers do to denormals: what is squared is not negative.
    return np.where((np.abs(there) < 4 * TINY) & (there * plain <= 0), 0.0, there)


def moved(sig: Signature, inputs: list[Bounded], result: Array) -> Array | None:
    """How far a result moves where its inputs do, one after another, either way; None: not at all."""
    values = [wide(each.value) for each in inputs]
    total: Array | None = None
    for at, each in enumerate(inputs):
        if each.error is None or not each.error.any():
            continue
        ways = (1,) if each.value.dtype.kind == "b" else (1, -1)
        others = [applied(sig, [*values[:at], shifted(each, sign), *values[at + 1 :]]) for sign in ways]
        far = [distance(other, result) for other in others]
        most = far[0] if len(far) == 1 else np.maximum(far[0], far[1])
        lost = ~np.isfinite(each.error) if each.error.dtype.kind == "f" else None
        if lost is not None and lost.any():
            most = np.where(_reached(sig, lost), True if most.dtype.kind == "b" else np.inf, most)
        if total is None:
            total = most
        else:
            total = total | most if most.dtype.kind == "b" else total + most
    return total


def _reached(sig: Signature, lost: Array) -> Any:
    """The results that elements of which nothing is known have a part in."""
    if sig.kind in ("map", "cast"):
        return np.broadcast_to(lost, sig.shape)
    return np.any(lost, axis=sig.attributes[0]).reshape(sig.shape) if sig.kind == "reduce" else True
