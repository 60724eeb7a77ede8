"""Draws that a tensor describes, and PyTorch's names of others: `wg.multinomial`, `wg.randn_like` …

In: tensors of probabilities, tensors to be like, lengths. Out: tensors of random numbers, of the generator
that all functions of `wg.random` share, or of one that is given.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..errors import ArgumentError, ShapeError
from ..ops.shapes import check_kind
from ..runtime.device import DeviceLike
from ..tensor import Tensor
from .array.creation import arange, as_tensor
from .array.elementwise import log, minimum, where
from .array.reductions import max as largest
from .array.reductions import sum as total
from .array.reshaping import expand_dims
from .array.scans import cumsum
from .array.sorting import topk
from .random import Generator, default_generator, seed

manual_seed = seed


def rand_like(x: Tensor, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """Floats from 0 to 1 in the shape of a tensor, in its dtype and on its device if no others are given.

    >>> wg.rand_like(wg.ones((2, 3))).shape
    (2, 3)
    """
    return default_generator.uniform(x.shape, **_like("rand_like", x, dtype, device))


def randn_like(x: Tensor, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """Normally distributed floats in the shape of a tensor, in its dtype and on its device if no others are
    given.

    >>> wg.randn_like(wg.ones((2, 3))).shape
    (2, 3)
    """
    return default_generator.normal(x.shape, **_like("randn_like", x, dtype, device))


def randint_like(
    x: Tensor, low: int, high: int | None = None, dtype: Any = None, *, device: DeviceLike = None
) -> Tensor:
    """Integers from `low` (0 where only one is given) up to and without `high`, in the shape of a tensor.

    >>> wg.randint_like(wg.zeros(3, dtype=wg.int32), 5).shape
    (3,)
    """
    options = _like("randint_like", x, dtype, device)
    wanted = options["dtype"]
    drawn = dtypes.int32 if wanted.kind == "f" else wanted
    found = default_generator.integers(low, high, x.shape, drawn, options["device"])
    return found.astype(wanted, copy=False)


def _like(op: str, x: Any, dtype: Any, device: DeviceLike) -> dict[str, Any]:
    """The dtype and the device of a tensor, or others."""
    x = as_tensor(op, x)
    wanted = x.dtype if dtype is None else dtypes.as_dtype(dtype)
    return {"dtype": wanted, "device": x.device if device is None else device}


def randperm(n: int, *, device: DeviceLike = None, generator: Generator | None = None) -> Tensor:
    """The numbers below n in random order: `wg.random.permutation`, by PyTorch's name.

    >>> sorted(wg.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    return (generator or default_generator).permutation(n, device=device)


def multinomial(
    x: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Places along the last axis, drawn with chances in proportion to the elements there, as int32.

    Without `replacement` a place is drawn at most once: there must be as many elements above 0 as draws.

    >>> wg.multinomial(wg.asarray([0.0, 3.0, 0.0]), 4, replacement=True).tolist()
    [1, 1, 1, 1]
    """
    x = as_tensor("multinomial", x)
    check_kind("multinomial", "f", x.dtype)
    if x.ndim not in (1, 2) or not x.shape[-1]:
        raise ShapeError(f"multinomial takes one or two axes with elements along the last, not {x.shape}")
    if num_samples < 1 or (not replacement and num_samples > x.shape[-1]):
        raise ArgumentError(
            f"multinomial: cannot draw {num_samples} of {x.shape[-1]} places"
            f"{'' if replacement else ' without replacement'}"
        )
    source, weights = generator or default_generator, x.astype(dtypes.float32)
    if not replacement:
        waiting = -log(1 - source.uniform(x.shape, device=x.device))  # until each happens, at these rates
        return topk(where(weights > 0, weights / waiting, -1.0), num_samples)[1]
    ends = cumsum(weights, -1)
    place = arange(x.shape[-1], device=x.device)
    last = largest(where(weights > 0, place, 0), axis=-1, keepdims=True)  # a draw may round up to the total
    drawn = source.uniform((*x.shape[:-1], num_samples), device=x.device) * ends[..., -1:]
    return minimum(total(expand_dims(ends, -2) <= expand_dims(drawn, -1), axis=-1), last)
