"""Products of tensors: matrices, vectors, and Einstein's notation.

In: tensors. Out: tensors made of contract nodes (batched matrix products) with movement around them, or of a
multiplication and one sum where there is no matrix in it. 16-bit floats are multiplied and summed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dtypes import promote
from ...errors import ShapeError
from ...graph.node import Node
from ...ops import primitives
from ...ops.shapes import check_kind, normalise_axis
from ...tensor import Tensor
from ..complex.parts import conj
from ..learning.autocast import in_half
from ..pure import pure
from .creation import as_tensor
from .einsum import contracted, parse
from .reductions import converted, fold, widened
from .reshaping import moveaxis, wholes

if TYPE_CHECKING:
    from ..learning.quantised import QuantisedTensor


def _pair(op: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two tensors of numbers on one device, brought to one dtype, or a complex one and that of its parts."""
    first, second = primitives.factors(op, (as_tensor(op, a).node, as_tensor(op, b).node))
    check_kind(op, "iufc", first.sig.dtype)
    return Tensor(first), Tensor(second)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """The sum of products along the last axis, which both have."""
    result = fold("sum", widened(a) * widened(b), (max(a.ndim, b.ndim) - 1,))
    return converted(result, promote(a.dtype, b.dtype))


@pure
@in_half
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product, of stacks of matrices too; a vector is a row on the left and a column on the right.

    >>> wg.matmul(wg.asarray([[1, 2], [3, 4]]), wg.asarray([1, 1])).tolist()
    [3, 7]
    """
    a, b = _pair("matmul", a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"matmul of {a.shape} and {b.shape}: a number is not a matrix; multiply with *")
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise ShapeError(
            f"matmul of {a.shape} and {b.shape}: the last axis of the first and the last but one of the "
            "second (of a vector its only one) must have the same size; transpose one with .mT, or reshape"
        )
    if a.ndim == b.ndim == 1:
        return _inner(a, b)
    left = primitives.reshape(a.node, (1, *a.shape)) if a.ndim == 1 else a.node
    right = primitives.reshape(b.node, (*b.shape, 1)) if b.ndim == 1 else b.node
    result = primitives.contract(left, right)
    if a.ndim == 1:
        return Tensor(primitives.reshape(result, (*b.shape[:-2], b.shape[-1])))
    return Tensor(primitives.reshape(result, a.shape[:-1]) if b.ndim == 1 else result)


@pure
def vecdot(a: Tensor, b: Tensor, axis: int = -1) -> Tensor:
    """The inner products of vectors along an axis, the first conjugated; the other axes broadcast.

    >>> wg.vecdot(wg.asarray([[1, 2], [3, 4]]), wg.asarray([1, 1])).tolist()
    [3, 7]
    """
    a, b = _pair("vecdot", a, b)
    first, second = (normalise_axis("vecdot", axis, each.ndim) for each in (a, b))
    if a.shape[first] != b.shape[second]:
        raise ShapeError(
            f"vecdot of {a.shape} and {b.shape} along axis {axis}: vectors of {a.shape[first]} and "
            f"{b.shape[second]} elements have no inner product"
        )
    return _inner(conj(moveaxis(a, first, -1)), moveaxis(b, second, -1))


def dot(a: Tensor, b: Tensor) -> Tensor:
    """NumPy's dot: of vectors the inner product, of matrices the matrix product, with a number a multiple.

    With more axes, it sums over the last of `a` and the last but one of `b`; the other axes do not broadcast,
    as they do in matmul.

    >>> wg.dot(wg.asarray([1, 2]), wg.asarray([3, 4])).item()
    11
    """
    a, b = _pair("dot", a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, ((-1,), (-2,)))


@pure
def outer(a: Tensor, b: Tensor) -> Tensor:
    """The products of every element of one tensor with every element of another, both flattened.

    >>> wg.outer(wg.asarray([1, 2]), wg.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    a, b = _pair("outer", a, b)
    return Tensor(primitives.reshape(a.node, (a.size, 1))) * Tensor(primitives.reshape(b.node, (b.size,)))


@pure
@in_half
def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[int | Sequence[int]] = 2) -> Tensor:
    """The sum of products over axes of both: the last n of `a` and the first n of `b`, or pairs of axes.

    >>> wg.tensordot(wg.ones((2, 3, 4)), wg.ones((3, 4, 5))).shape
    (2, 5)
    """
    a, b = _pair("tensordot", a, b)
    first, second = _summed_axes(a, b, axes)
    if [a.shape[each] for each in first] != [b.shape[each] for each in second]:
        raise ShapeError(
            f"tensordot of {a.shape} and {b.shape} over the axes {first} and {second}: their sizes must be "
            "equal"
        )
    rows = [axis for axis in range(a.ndim) if axis not in first]
    columns = [axis for axis in range(b.ndim) if axis not in second]
    labels = {axis: a.ndim + at for at, axis in enumerate(columns)} | dict(zip(second, first, strict=True))
    return contracted(
        "tensordot",
        [a, b],
        [list(range(a.ndim)), [labels[axis] for axis in range(b.ndim)]],
        [*rows, *[labels[axis] for axis in columns]],
    )


