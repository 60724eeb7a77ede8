"""torch.masked: reductions and the like of those elements that a mask has true.

In: a tensor, and a mask of bools that broadcasts to it; None keeps all. Out: tensors. What is masked out
counts as the number that changes nothing: 0 of a sum, 1 of a product, -inf of a maximum.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg
import webgrad.torch as torch

from .binding import absent, bind
from .pointwise import floats, pair
from .promotion import cast
from .reductions import axes, counted

__all__: list[str] = []

ROWS = """
[function]
sum(input, $some) = wg.sum(counted(kept(input, mask, 0), dtype), axes(dim), keepdims=keepdim, dtype=dtype)
prod(input, $some) = wg.prod(counted(kept(input, mask, 1), dtype), axes(dim), keepdims=keepdim,
    dtype=dtype)
amax(input, $some) = cast(wg.max(kept(input, mask, least(input)), axes(dim), keepdims=keepdim), dtype)
amin(input, $some) = cast(wg.min(kept(input, mask, most(input)), axes(dim), keepdims=keepdim), dtype)
mean(input, $some) = averaged(input, dim, keepdim, dtype, mask)
logsumexp(input, $some) = cast(torch.logsumexp(kept(floats(input), mask, -wg.inf),
    range(input.ndim) if dim is None else dim, keepdim), dtype or input.dtype)
norm(input, ord=2.0, $some) = sized(input, ord, axes(dim), keepdim, dtype, mask)
var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None) = spread(input,
    dim, unbiased, correction, keepdim, dtype, mask)
std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None) =
    wg.sqrt(spread(input, dim, unbiased, correction, keepdim, dtype, mask))
argmax(input, $some) = torch.argmax(kept(input, mask, least(input)), dim, keepdim).astype(dtype or
    input.dtype)
argmin(input, $some) = torch.argmin(kept(input, mask, most(input)), dim, keepdim).astype(dtype or
    input.dtype)
median(input, dim=-1, *, keepdim=False, dtype=None, mask=None) = middle(input, dim, keepdim, dtype, mask)
cumsum(input, dim, *, dtype=None, mask=None) = wg.cumsum(kept(input, mask, 0), dim, dtype=dtype or
    input.dtype)
cumprod(input, dim, *, dtype=None, mask=None) = wg.cumprod(kept(input, mask, 1), dim, dtype=dtype or
    input.dtype)
softmax(input, dim, *, dtype=None, mask=None) = wg.softmax(kept(cast(input, dtype), mask, -wg.inf), axis=dim)
log_softmax(input, dim, *, dtype=None, mask=None) = wg.log_softmax(kept(cast(input, dtype), mask, -wg.inf),
    axis=dim)
softmin(input, dim, *, dtype=None, mask=None) = wg.softmax(-kept(cast(input, dtype), mask, wg.inf), axis=dim)
normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None) = kept(input, mask, 0) /
    wg.maximum(sized(input, ord, dim, True, dtype, mask), eps)
logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None) = cast(pair(wg.logaddexp,
    kept(input, input_mask, -wg.inf), kept(other, other_mask, -wg.inf)), dtype or input.dtype)
"""
SHORT = {"$some": "dim=None, *, keepdim=False, dtype=None, mask=None"}


def kept(x: Any, mask: Any, otherwise: Any) -> Any:
    """x where the mask is true, and a number elsewhere."""
    if mask is None:
        return x
    if mask.ndim > x.ndim:
        raise IndexError("mask must have the dimensions of the input, or fewer")
    return wg.where(mask.bool(), x, wg.asarray(otherwise, dtype=x.dtype, device=x.device))


def least(x: Any) -> Any:
    """The least number of a dtype."""
    return -wg.inf if x.dtype.kind == "f" else wg.iinfo(x.dtype).min


def most(x: Any) -> Any:
    """The largest number of a dtype."""
    return wg.inf if x.dtype.kind == "f" else wg.iinfo(x.dtype).max


def count(x: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    """How many elements are kept."""
    shape = tuple(x.shape)
    there = wg.ones(shape, dtype=wg.bool, device=x.device) if mask is None else mask.bool()
    return wg.count_nonzero(wg.broadcast_to(there, shape), axes(dim), keepdims=keepdim)


def averaged(x: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    """The mean of what is kept; NaN of nothing."""
    wanted = dtype or x.dtype
    if wanted.kind not in "fc":
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {wanted.name}"
        )
    total = wg.sum(kept(x, mask, 0), axes(dim), keepdims=keepdim, dtype=wanted)
    return total / count(x, dim, keepdim, mask).astype(wanted)


def sized(x: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    """The norm of what is kept."""
    given = kept(cast(x, dtype), mask, wg.inf if ord == -wg.inf else 0)
    return wg.vector_norm(given, axis=dim, keepdims=keepdim, ord=ord)


def spread(x: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    """The variance of what is kept, divided by its number less the correction."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    wanted = dtype or (x.dtype if x.dtype.kind in "fc" else wg.float32)
    given = x.astype(wanted, copy=False)
    away = given - averaged(given, dim, True, None, mask)
    total = wg.sum(kept(away * wg.conj(away), mask, 0), axes(dim), keepdims=keepdim)
    number = count(x, dim, keepdim, mask).astype(wg.real(total).dtype)
    return total / wg.maximum(number - correction, 0).astype(wanted)


def middle(x: Any, dim: int, keepdim: bool, dtype: Any, mask: Any) -> Any:
    """The median of what is kept; of integers there must be one in every row."""
    found = torch.nanmedian(kept(floats(x), mask, wg.nan), dim, keepdim).values
    if x.dtype.kind == "f":
        return found
    if wg.any(wg.isnan(found)).item():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.astype(dtype or x.dtype)


_functions = bind(ROWS, globals(), SHORT)
globals().update(_functions)
__all__ += _functions
__getattr__ = absent(__name__, __all__)
