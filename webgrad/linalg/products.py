"""Products, sums and norms of matrices and vectors: computed on the device, when they are needed.

In: tensors. Out: tensors made of webgrad's own functions. Only norms that are made of singular values, and
negative powers, may go through the host.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg
from webgrad import Tensor

from .matrices import given, ready, refuse_oblong, restored, stacked, wide

__all__ = [
    "cross",
    "diagonal",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "trace",
]


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements that lie along an axis; the other axes broadcast.

    >>> wg.linalg.cross(wg.asarray([1, 0, 0]), wg.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    first, second = given("cross", x1), given("cross", x2)
    for x in (first, second):
        if x.dtype is wg.bool:
            raise wg.DTypeError("linalg.cross is not offered for bool: convert with x.astype(webgrad.int32)")
        if not hasattr(axis, "__index__") or not -x.ndim <= axis < x.ndim:
            raise wg.AxisError(f"linalg.cross: there is no axis {axis!r} in a tensor of shape {x.shape}")
        if x.shape[axis] != 3:
            raise wg.ShapeError(
                f"linalg.cross of {first.shape} and {second.shape} along axis {axis}: vectors have three "
                f"elements, and {x.shape} has {x.shape[axis]} there"
            )
    a, b = (wg.moveaxis(each, axis, -1) for each in (first, second))
    (a0, a1, a2), (b0, b1, b2) = ([each[..., at] for at in range(3)] for each in (a, b))
    return wg.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices along the last two axes; a positive offset lies above the main one.

    >>> wg.linalg.diagonal(wg.asarray([[1, 2], [3, 4]]), offset=1).tolist()
    [2]
    """
    return wg.diagonal(stacked("diagonal", x), offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices along the last two axes; dtypes as of `webgrad.sum`.

    >>> wg.linalg.trace(wg.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return wg.sum(wg.diagonal(stacked("trace", x), offset, -2, -1), axis=-1, dtype=dtype)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of n equal matrices, by squaring; of a negative n that of their inverses.

    Inverses are those of `inv`.

    >>> wg.linalg.matrix_power(wg.asarray([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    power = stacked("matrix_power", x)
    if not hasattr(n, "__index__"):
        raise wg.ArgumentError(f"linalg.matrix_power: the exponent must be an integer, not {n!r}")
    refuse_oblong("matrix_power", power)
    left = n.__index__()
    if left < 0:
        power, left = wg.linalg.inv(power), -left
    if left == 0:
        whole: Tensor = _identities(power)
        return whole
    factors: list[Tensor] = []  # x to those powers of two that n is the sum of
    while left:
        if left & 1:
            factors.append(power)
        left >>= 1
        power = power @ power if left else power
    return functools.reduce(lambda left, right: left @ right, factors)


@wg.custom_gradient
def _identities(x: Tensor) -> Any:
    """The identity for each matrix of a stack, whatever it is: the gradient is 0."""
    one = wg.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return wg.broadcast_to(one, x.shape), wg.zeros_like


def multi_dot(tensors: Sequence[Tensor], /) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors.

    >>> wg.linalg.multi_dot([wg.ones((2, 3)), wg.ones((3, 4)), wg.ones(4)]).tolist()
    [12.0, 12.0]
    """
    factors = [given("multi_dot", each) for each in tensors]
    if len(factors) < 2:
        raise wg.ArgumentError(f"linalg.multi_dot takes two tensors or more, not {len(factors)}")
    is_row, is_column = factors[0].ndim == 1, factors[-1].ndim == 1
    if is_row:
        factors[0] = factors[0][None, :]
    if is_column:
        factors[-1] = factors[-1][:, None]
    for left, right in itertools.pairwise(factors):
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise wg.ShapeError(
                f"linalg.multi_dot of {[each.shape for each in tensors]}: all but the first and the last are "
                "matrices, and the columns of each are as many as the rows of the next"
            )
    result = _chained(factors, _cuts([factors[0].shape[0], *(each.shape[1] for each in factors)]))
    if is_column:
        result = result[:, 0]
    return result[0] if is_row else result


def _cuts(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to cut each run of a chain of matrices, so that there is least to multiply."""
    count = len(sizes) - 1
    cost = {(at, at): 0 for at in range(count)}
    cuts = {}
    for length in range(1, count):
        for start in range(count - length):
            end = start + length
            choices = [
                (cost[start, cut] + cost[cut + 1, end] + sizes[start] * sizes[cut + 1] * sizes[end + 1], cut)
                for cut in range(start, end)
            ]
            cost[start, end], cuts[start, end] = min(choices)
    return cuts


def _chained(factors: list[Tensor], cuts: dict[tuple[int, int], int]) -> Tensor:
    def run(start: int, end: int) -> Tensor:
        if start == end:
            return factors[start]
        cut = cuts[start, end]
        return run(start, cut) @ run(cut + 1, end)

    return run(0, len(factors) - 1)


# Norms


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norms of matrices along the last two axes: "fro", "nuc", 1, -1, 2, -2, inf, -inf; None is "fro".

    "nuc", 2 and -2 are made of singular values, as `svdvals` has them.

    >>> wg.linalg.matrix_norm(wg.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1).item()
    6.0
    """
    matrices = ready("matrix_norm", x)
    if ord is None or (isinstance(ord, str) and ord == "fro"):
        result = wg.vector_norm(matrices, axis=(-2, -1), keepdims=True)
    elif (isinstance(ord, str) and ord == "nuc") or ord in (2, -2):
        values = wg.linalg.svdvals(matrices)[..., None]
        result = wg.sum(values, axis=(-2, -1), keepdims=True) if ord == "nuc" else _extreme(values, ord)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = wg.sum(wg.abs(matrices), axis=-2 if abs(ord) == 1 else -1, keepdims=True)
        result = _extreme(sums, ord)
    else:
        raise wg.ArgumentError(
            f"linalg.matrix_norm: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}"
        )
    return restored(result if keepdims else result[..., 0, 0], x)


def _extreme(values: Tensor, ord: float) -> Tensor:
    """The largest for a positive order, 0 of none; the smallest for a negative one."""
    if ord > 0 and 0 in values.shape[-2:]:
        return wg.zeros((*values.shape[:-2], 1, 1), dtype=values.dtype, device=values.device)
    return (wg.max if ord > 0 else wg.min)(values, axis=(-2, -1), keepdims=True)


def norm(
    x: Tensor,
    /,
    ord: Any = None,
    axis: int | tuple[int, int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """NumPy's and PyTorch's norm: of vectors along one axis, of matrices along two.

    Without an axis it is of the whole of a vector or a matrix; without an order the square root of the sum of
    all squares, whatever the shape.

    >>> wg.linalg.norm(wg.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    values = wide("norm", given("norm", x))
    if axis is None and ord is None:
        return restored(wg.vector_norm(values, keepdims=keepdims), x)
    if axis is None:
        if values.ndim not in (1, 2):
            raise wg.ShapeError(
                f"linalg.norm(ord={ord!r}) of a tensor of shape {values.shape}: say along which axis vectors "
                "lie, or along which two matrices do"
            )
        axis = 0 if values.ndim == 1 else (0, 1)
    if not isinstance(axis, Sequence):
        return restored(
            wg.vector_norm(values, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord), x
        )
    if len(axis) != 2:
        raise wg.AxisError(f"linalg.norm: axis is one number, or two for matrices, not {axis!r}")
    result = matrix_norm(wg.moveaxis(values, axis, (-2, -1)), keepdims=keepdims, ord=ord)
    return restored(wg.moveaxis(result, (-2, -1), axis) if keepdims else result, x)
