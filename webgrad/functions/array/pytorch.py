"""Functions by PyTorch's names, where NumPy and the array API have another name or no such function.

In: tensors. Out: tensors. Arguments come in PyTorch's order; an axis is called `axis`, or `dim`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...graph.node import Node
from ...ops.primitives import constant
from ...ops.shapes import normalise_axis
from ...tensor import Tensor, operand
from ..pure import pure
from .calculus import trapezoid
from .creation import as_tensor as tensor_of
from .creation import asarray
from .elementwise import (
    clip,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    multiply,
    negative,
    not_equal,
    subtract,
    where,
)
from .indexing import take, take_along_axis
from .manipulation import concat, unstack
from .pieces import array_split
from .products import matmul, outer
from .reductions import Axis, mean, std, var
from .reductions import max as largest
from .reductions import min as smallest
from .reshaping import broadcast_arrays, moveaxis, reshape, swapaxes
from .sorting import searchsorted

as_tensor = asarray
broadcast_tensors = broadcast_arrays
cat = concat
ger = outer
movedim = moveaxis
swapdims = swapaxes
take_along_dim = take_along_axis
tensor_split = array_split
trapz = trapezoid
unbind = unstack
amax = largest
amin = smallest
sub = subtract
mul = multiply
div = divide
neg = negative
eq = equal
ne = not_equal
gt = greater
ge = greater_equal
lt = less
le = less_equal


def gather(x: Tensor, axis: int, index: Any) -> Tensor:
    """Elements of an axis, by an index for each; along the other axes the index may be smaller than x.

    >>> wg.gather(wg.asarray([[1, 2], [3, 4]]), 1, wg.asarray([[1], [0]])).tolist()
    [[2], [3]]
    """
    return _gathered(tensor_of("gather", x), axis, tensor_of("gather", index))


@pure
def _gathered(x: Tensor, axis: int, index: Tensor) -> Tensor:
    if not x.shape:
        return take(x, index, axis)
    at = normalise_axis("gather", axis, x.ndim)
    sizes = list(zip(index.shape, x.shape, strict=False))
    if index.ndim != x.ndim or any(i > s for place, (i, s) in enumerate(sizes) if place != at):
        raise ShapeError(
            f"gather along axis {axis}: an index of shape {index.shape} for x of shape {x.shape}; it must "
            "have as many axes, and no larger sizes on the others"
        )
    part = tuple(slice(None) if place == at else slice(0, i) for place, (i, _) in enumerate(sizes))
    return take_along_axis(x[part], index, at)


def index_select(x: Tensor, axis: int, index: Any) -> Tensor:
    """Slices of an axis by their indices.

    >>> wg.index_select(wg.asarray([[1, 2], [3, 4]]), 1, wg.asarray([1])).tolist()
    [[2], [4]]
    """
    return take(x, index, axis=axis)


def masked_fill(x: Tensor, mask: Any, value: Any) -> Tensor:
    """x with one value wherever the mask is true; it stays in its dtype, to which the value is converted.

    >>> wg.masked_fill(wg.asarray([1.0, 2.0]), wg.asarray([True, False]), 0.0).tolist()
    [0.0, 2.0]
    """
    x = tensor_of("masked_fill", x)
    number = operand("masked_fill", value, x.node)
    if isinstance(number, Node) or number is NotImplemented:
        return where(mask, tensor_of("masked_fill", value).astype(x.dtype), x)
    return where(mask, Tensor(constant("masked_fill", number, x.dtype, x.device)), x)


def mm(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices.

    >>> wg.mm(wg.ones((2, 3)), wg.ones((3, 4))).shape
    (2, 4)
    """
    return _product("mm", a, b, 2)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """The products of matrices, pair by pair.

    >>> wg.bmm(wg.ones((5, 2, 3)), wg.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    return _product("bmm", a, b, 3)


def _product(op: str, a: Any, b: Any, axes: int) -> Tensor:
    first, second = tensor_of(op, a), tensor_of(op, b)
    if first.ndim != axes or second.ndim != axes or first.shape[:-2] != second.shape[:-2]:
        raise ShapeError(
            f"{op} of shapes {first.shape} and {second.shape}: it takes two tensors of {axes} axes"
            f"{', as many matrices each' if axes > 2 else ''}; matmul broadcasts"
        )
    return matmul(first, second)


def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * (a @ b), of matrices.

    >>> wg.addmm(wg.ones(2), wg.asarray([[1.0, 2.0]]), wg.eye(2), alpha=10).tolist()
    [[11.0, 21.0]]
    """
    return _added(x, mm(a, b), beta, alpha)


