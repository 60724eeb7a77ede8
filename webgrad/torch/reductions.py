"""Reductions, orders and scans: sums, extremes with their places, statistics, norms, sorts, cumulative forms.

In: tensors, `dim` and `keepdim`. Out: tensors, or named pairs of values and indices, as torch gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from . import return_types as _return_types
from .binding import bind
from .defaults import integer_of
from .pointwise import floats, pair
from .promotion import cast, matched
from .shapes_of import axis_of
from .tensor import Array

__all__ = ["functions", "single"]

return_types: Any = _return_types  # whose names a table makes

ROWS = """
[function method out]
sum(input, dim=None, keepdim=False, *, dtype=None) = wg.sum(counted(input, dtype), axes(dim),
    keepdims=keepdim, dtype=dtype)
nansum(input, dim=None, keepdim=False, *, dtype=None) = wg.sum(wg.where(wg.isnan(input), 0, counted(input,
    dtype)), axes(dim), keepdims=keepdim, dtype=dtype)
prod(input, dim=None, keepdim=False, *, dtype=None) = product(counted(input, dtype), dim, keepdim)
mean(input, dim=None, keepdim=False, *, dtype=None) = wg.mean(averaged("mean", input, dtype), axes(dim),
    keepdims=keepdim)
nanmean(input, dim=None, keepdim=False, *, dtype=None) = nanmean_of(averaged("nanmean", input, dtype),
    axes(dim), keepdim)
all(input, dim=None, keepdim=False) = truth(wg.all, input, dim, keepdim)
any(input, dim=None, keepdim=False) = truth(wg.any, input, dim, keepdim)
amax(input, dim=(), keepdim=False) = wg.max(input, axes(dim), keepdims=keepdim)
amin(input, dim=(), keepdim=False) = wg.min(input, axes(dim), keepdims=keepdim)
argmax(input, dim=None, keepdim=False) = index(wg.argmax(numbered(input), dim, keepdims=keepdim))
argmin(input, dim=None, keepdim=False) = index(wg.argmin(numbered(input), dim, keepdims=keepdim))
max(input, dim=None, keepdim=False, *, other=None) = extremum(wg.max, wg.argmax, wg.maximum, "max", input, dim
    if other is None else other, keepdim)
min(input, dim=None, keepdim=False, *, other=None) = extremum(wg.min, wg.argmin, wg.minimum, "min", input, dim
    if other is None else other, keepdim)
logsumexp(input, dim, keepdim=False) = wg.logsumexp(floats(input), axes(dim), keepdims=keepdim)
std(input, dim=None, unbiased=None, keepdim=False, *, correction=None) = spread(wg.std, input, dim, unbiased,
    keepdim, correction)
var(input, dim=None, unbiased=None, keepdim=False, *, correction=None) = spread(wg.var, input, dim, unbiased,
    keepdim, correction)
logcumsumexp(input, dim) = wg.logcumsumexp(input, dim)
cummax(input, dim) = running(wg.cummax, "cummax", input, dim)
cummin(input, dim) = running(wg.cummin, "cummin", input, dim)
aminmax(input, *, dim=None, keepdim=False) = return_types.aminmax(wg.min(input, dim, keepdims=keepdim),
    wg.max(input, dim, keepdims=keepdim))
diff(input, n=1, dim=-1, prepend=None, append=None) = wg.diff(input, n, dim, prepend, append)
norm(input, p="fro", dim=None, keepdim=False, dtype=None) = norm_of(input, p, dim, keepdim, dtype)

[function method in_place out]
cumsum(input, dim, *, dtype=None) = wg.cumsum(counted(input, dtype), dim)
cumprod(input, dim, *, dtype=None) = wg.cumprod(counted(input, dtype), dim)
renorm(input, p, dim, maxnorm) = renormed(input, p, dim, maxnorm)

[function method]
count_nonzero(input, dim=None) = index(wg.count_nonzero(input, axes(dim)))
softmax(input, dim, dtype=None) = wg.softmax(cast(input, dtype), axis=dim)
log_softmax(input, dim, dtype=None) = wg.log_softmax(cast(input, dtype), axis=dim)

dist(input, other, p=2) = wg.vector_norm(floats(input - other), ord=p)
cov(input, *, correction=1, fweights=None, aweights=None) = wg.squeeze(wg.cov(input if aweights is None else
    matched(input, aweights)[0], correction=correction, fweights=fweights, aweights=aweights))
corrcoef(input) = wg.squeeze(wg.corrcoef(input))

[function]
trapezoid trapz(y, x=None, *, dx=1, dim=-1) = wg.trapezoid(y, x, dx=dx, axis=dim)
cumulative_trapezoid(y, x=None, *, dx=1, dim=-1) = wg.cumulative_trapezoid(y, x, dx=dx, axis=dim)
gradient(input, *, spacing=1, dim=None, edge_order=1) = slopes(input, spacing, dim, edge_order)
std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None) = with_mean(wg.std, input, dim,
    unbiased, keepdim, correction)
