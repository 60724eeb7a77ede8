"""Orders and what follows from them: sorts, medians, quantiles, sets, places in a sorted tensor, counts.

In: tensors of real numbers, `dim` and `keepdim`. Out: tensors, or named pairs of values and indices. Of equal
elements the first comes first, which torch leaves open.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from . import return_types as _return_types
from .binding import bind
from .reductions import index as integers
from .reductions import numbered, single
from .shapes_of import axis_of
from .tensor import Array

__all__ = ["functions"]

return_types: Any = _return_types  # whose names a table makes

ROWS = """
[function method out]
sort(input, dim=-1, descending=False, *, stable=False) = ordered(input, dim, descending)
msort(input) = ordered(input, 0, False).values
topk(input, k, dim=-1, largest=True, sorted=True) = largest_of(input, k, dim, largest, sorted)
kthvalue(input, k, dim=-1, keepdim=False) = ranked(return_types.kthvalue, input, rank_of(input, k, dim), dim,
    keepdim)
median(input, dim=None, keepdim=False) = middle(return_types.median, input, dim, keepdim, False)
nanmedian(input, dim=None, keepdim=False) = middle(return_types.nanmedian, input, dim, keepdim, True)
mode(input, dim=-1, keepdim=False) = commonest(input, dim, keepdim)
quantile(input, q, dim=None, keepdim=False, *, interpolation="linear") = shared(wg.quantile, "quantile",
    input, q, dim, keepdim, interpolation)
nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear") = shared(wg.nanquantile,
    "nanquantile", input, q, dim, keepdim, interpolation)
histc(input, bins=100, min=0, max=0) = counted(input, bins, min, max)

[function method]
argsort(input, dim=-1, descending=False, *, stable=False) = ordered(input, dim, descending).indices
searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None) =
    places(sorted_sequence, input, sided(right, side), sorter, out_int32)
bincount(input, weights=None, minlength=0) = occurrences(input, weights, minlength)
isin(elements, test_elements, *, assume_unique=False, invert=False) = wg.isin(elements, test_elements,
    invert=invert)
unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None) = distinct(wg.unique, input,
    return_inverse, return_counts, dim)
unique_consecutive(input, return_inverse=False, return_counts=False, dim=None) =
    distinct(wg.unique_consecutive, input, return_inverse, return_counts, dim)
histogram(input, bins, *, range=None, weight=None, density=False, out=None) = histogram_of(input, bins, range,
    weight, density)

[function]
bucketize(input, boundaries, *, out_int32=False, right=False) = places(boundaries, input, sided(right, None),
    None, out_int32)
histogramdd(input, bins, *, range=None, weight=None, density=False) = histogram_of_rows(input, bins, range,
    weight, density)