def _summed_axes(a: Tensor, b: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, Sequence):
        if len(axes) != 2:
            raise ShapeError(f"tensordot: axes are a number or a pair (axes of a, axes of b), not {axes!r}")
        first, second = (
            [normalise_axis("tensordot", axis, x.ndim) for axis in wholes("tensordot", "an axis", each)]
            for x, each in zip((a, b), axes, strict=True)
        )
    else:
        (count,) = wholes("tensordot", "the number of axes", axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot of {a.shape} and {b.shape}: they do not both have {count} axes")
        first, second = list(range(a.ndim - count, a.ndim)), list(range(count))
    if len(first) != len(second) or len(set(first)) != len(first) or len(set(second)) != len(second):
        raise ShapeError(f"tensordot over {axes!r}: give as many axes of one as of the other, each once")
    return first, second


@pure
@in_half
def einsum(subscripts: Any, *operands: Any) -> Tensor:
    """Einstein's sums of products, as NumPy writes them: "bij,bjk->bik"; "..." and diagonals too.

    >>> wg.einsum("ij,j->i", wg.asarray([[1, 2], [3, 4]]), wg.asarray([1, 1])).tolist()
    [3, 7]
    """
    tensors, labels, output = parse(subscripts, operands)
    nodes: Sequence[Node] = primitives.factors("einsum", [each.node for each in tensors])
    check_kind("einsum", "iufc", nodes[0].sig.dtype)
    return contracted("einsum", [Tensor(each) for each in nodes], labels, output)


@pure
@in_half
def linear(x: Tensor, weight: Tensor | QuantisedTensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias, with a weight of (outputs, inputs) as in PyTorch, or a quantised one.

    >>> wg.linear(wg.asarray([1.0, 2.0]), wg.asarray([[1.0, 1.0]]), wg.asarray([0.5])).tolist()
    [3.5]
    """
    if isinstance(weight, Tensor) or not hasattr(weight, "dequantise"):
        x, weight = _pair("linear", x, weight)
    else:
        x = as_tensor("linear", x)
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear of x {x.shape} with weight {weight.shape}: the weight is (outputs, inputs), and the "
            "last axis of x must have size inputs"
        )
    if isinstance(weight, Tensor):
        product = matmul(x, Tensor(primitives.permute(weight.node, (1, 0))))
    else:
        product = x @ weight.T
    return with_bias("linear", product, bias)


def with_bias(op: str, result: Tensor, bias: Tensor | None) -> Tensor:
    """The outputs of a linear layer, along the last axis, plus a number for each; None adds nothing."""
    if bias is None:
        return result
    bias = as_tensor(op, bias)
    outputs = result.shape[-1]
    if bias.ndim > result.ndim or bias.size not in (1, outputs) or any(size != 1 for size in bias.shape[:-1]):
        raise ShapeError(f"{op}: the bias {bias.shape} must be one number for each of the {outputs} outputs")
    return result + bias
