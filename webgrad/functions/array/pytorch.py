"""Functions by PyTorch's names, where NumPy and the array API have another name or no such function.

In: tensors. Out: tensors. Arguments come in PyTorch's order; an axis is called `axis`, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...graph.node import Node
from ...ops.primitives import constant
from ...ops.shapes import normalise_axis
from ...tensor import Tensor, operand
from .creation import as_tensor
from .elementwise import (
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
from .products import matmul
from .reductions import max as largest
from .reductions import min as smallest

cat = concat
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
    x = as_tensor("gather", x)
    index = as_tensor("gather", index)
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
    x = as_tensor("masked_fill", x)
    number = operand("masked_fill", value, x.node)
    if isinstance(number, Node) or number is NotImplemented:
        return where(mask, as_tensor("masked_fill", value).astype(x.dtype), x)
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
    first, second = as_tensor(op, a), as_tensor(op, b)
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
    return as_tensor("numel", x).size
