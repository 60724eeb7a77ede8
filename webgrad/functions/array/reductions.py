"""Reductions: sums, extremes, means and variances, indices of extremes, norms.

In: a tensor, and the axes (None, one, or several). Out: a tensor without those axes, or with size 1 in
their place. Each is one reduce node over all its axes. 16-bit floats are reduced in float32 and rounded
once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from ... import dtypes
from ...dtypes import DType, as_dtype, promote
from ...errors import ArgumentError, AxisError, DTypeError, ShapeError
from ...gradients.history import grad_mode_set
from ...gradients.own import own_gradient
from ...ops import primitives
from ...ops.shapes import check_kind, normalise_axes, normalise_axis
from ...ops.table import TABLE
from ...tensor import Tensor
from ..pure import pure
from .creation import as_number, as_tensor, zeros_like
from .elementwise import abs as absolute
from .elementwise import exp, isfinite, isnan, log, not_equal, sqrt, where

Axis = int | Sequence[int] | None
ACCUMULATORS = {  # the dtype of sums and products, where it is not the elements' own
    dtypes.bool: dtypes.int32,
    dtypes.int8: dtypes.int32,
    dtypes.int16: dtypes.int32,
    dtypes.uint8: dtypes.uint32,
    dtypes.uint16: dtypes.uint32,
}


# What every composed op shares: the dtype it computes in, and a reduction


def converted(x: Tensor, dtype: DType) -> Tensor:
    """x in another dtype; x itself where it has that."""
    return x if x.dtype is dtype else Tensor(primitives.cast(x.node, dtype))


def compute_dtype(dtype: DType) -> DType:
    """The dtype to compute in: float32 for 16-bit floats, else the same."""
    return dtypes.float32 if dtype.is_half else dtype


def widened(x: Tensor) -> Tensor:
    """x in the dtype to compute in: 16-bit floats in float32, so that they are rounded once, at the end."""
    return converted(x, compute_dtype(x.dtype))


def floating(op: str, x: Tensor, kinds: str = "f") -> Tensor:
    """x in the dtype to compute in, where it is of floats; else an error that names the op."""
    check_kind(op, kinds, x.dtype)
    return widened(x)


def fold(name: str, x: Tensor, axes: tuple[int, ...], keepdims: bool = False) -> Tensor:
    """The reduction by a row of the table, over normalised axes; an empty axis gives the row's identity."""
    node = primitives.reduce(TABLE[name], x.node, axes)
    return Tensor(primitives.reshape(node, _shape_with_ones(x.shape, axes)) if keepdims else node)


def average(x: Tensor, axes: tuple[int, ...], keepdims: bool = False) -> Tensor:
    """The mean of floats over normalised axes; of nothing it is NaN."""
    total = fold("sum", x, axes, keepdims)
    return _mean_of_total(total, _count(x, axes))


def _mean_of_total(total: Tensor, count: float) -> Tensor:
    """total / count; NaN where nothing is counted, without asking a GPU to divide by zero."""
    return total / count if count > 0 else total * math.nan