def addmv(x: Tensor, a: Tensor, v: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * (a @ v), of a matrix and a vector.

    >>> wg.addmv(wg.ones(2), wg.eye(2), wg.asarray([1.0, 2.0]), beta=0).tolist()
    [1.0, 2.0]
    """
    return _added(x, matmul(a, v), beta, alpha)


def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * x + alpha * (a @ b), of as many pairs of matrices as there are.

    >>> wg.baddbmm(wg.ones((1, 1)), wg.ones((2, 1, 3)), wg.ones((2, 3, 1))).tolist()
    [[[4.0]], [[4.0]]]
    """
    return _added(x, bmm(a, b), beta, alpha)


def _added(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * x + alpha * product; where beta is 0 nothing of x counts, NaN neither."""
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (x if beta == 1 else x * beta) + scaled


def numel(x: Tensor | Sequence[Any]) -> int:
    """How many elements there are.

    >>> wg.numel(wg.ones((2, 3)))
    6
    """
    return tensor_of("numel", x).size


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor.

    >>> wg.is_tensor(wg.ones(1)), wg.is_tensor([1.0])
    (True, False)
    """
    return isinstance(x, Tensor)


def is_floating_point(x: Tensor) -> bool:
    """Whether the elements are floats.

    >>> wg.is_floating_point(wg.ones(1))
    True
    """
    return tensor_of("is_floating_point", x).dtype.kind == "f"


def clamp_min(x: Tensor, min: Any) -> Tensor:
    """No element below a bound.

    >>> wg.clamp_min(wg.asarray([-1.0, 2.0]), 0.0).tolist()
    [0.0, 2.0]
    """
    return clip(x, min, None)


def clamp_max(x: Tensor, max: Any) -> Tensor:
    """No element above a bound.

    >>> wg.clamp_max(wg.asarray([-1.0, 2.0]), 0.0).tolist()
    [-1.0, 0.0]
    """
    return clip(x, None, max)


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask is true, as a line; the two broadcast. It computes the mask, and waits.

    >>> wg.masked_select(wg.asarray([1, 2, 3]), wg.asarray([True, False, True])).tolist()
    [1, 3]
    """
    x, mask = broadcast_arrays(tensor_of("masked_select", x), tensor_of("masked_select", mask))
    return x[mask]


def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """A part of an axis, as a view.

    >>> wg.narrow(wg.asarray([[1, 2, 3]]), 1, 1, 2).tolist()
    [[2, 3]]
    """
    x = tensor_of("narrow", x)
    at = normalise_axis("narrow", axis, x.ndim)
    first = start + x.shape[at] if start < 0 else start
    if not 0 <= first <= first + length <= x.shape[at]:
        raise ShapeError(f"narrow: axis {axis} of shape {x.shape} has no {length} elements from {start} on")
    return x[(slice(None),) * at + (slice(first, first + length),)]


def unflatten(x: Tensor, axis: int, sizes: Sequence[int]) -> Tensor:
    """An axis as several; one of their sizes may be -1.

    >>> wg.unflatten(wg.ones((2, 6)), 1, (3, -1)).shape
    (2, 3, 2)
    """
    x = tensor_of("unflatten", x)
    at = normalise_axis("unflatten", axis, x.ndim)
    return reshape(x, (*x.shape[:at], *_divided(x.shape[at], tuple(sizes)), *x.shape[at + 1 :]))


def _divided(size: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    known = math.prod(each for each in sizes if each != -1)
    found = tuple(size // max(known, 1) if each == -1 else each for each in sizes)
    if sizes.count(-1) > 1 or math.prod(found) != size:
        raise ShapeError(f"unflatten: an axis of {size} elements is not of the sizes {sizes}")
    return found


def mv(a: Tensor, v: Tensor) -> Tensor:
    """The product of a matrix and a vector.

    >>> wg.mv(wg.eye(2), wg.asarray([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    first, second = tensor_of("mv", a), tensor_of("mv", v)
    if (first.ndim, second.ndim) != (2, 1):
        raise ShapeError(f"mv of shapes {first.shape} and {second.shape}: it takes a matrix and a vector")
    return matmul(first, second)


def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    """x + value * a * b.

    >>> wg.addcmul(wg.ones(2), wg.ones(2), wg.asarray([1.0, 2.0]), value=10).tolist()
    [11.0, 21.0]
    """
    return x + (a * b if value == 1 else a * b * value)


def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    """x + value * a / b.

    >>> wg.addcdiv(wg.ones(2), wg.ones(2), wg.asarray([1.0, 2.0]), value=2).tolist()
    [3.0, 2.0]
    """
    return x + (a / b if value == 1 else a / b * value)


def std_mean(
    x: Tensor, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over axes.

    >>> [each.item() for each in wg.std_mean(wg.asarray([1.0, 3.0]))]
    [1.0, 2.0]
    """
    return std(x, axis, correction=correction, keepdims=keepdims), mean(x, axis, keepdims=keepdims)


def var_mean(
    x: Tensor, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    """The variance and the mean over axes.

    >>> [each.item() for each in wg.var_mean(wg.asarray([1.0, 3.0]))]
    [1.0, 2.0]
    """
    return var(x, axis, correction=correction, keepdims=keepdims), mean(x, axis, keepdims=keepdims)


def aminmax(x: Tensor, axis: Axis = None, *, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element over axes.

    >>> [each.item() for each in wg.aminmax(wg.asarray([3, 1, 2]))]
    [1, 3]
    """
    return smallest(x, axis, keepdims=keepdims), largest(x, axis, keepdims=keepdims)


def bucketize(x: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """The number, int32, of the bin between increasing boundaries in which each element lies.

    A bin has its upper boundary, or with `right` its lower one: the other way round than in `digitize`.

    >>> wg.bucketize(wg.asarray([0.5, 1.0, 9.0]), wg.asarray([0.0, 1.0, 2.0])).tolist()
    [1, 1, 3]
    """
    return searchsorted(boundaries, x, side="right" if right else "left")