"""


def ordered(x: Any, dim: int, descending: bool) -> Any:
    """Sorted values and where they were; equal ones stay in order."""
    if not x.ndim:
        return single(return_types.sort, x, dim)
    found = wg.argsort(numbered(x), dim, descending=descending, stable=True)
    return return_types.sort(wg.take_along_axis(x, found, dim), integers(found))


def largest_of(x: Any, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    """The k largest and where they were."""
    if not x.ndim:
        return single(return_types.topk, x, dim)
    values, found = wg.topk(x, k, axis=dim, largest=largest, sorted=sorted)
    return return_types.topk(values, integers(found))


def rank_of(x: Any, k: int, dim: int) -> int:
    """The k-th as counted from 0."""
    size = x.shape[dim] if x.ndim else 1
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return k - 1


def ranked(kind: Any, x: Any, rank: Any, dim: int, keepdim: bool) -> Any:
    """The element of each line that comes at a rank, and where it is."""
    if not x.ndim:
        return single(kind, x, dim)
    order = wg.argsort(numbered(x), dim, stable=True)
    if isinstance(rank, int):
        rank = wg.full(
            [1 if each == axis_of(dim, x.ndim) else size for each, size in enumerate(x.shape)],
            rank,
            wg.int32,
            device=x.device,
        )
    found = wg.take_along_axis(order, rank, dim)
    best = wg.take_along_axis(x, found, dim)
    return kind(*(each if keepdim else wg.squeeze(each, dim) for each in (best, integers(found))))


def middle(kind: Any, x: Any, dim: int | None, keepdim: bool, skip: bool) -> Any:
    """The element in the middle, the lower one of two; all elements that equal it share its gradient."""
    if dim is None:
        line = wg.reshape(x, (-1,))
        if not line.shape[0]:
            return wg.full((), math.nan if x.dtype.kind == "f" else 0, x.dtype, device=x.device)
        found = middle(kind, line.detach(), 0, False, skip).values
        if not x.requires_grad:
            return found
        same = (line == found) | (wg.isnan(line) & wg.isnan(found))
        return wg.max(wg.where(same, line, -math.inf))
    if not x.ndim:
        return single(kind, x, dim)
    missing = wg.sum(wg.isnan(x), dim, keepdims=True, dtype=wg.int32)
    size = x.shape[dim]
    last = wg.full_like(missing, size - 1)
    if not size:
        raise IndexError(f"{kind.__name__}(): Expected reduction dim {dim} to have non-zero size.")
    rank = wg.clip((last - missing) // 2, 0, None) if skip else wg.where(missing > 0, last, last // 2)
    return ranked(kind, x, rank, dim, keepdim)


def commonest(x: Any, dim: int, keepdim: bool) -> Any:
    """The element that occurs most often in each line, the smallest of several, and where it is last."""
    if not x.ndim:
        return single(return_types.mode, x, dim)
    order = wg.moveaxis(wg.argsort(numbered(x), dim, stable=True), dim, -1)
    line = wg.take_along_axis(wg.moveaxis(numbered(x), dim, -1), order, -1).detach()
    count = line.shape[-1]
    if not count:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    at = wg.arange(count, device=x.device)
    begins = wg.concat(
        [wg.ones_like(line[..., :1], dtype=wg.bool), differ(line[..., 1:], line[..., :-1])], -1
    )
    length = at - wg.cummax(wg.where(begins, at, 0), -1)
    best = wg.argmax(length, -1, keepdims=True)
    found = wg.moveaxis(wg.take_along_axis(order, best, -1), -1, dim)
    values = wg.take_along_axis(x, found, dim)
    pair = (values, integers(found))
    return return_types.mode(*(each if keepdim else wg.squeeze(each, dim) for each in pair))


def differ(first: Any, second: Any) -> Any:
    """Whether elements are not the same; NaN is itself here."""
    return (first != second) & ~((first != first) & (second != second))


def shared(
    function: Any, name: str, x: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Any:
    """Quantiles; torch takes floats of one dtype."""
    if x.dtype not in (wg.float32, wg.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if isinstance(q, Array) and q.dtype is not x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not x.ndim:
        return function(wg.reshape(x, (1,)), q, method=interpolation)
    return function(x, q, dim, method=interpolation, keepdims=keepdim)


def sided(right: bool, side: str | None) -> str:
    """Left or right of equal elements."""
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right "
            "was True"
        )
    return side or ("right" if right else "left")


def places(line: Any, values: Any, side: str, sorter: Any, narrow: bool) -> Any:
    """Where values would be put into sorted lines, as torch's integers or of 32 bits."""
    found = wg.searchsorted(line, values, side=side, sorter=sorter)
    return found.astype(wg.int32) if narrow else integers(found)


def occurrences(x: Any, weights: Any, minlength: int) -> Any:
    """How often integers occur; weights are added in float64, unless they are float32."""
    if weights is None:
        return integers(wg.bincount(x, None, minlength))
    kind = weights.dtype if weights.dtype is wg.float32 else wg.float64
    return wg.bincount(x, weights.astype(kind), minlength)


def distinct(function: Any, x: Any, inverse: bool, counts: bool, dim: int | None) -> Any:
    """Distinct elements or slices, and as torch's integers where each is, and how often."""
    found = function(x, return_inverse=inverse, return_counts=counts, axis=dim)
    if not (inverse or counts):
        return found
    return (found[0], *map(integers, found[1:]))


def bounds_of(x: Any, low: float, high: float) -> tuple[float, float]:
    """The bounds given, or those of the values; a number alone lies in the middle of 2."""
    if low == high and x.numel():
        low, high = wg.min(x).item(), wg.max(x).item()
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return float(low), float(high)


def counted(x: Any, bins: int, low: Any, high: Any) -> Any:
    """How many elements lie in bins of one width."""
    counts, _ = wg.histogram(x, bins, bounds_of(x, low, high))
    return counts.astype(x.dtype)


def histogram_of(x: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    """Counts, or sums of weights, and the edges of bins, in the dtype of the elements."""
    if isinstance(bins, tuple | list) and len(bins) == 1:
        bins = bins[0]
    found = wg.histogram(x, bins, range, weight, density)
    return return_types.histogram(*(each.astype(x.dtype) for each in found))


def histogram_of_rows(x: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    """Points, which are rows, counted in boxes."""
    points = wg.reshape(x, (-1, x.shape[-1]))
    pairs = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    given = None if weight is None else wg.reshape(weight, (-1,))
    counts, edges = wg.histogramdd(points, bins, pairs, given, density)
    return return_types.histogramdd(counts.astype(x.dtype), edges)


functions = bind(ROWS, globals())