def _shape_with_ones(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def _shape_without(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _count(x: Tensor, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def _refuse_empty(op: str, x: Tensor, axes: tuple[int, ...]) -> None:
    if x.size == 0 and 0 not in _shape_without(x.shape, axes):
        raise ShapeError(
            f"{op} of a tensor of shape {x.shape} over axes {axes}: no elements have no {op}; check that "
            "x.size is not 0 first"
        )


# Sums and extremes


def _accumulated(op: str, x: Any, axis: Axis, dtype: Any, keepdims: bool) -> Tensor:
    x = as_tensor(op, x)
    wanted = ACCUMULATORS.get(x.dtype, x.dtype) if dtype is None else as_dtype(dtype)
    if wanted.kind == "b":
        raise DTypeError(f"{op}: a sum or product is not bool: use any or all, or give dtype=webgrad.int32")
    return fold(op, converted(x, wanted), normalise_axes(op, axis, x.ndim), keepdims)


@pure
def sum(x: Tensor, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes; of bools and small integers in 32 bits.

    >>> wg.sum(wg.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    return _accumulated("sum", x, axis, dtype, keepdims)


@pure
def prod(x: Tensor, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes; of bools and small integers in 32 bits.

    >>> wg.prod(wg.asarray([2, 3, 4])).item()
    24
    """
    return _accumulated("prod", x, axis, dtype, keepdims)


def _extreme(op: str, x: Any, axis: Axis, keepdims: bool) -> Tensor:
    x = as_tensor(op, x)
    if hasattr(axis, "dtype") and hasattr(axis, "ndim") and not isinstance(axis, Integral):
        raise AxisError(f"{op} reduces axes of one tensor: webgrad.{op}imum(x, y) compares two")
    axes = normalise_axes(op, axis, x.ndim)
    _refuse_empty(op, x, axes)
    return fold(op, x, axes, keepdims)


@pure
def max(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest element over axes; NaN where there is one.

    >>> wg.max(wg.asarray([[1, 5], [7, 3]]), axis=1).tolist()
    [5, 7]
    """
    return _extreme("max", x, axis, keepdims)


@pure
def min(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element over axes; NaN where there is one.

    >>> wg.min(wg.asarray([[1, 5], [7, 3]]), axis=1).tolist()
    [1, 3]
    """
    return _extreme("min", x, axis, keepdims)


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype is dtypes.bool else not_equal(x, 0)


@pure
def any(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Whether an element over axes is true, or not zero.

    >>> wg.any(wg.asarray([[0, 0], [0, 2]]), axis=1).tolist()
    [False, True]
    """
    x = as_tensor("any", x)
    return fold("max", _truth(x), normalise_axes("any", axis, x.ndim), keepdims)


@pure
def all(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Whether every element over axes is true, or not zero.

    >>> wg.all(wg.asarray([[1, 0], [1, 2]]), axis=1).tolist()
    [False, True]
    """
    x = as_tensor("all", x)
    return fold("min", _truth(x), normalise_axes("all", axis, x.ndim), keepdims)


@pure
def count_nonzero(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """How many elements over axes are not zero, as int32.

    >>> wg.count_nonzero(wg.asarray([0.0, 2.0, 3.0])).item()
    2
    """
    x = as_tensor("count_nonzero", x)
    axes = normalise_axes("count_nonzero", axis, x.ndim)
    return fold("sum", converted(_truth(x), dtypes.int32), axes, keepdims)


# The indices of extremes


def _arg_extreme(op: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    """The index of the first extreme; of the first NaN, if there is one."""
    x = as_tensor(f"arg{op}", x)
    if axis is None or not x.shape:
        normalise_axes(f"arg{op}", axis, x.ndim)
        place = _arg_extreme(op, Tensor(primitives.reshape(x.node, (x.size,))), 0, False)
        return Tensor(primitives.reshape(place.node, (1,) * x.ndim)) if keepdims else place
    axis = normalise_axis(f"arg{op}", axis, x.ndim)
    check_kind(f"arg{op}", "biuf", x.dtype)
    _refuse_empty(f"arg{op}", x, (axis,))
    hit = x == fold(op, x, (axis,), keepdims=True)
    if x.dtype.kind == "f":
        hit = hit | isnan(x)
    length = x.shape[axis]
    index = primitives.iota(length, dtypes.int32, x.node.sig.device)
    along = Tensor(primitives.reshape(index, (length, *[1] * (x.ndim - 1 - axis))))
    return fold("min", where(hit, along, length), (axis,), keepdims)


@pure
def argmax(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first largest element along an axis, or of all elements, as int32; NaN is largest.

    >>> wg.argmax(wg.asarray([[1, 5, 5], [7, 3, 0]]), axis=1).tolist()
    [1, 0]
    """
    return _arg_extreme("max", x, axis, keepdims)


@pure
def argmin(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first smallest element along an axis, or of all elements, as int32; NaN is smallest.

    >>> wg.argmin(wg.asarray([[1, 5, 0], [7, 3, 3]]), axis=1).tolist()
    [2, 1]
    """
    return _arg_extreme("min", x, axis, keepdims)


# Means and variances: of floats in their own dtype, of integers and bools in float32


def _as_floats(op: str, x: Any, kinds: str = "f") -> tuple[Tensor, DType]:
    """x in the dtype to compute in, and the dtype of the result."""
    x = as_tensor(op, x)
    check_kind(op, "biu" + kinds, x.dtype)
    return (widened(x), x.dtype) if x.dtype.kind in kinds else (converted(x, dtypes.float32), dtypes.float32)


@pure
def mean(x: Tensor, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes; of integers as float32, of no elements NaN.

    >>> wg.mean(wg.asarray([[1, 2], [3, 6]]), axis=0).tolist()
    [2.0, 4.0]
    """
    wide, result = _as_floats("mean", x, "fc")
    if dtype is not None:
        result = as_dtype(dtype)
        check_kind("mean (its dtype=)", "fc" if wide.dtype.kind == "f" else "c", result)
        wide = converted(wide, promote(wide.dtype, result))
    return converted(average(wide, normalise_axes("mean", axis, wide.ndim), keepdims), result)


def variance(x: Tensor, axes: tuple[int, ...], correction: float, keepdims: bool) -> Tensor:
    """The variance of floats over normalised axes: the mean first, then the squares about it."""
    centred = x - average(x, axes, keepdims=True)
    return _mean_of_total(fold("sum", centred * centred, axes, keepdims), _count(x, axes) - correction)


@pure
def var(x: Tensor, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over axes; `correction=1` divides by one less than the count, as statistics of samples do.

    That of complex numbers is real: the mean square of distances from their mean. Where the correction leaves
    nothing to divide by, it is NaN.

    >>> wg.var(wg.asarray([1.0, 3.0]), correction=1).item()
    2.0
    """
    found, result = _wide_variance("var", x, axis, correction, keepdims)
    return converted(found, result)


def _wide_variance(op: str, x: Any, axis: Axis, correction: Any, keepdims: bool) -> tuple[Tensor, DType]:
    """The variance in the dtype it is computed in, and the dtype of the result."""
    x = as_tensor(op, x)
    if isinstance(axis, bool):
        raise AxisError(
            f"{op}: {axis} is not an axis; PyTorch's {op}(unbiased={axis}) is {op}(correction={int(axis)})"
        )
    axes, less = normalise_axes(op, axis, x.ndim), as_number(op, correction)
    if x.dtype.kind == "c":
        parts = Tensor(primitives.as_real(x.node))
        of_parts = variance(parts, axes, less, keepdims)
        return fold("sum", of_parts, (of_parts.ndim - 1,), keepdims=False), parts.dtype
    wide, result = _as_floats(op, x)
    return variance(wide, axes, less, keepdims), result


@pure
def std(x: Tensor, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over axes: the square root of `var`.

    >>> wg.std(wg.asarray([1.0, 3.0])).item()
    1.0
    """
    found, result = _wide_variance("std", x, axis, correction, keepdims)
    return converted(_root(found, 2), result)


# Norms, and sums of exponentials


@pure
def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norm of vectors along axes: (Σ|x|^ord)^(1/ord); inf: the largest, 0: how many are not 0.

    >>> wg.vector_norm(wg.asarray([3.0, 4.0])).item()
    5.0
    """
    return _norm("vector_norm", x, axis, keepdims, ord)


@pure
def norm(x: Tensor, p: float | str = "fro", axis: Axis = None, keepdims: bool = False) -> Tensor:
    """PyTorch's norm: `vector_norm` of order p over axes, or of all elements; "fro" is order 2.

    >>> wg.norm(wg.asarray([3.0, 4.0]), 1).item()
    7.0
    """
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(
            f'norm: p is a number, inf, -inf or "fro", not {p!r}; webgrad.linalg.matrix_norm(x, ord="nuc") '
            "is the sum of singular values"
        )
    return _norm("norm", x, axis, keepdims, 2 if isinstance(p, str) else p)


def _norm(op: str, x: Any, axis: Axis, keepdims: bool, order: Any) -> Tensor:
    x = as_tensor(op, x)
    wide, result = _as_floats(op, absolute(x) if x.dtype.kind == "c" else x)
    number = as_number(op, order)
    if math.isnan(number):
        raise ShapeError(f"{op}: the order is a number, inf or -inf, not NaN")
    return converted(power_norm(wide, normalise_axes(op, axis, wide.ndim), number, keepdims), result)


def power_norm(x: Tensor, axes: tuple[int, ...], ord: float, keepdims: bool) -> Tensor:
    """The norm of floats over normalised axes."""
    if math.isinf(ord):
        _refuse_empty("vector_norm", x, axes)
        return fold("max" if ord > 0 else "min", absolute(x), axes, keepdims)
    if ord == 0:
        return own_gradient(
            lambda: fold("sum", converted(not_equal(x, 0), x.dtype), axes, keepdims),
            (Tensor(x.node), lambda g: zeros_like(x)),
        )
    if ord == 1:
        return fold("sum", absolute(x), axes, keepdims)
    if ord == 2:
        return _root(fold("sum", x * x, axes, keepdims), 2)
    powers = _flat_at_zero(absolute(x), lambda size: size**ord, 0.0 if ord > 0 else math.inf)
    return _root(fold("sum", powers, axes, keepdims), ord)


def _root(total: Tensor, ord: float) -> Tensor:
    """The root of a sum of powers."""
    root = sqrt if ord == 2 else lambda total: total ** (1 / ord)
    return _flat_at_zero(total, root, 0.0 if ord > 0 else math.inf)


def _flat_at_zero(x: Tensor, function: Callable[[Tensor], Tensor], at_zero: float) -> Tensor:
    """A function whose gradient at 0 is 0, as norms have it, and not infinity times 0."""
    if not x.requires_grad:
        return function(x)
    zero = x == 0.0
    return where(zero, at_zero, function(where(zero, 1.0, x)))


def shift_of(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The maximum over axes, which keep size 1, to subtract from exponents: any other shift would give the
    same result, so no gradient goes through it.
    """
    with grad_mode_set(False):
        return fold("max", x, axes, keepdims=True)


@pure
def logsumexp(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """log(Σ exp(x)) over axes, without overflow; of no elements -inf.

    >>> round(wg.logsumexp(wg.asarray([1000.0, 1000.0])).item(), 3)
    1000.693
    """
    x = as_tensor("logsumexp", x)
    axes = normalise_axes("logsumexp", axis, x.ndim)
    check_kind("logsumexp", "fc", x.dtype)
    wide = widened(x)
    largest = shift_of(wide.real, axes)
    # An infinite maximum would make inf - inf of its own row.
    shift = where(isfinite(largest), largest, 0.0)
    total = log(fold("sum", exp(wide - shift), axes, keepdims=True)) + shift
    if not keepdims:
        total = Tensor(primitives.reshape(total.node, _shape_without(x.shape, axes)))
    return converted(total, x.dtype)