var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None) = with_mean(wg.var, input, dim,
    unbiased, keepdim, correction)
"""


def axes(dim: Any) -> Any:
    """No dimensions are all of them."""
    return None if dim is None or (isinstance(dim, tuple | list) and not dim) else dim


def counted(x: Any, dtype: Any) -> Any:
    """Sums and products of integers and bools are int64."""
    if dtype is not None:
        return cast(x, dtype)
    return x if x.dtype.kind in "fc" else x.astype(integer_of(x.device))


def product(x: Any, dim: Any, keepdim: bool) -> Any:
    """The product; of bools, whether all are true."""
    return (wg.all if x.dtype is wg.bool else wg.prod)(x, dim, keepdims=keepdim)


def averaged(name: str, x: Any, dtype: Any) -> Any:
    """What has a mean: floats and complex numbers."""
    if dtype is not None:
        return cast(x, dtype)
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {x.dtype.name}"
        )
    return x


def nanmean_of(x: Any, dim: Any, keepdim: bool) -> Any:
    """The mean of what is no NaN."""
    there = ~wg.isnan(x)
    total = wg.sum(wg.where(there, x, 0), dim, keepdims=keepdim)
    return total / wg.sum(there, dim, keepdims=keepdim).astype(x.dtype)


def truth(function: Callable[..., Any], x: Any, dim: Any, keepdim: bool) -> Any:
    """all and any, whose results for uint8 are uint8."""
    found = function(x, axes(dim), keepdims=keepdim)
    return found.astype(wg.uint8) if x.dtype is wg.uint8 else found


def index(places: Any) -> Any:
    """Indices as torch's integers."""
    return places.astype(integer_of(places.device))


def numbered(x: Any) -> Any:
    """Bools as integers."""
    return x.astype(wg.uint8) if x.dtype is wg.bool else x


def single(kind: Any, x: Any, dim: int) -> Any:
    """What a tensor without dimensions has along its only one: its value, at 0."""
    axis_of(dim, 0)
    return kind(x.clone(), index(wg.zeros_like(x, dtype=wg.int32)))


def extremum(
    values: Callable[..., Any],
    places: Callable[..., Any],
    binary: Callable[..., Any],
    name: str,
    x: Any,
    dim: Any,
    keepdim: bool,
) -> Any:
    """The largest or smallest of all, of two tensors, or along a dimension with its index."""
    if dim is None:
        return values(numbered(x)).astype(x.dtype)
    if isinstance(dim, Array):
        return pair(binary, x, dim)
    kind = getattr(return_types, name)
    if not x.ndim:
        return single(kind, x, dim)
    given = numbered(x)
    found = index(places(given, dim, keepdims=True))
    best = wg.take_along_axis(x, found, dim)
    return kind(*(each if keepdim else wg.squeeze(each, dim) for each in (best, found)))


def spread(
    function: Callable[..., Any], x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    """var and std: by n - 1 where nothing is said."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if x.dtype.kind not in "fc":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    if correction is None:
        correction = 0 if unbiased is False else 1
    return function(x, axes(dim), correction=correction, keepdims=keepdim)


def with_mean(
    function: Callable[..., Any], x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    """A spread, and the mean."""
    along = None if isinstance(dim, bool) else axes(dim)
    return spread(function, x, dim, unbiased, keepdim, correction), wg.mean(x, along, keepdims=keepdim)


def running(function: Callable[..., Any], name: str, x: Any, dim: int) -> Any:
    """Cumulative extremes, and where each was last found."""
    kind = getattr(return_types, name)
    if not x.ndim:
        return single(kind, x, dim)
    best = function(x, dim)
    shape = [1] * x.ndim
    shape[dim] = x.shape[dim]
    places = wg.arange(x.shape[dim], device=x.device).reshape(shape)
    here = (x == best) | wg.isnan(x) if x.dtype.kind == "f" else x == best
    return kind(best, index(wg.cummax(wg.where(here, places, 0).detach(), dim)))


def renormed(x: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Slices of a dimension whose norms are larger than they may be, scaled down to that."""
    others = tuple(each for each in range(x.ndim) if each != axis_of(dim, x.ndim))
    norms = wg.vector_norm(x, axis=others, keepdims=True, ord=p)
    return x * wg.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


def slopes(x: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    """torch.gradient: by one distance, or by one, or places, for each dimension."""
    steps = list(spacing) if isinstance(spacing, tuple | list) else [1 if spacing is None else spacing]
    steps = [wg.real(each) if isinstance(each, Array) else each for each in steps]
    return tuple(wg.gradient(x, *steps, axis=dim, edge_order=edge_order))


def norm_of(x: Any, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """torch.norm: of vectors by a number, of matrices by a name."""
    x = cast(x, dtype)
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            + x.dtype.name.title()
        )
    if p == "nuc":
        return wg.linalg.norm(x, "nuc", dim, keepdim)
    return wg.vector_norm(x, axis=axes(dim), keepdims=keepdim, ord=2 if p in (None, "fro") else p)


functions = bind(ROWS, globals())
