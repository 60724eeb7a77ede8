"""Statistics that need an order or a product: medians, quantiles, covariance and correlation.

In: tensors of numbers, and one axis or None for all elements. Out: tensors of floats. NaN are not skipped
unless the name says so: a result of elements with NaN is NaN.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...ops.shapes import check_kind, normalise_axes, normalise_axis
from ...tensor import Tensor
from ..complex.parts import complex as of_parts
from ..complex.parts import conj, imag, real
from .creation import as_tensor, asarray
from .elementwise import ceil, clip, floor, isnan, lerp, sqrt, where
from .elementwise import round as to_even
from .indexing import take_along_axis
from .products import matmul
from .reductions import Axis, mean
from .reductions import any as any_of
from .reductions import max as largest
from .reductions import min as smallest
from .reductions import sum as total
from .reshaping import expand, expand_dims, moveaxis, reshape
from .sorting import sort

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def median(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The middle element in order; of an even number of them the mean of the two in the middle, as in NumPy.

    >>> wg.median(wg.asarray([3.0, 1.0, 2.0, 10.0])).item()
    2.5
    """
    return _quantile("median", x, 0.5, axis, "midpoint", keepdims, skip=False)


def quantile(
    x: Tensor, q: Any, axis: int | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The numbers below which shares q of the elements lie; several shares are the first axis of the result.

    `method` says what lies between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    >>> wg.quantile(wg.asarray([1.0, 2.0, 4.0]), wg.asarray([0.0, 0.75])).tolist()
    [1.0, 3.0]
    """
    return _quantile("quantile", x, q, axis, method, keepdims, skip=False)


def nanquantile(
    x: Tensor, q: Any, axis: int | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where there are none.

    >>> wg.nanquantile(wg.asarray([1.0, wg.nan, 3.0]), 0.5).item()
    2.0
    """
    return _quantile("nanquantile", x, q, axis, method, keepdims, skip=True)


def percentile(
    x: Tensor, q: Any, axis: int | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`quantile` with shares in hundredths: q is from 0 to 100.

    >>> wg.percentile(wg.asarray([1.0, 2.0, 4.0]), 50).item()
    2.0
    """
    return _quantile("percentile", x, _hundredths("percentile", q), axis, method, keepdims, skip=False)


def nanpercentile(
    x: Tensor, q: Any, axis: int | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`percentile` of the elements that are not NaN; NaN where there are none.

    >>> wg.nanpercentile(wg.asarray([1.0, wg.nan, 3.0]), 50).item()
    2.0
    """
    return _quantile("nanpercentile", x, _hundredths("nanpercentile", q), axis, method, keepdims, skip=True)


def _hundredths(op: str, q: Any) -> Any:
    """Percentages as shares."""
    if isinstance(q, Tensor):
        return q / 100
    numbers = [float(each) for each in q] if _is_list(q) else [float(q)]
    if not all(0 <= each <= 100 for each in numbers):
        raise ArgumentError(f"{op}: q must be from 0 to 100, not {q!r}")
    return [each / 100 for each in numbers] if _is_list(q) else numbers[0] / 100


def average(x: Tensor, axis: Axis = None, weights: Tensor | None = None, *, keepdims: bool = False) -> Tensor:
    """The mean over axes with weights: as many as elements, or as there are along the one axis.

    >>> wg.average(wg.asarray([1.0, 4.0]), weights=wg.asarray([2.0, 1.0])).item()
    2.0
    """
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    x, weights = as_tensor("average", x), as_tensor("average", weights)
    if weights.shape != x.shape:
        axes = normalise_axes("average", axis, x.ndim)
        if axis is None or len(axes) != 1 or weights.shape != (x.shape[axes[0]],):
            raise ShapeError(
                f"average: weights of shape {weights.shape} for x of shape {x.shape}: they have its shape, "
                "or one dimension, as long as the axis that is named"
            )
        weights = reshape(weights, tuple(size if at in axes else 1 for at, size in enumerate(x.shape)))
    kind = x.dtype if x.dtype.kind in "fc" else dtypes.float32
    wide = expand(weights.astype(kind), x.shape)
    return total(x.astype(kind) * wide, axis, keepdims=keepdims) / total(wide, axis, keepdims=keepdims)


def ptp(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest element less the smallest, over axes.

    >>> wg.ptp(wg.asarray([1, 7, 3])).item()
    6
    """
    return largest(x, axis, keepdims=keepdims) - smallest(x, axis, keepdims=keepdims)


def _quantile(
    op: str, x: Any, q: Any, axis: int | None, method: str, keepdims: bool, *, skip: bool
) -> Tensor:
    x = as_tensor(op, x)
    check_kind(op, "biuf", x.dtype)
    if method not in METHODS:
        raise ArgumentError(f"{op}: method must be one of {', '.join(METHODS)}, not {method!r}")
    values = x if x.dtype.kind == "f" else x.astype(dtypes.float32)
    rank = x.ndim
    if axis is None or not rank:
        normalise_axes(op, axis, rank)
        axis, line = None, reshape(values, (-1,))
    else:
        axis = normalise_axis(op, axis, rank)
        line = moveaxis(values, axis, -1)
    if not line.shape[-1]:
        raise ShapeError(f"{op} of a tensor of shape {x.shape}: there are no elements to take it of")
    found = _between(sort(line), _shares(op, q, values), method, skip)
    if keepdims:
        ones = (1,) * rank
        found = reshape(found, (*found.shape[:1], *ones)) if axis is None else expand_dims(found, axis + 1)
    return found if _is_list(q) else found[0]


def _is_list(q: Any) -> bool:
    return bool(getattr(q, "ndim", 0)) or isinstance(q, (list, tuple))


def _shares(op: str, q: Any, like: Tensor) -> Tensor:
    """The shares, of one dimension."""
    if isinstance(q, Tensor):
        shares = q.astype(like.dtype, copy=False)
    else:
        numbers = [float(each) for each in q] if _is_list(q) else [float(q)]
        if not all(0 <= each <= 1 for each in numbers):
            raise ArgumentError(f"{op}: q must be from 0 to 1, not {q!r}")
        shares = asarray(numbers, like.dtype, device=like.device)
    if shares.ndim > 1:
        raise ShapeError(f"{op}: q must be a number or have one dimension, not the shape {shares.shape}")
    return reshape(shares, (-1,))


def _between(line: Tensor, q: Tensor, method: str, skip: bool) -> Tensor:
    """Elements of sorted lines at shares of their lengths; the shares are the first axis."""
    missing = isnan(line)
    last: Any = line.shape[-1] - 1
    wide = dtypes.float64 if line.dtype is dtypes.float64 else dtypes.float32
    if skip:
        there = line.shape[-1] - total(missing, axis=-1, keepdims=True)
        rank = clip(q.astype(wide) * (there - 1).astype(wide), 0, None)
    else:
        rank = where(any_of(missing, axis=-1, keepdims=True), last, q.astype(wide) * last)
    rank = expand(rank, (*line.shape[:-1], q.size))
    below = {"higher": ceil, "nearest": to_even}.get(method, floor)(rank)
    low = take_along_axis(line, below.astype(dtypes.int32), -1)
    if method in ("linear", "midpoint"):
        high = take_along_axis(line, ceil(rank).astype(dtypes.int32), -1)
        share = rank - below
        half = where(share > 0, 0.5, 0.0)
        low = lerp(low, high, (share if method == "linear" else half).astype(line.dtype))
    return moveaxis(low, -1, 0)


def cov(
    x: Tensor, *, correction: float = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of variables, which are rows; the columns are observations.

    Observations count `fweights` times, and have the weights `aweights`; sums are divided by their number
    less `correction`.

    >>> wg.cov(wg.asarray([[1.0, 2.0, 3.0], [1.0, 2.0, 6.0]])).tolist()
    [[1.0, 2.5], [2.5, 7.0]]
    """
    x = as_tensor("cov", x)
    if x.ndim > 2:
        raise ShapeError(f"cov takes variables in rows, one or two dimensions, not the shape {x.shape}")
    check_kind("cov", "biufc", x.dtype)
    values = x if x.dtype.kind in "fc" else x.astype(dtypes.float32)
    rows = reshape(values, (1, -1)) if x.ndim < 2 else values
    weights = _weights(rows, fweights, aweights)
    count: Any = rows.shape[1] if weights is None else total(weights)
    centred = rows - total(rows if weights is None else rows * weights, axis=1, keepdims=True) / count
    divisor = count - correction
    if weights is not None and aweights is not None and correction:
        divisor = count - correction * total(weights * as_tensor("cov", aweights)) / count
    divisor = max(divisor, 0) if weights is None else clip(divisor, 0, None)
    scaled = centred if weights is None else centred * weights
    product = matmul(scaled, conj(centred).mT)
    found = product / divisor if not (weights is None and divisor == 0) else product * float("nan")
    return reshape(found, ()) if x.ndim < 2 else found


def _weights(rows: Tensor, *given: Tensor | None) -> Tensor | None:
    """The product of the weights of observations."""
    found: Tensor | None = None
    for each in given:
        if each is None:
            continue
        weights = as_tensor("cov", each)
        if weights.shape != rows.shape[1:]:
            raise ShapeError(f"cov: weights of shape {weights.shape} for {rows.shape[1]} observations")
        kind = real(rows).dtype
        found = weights.astype(kind) if found is None else found * weights.astype(kind)
    return found


def corrcoef(x: Tensor) -> Tensor:
    """The correlation coefficients of variables, which are rows.

    >>> wg.corrcoef(wg.asarray([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    found = cov(x)
    if found.ndim == 0:
        return found / found
    deviation = sqrt(real(found.diagonal()))
    found = found / reshape(deviation, (-1, 1)) / deviation
    if found.dtype.kind == "c":
        return of_parts(clip(real(found), -1, 1), clip(imag(found), -1, 1))
    return clip(found, -1, 1)
