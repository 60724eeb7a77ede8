"""Distances between vectors, of which tensors hold many: between all of one and all of another.

In: tensors whose last axis is a vector. Out: tensors of floats.
"""

from __future__ import annotations

import math
from typing import Any

from ...errors import ArgumentError, ShapeError
from ...gradients.own import own_gradient
from ...tensor import Tensor
from ..pure import pure
from .elementwise import abs, as_floats, sign, where
from .reductions import sum as total
from .reductions import vector_norm
from .reshaping import expand_dims


@pure
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of differences of vectors, each of x1 (…, n, d) with each of x2 (…, m, d): (…, n, m).

    The gradient of a distance that is 0 is 0.

    >>> wg.cdist(wg.asarray([[0.0, 0.0]]), wg.asarray([[3.0, 4.0], [1.0, 0.0]])).tolist()
    [[5.0, 1.0]]
    """
    first, second = as_floats("cdist", x1, x2)
    if first.ndim < 2 or second.ndim < 2 or first.shape[-1] != second.shape[-1]:
        raise ShapeError(
            f"cdist of shapes {first.shape} and {second.shape}: it takes (…, n, d) and (…, m, d)"
        )
    if p < 0:
        raise ArgumentError(f"cdist: p is 0 or more, not {p}")
    return norm_of(expand_dims(first, -2) - expand_dims(second, -3), p)


def norm_of(difference: Tensor, p: float) -> Tensor:
    """The p-norm along the last axis, whose gradient is 0 where it is 0."""

    def slope(g: Tensor) -> Any:
        each = expand_dims(g, -1)
        length = expand_dims(vector_norm(difference, axis=-1, ord=p), -1)
        safe = where(length == 0, 1.0, length)
        if p == 0:
            return difference * 0
        if p == math.inf:
            largest = (abs(difference) == length) & (length > 0)
            return each * sign(difference) * largest.astype(difference.dtype)
        if p == 1:
            return each * sign(difference)
        size = abs(difference)
        share = where(size == 0, 0.0, (where(size == 0, 1.0, size) / safe) ** (p - 1))
        return each * sign(difference) * share * where(length == 0, 0.0, 1.0)

    if not difference.shape[-1]:
        return total(difference, axis=-1)
    return own_gradient(lambda: vector_norm(difference, axis=-1, ord=p), (difference, slope))
