"""Other shapes and orders of axes: the same elements, reshaped, broadcast, permuted, flipped.

In: a tensor, and a shape or axes as Python numbers. Out: a tensor made of movement nodes, which cost no
kernel of their own. Everything is checked at the call; NumPy's names and meanings, PyTorch's where NumPy has
none.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...arrays import np
from ...errors import AxisError, DTypeError, ShapeError
from ...graph.node import Node
from ...ops import primitives, shapes
from ...ops.shapes import broadcast, normalise_axes, normalise_axis
from ...tensor import Tensor, view
from .creation import as_shape, as_tensor

Result = TypeVar("Result", Tensor, tuple[Tensor, Tensor])

Shape = tuple[int, ...]


def whole(op: str, what: str, value: Any) -> int:
    """A user's argument as an int; an error that names the op where it is not an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise DTypeError(f"{op}: {what} must be an integer, not {value!r}") from None


def wholes(op: str, what: str, value: Any) -> Shape:
    """A user's integer or sequence of integers as a tuple; a tensor is read."""
    if value.__class__ is tuple and _INT.issuperset(map(type, value)):
        return value
    value = value.tolist() if isinstance(value, (np.ndarray, Tensor)) and value.ndim else value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(whole(op, what, each) for each in value)
    return (whole(op, what, value),)


_INT = frozenset((int,))


def part(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """Elements start, start + step, … of one axis; all of them exist."""
    whole = primitives.whole_ranges(x.node.sig.shape)
    return view(x, (primitives.slice_, (*whole[:axis], (start, stop, step), *whole[axis + 1 :])))


def axis_slice(x: Node, axis: int, start: int, stop: int) -> Node:
    """Elements start to stop of one axis, which may count from the last, as a node of its own and no view."""
    whole = primitives.whole_ranges(x.sig.shape)
    axis %= len(whole)
    return primitives.slice_(x, (*whole[:axis], (start, stop, 1), *whole[axis + 1 :]))


# Shapes


def reshape(x: Tensor, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """The same elements in another shape; one size may be -1 and follows from the others.

    >>> wg.reshape(wg.arange(6), (2, -1)).shape
    (2, 3)
    """
    x = as_tensor("reshape", x)
    sizes = wholes("reshape", "a size", shape)
    if min(sizes, default=0) < 0:
        if min(sizes) < -1 or sizes.count(-1) > 1:
            raise ShapeError(
                f"reshape of {x.shape} to {sizes}: sizes are 0 or more, and only one of them may be -1"
            )
        known = math.prod(size for size in sizes if size != -1)
        if known == 0 or x.size % known:
            raise ShapeError(
                f"reshape of {x.shape} ({x.size:,} elements) to {sizes}: no number in place of -1 makes "
                "that many"
            )
        sizes = tuple(x.size // known if size == -1 else size for size in sizes)
    if copy:
        return Tensor(primitives.reshape(x.node, sizes))
    return view(x, (primitives.reshape, sizes), kind="reshape" if copy is None else "strict")


def flatten(x: Tensor, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """Axes start_axis to end_axis merged into one.

    >>> wg.flatten(wg.zeros((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = as_tensor("flatten", x)
    if x.ndim == 0:
        return view(x, (primitives.reshape, (1,)))
    start, end = (normalise_axis("flatten", each, x.ndim) for each in (start_axis, end_axis))
    if start > end:
        raise AxisError(
            f"flatten: axis {start_axis} comes after axis {end_axis} in a tensor of shape {x.shape}"
        )
    joined = math.prod(x.shape[start : end + 1])
    return view(x, (primitives.reshape, (*x.shape[:start], joined, *x.shape[end + 1 :])), kind="reshape")


def squeeze(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """x without axes of size 1: without those named, or without all.

    >>> wg.squeeze(wg.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """
    x = as_tensor("squeeze", x)
    if axis is None:
        return view(x, (primitives.reshape, tuple(size for size in x.shape if size != 1)))
    axes = normalise_axes("squeeze", axis, x.ndim)
    for each in axes:
        if x.shape[each] != 1:
            raise ShapeError(
                f"squeeze: axis {each} of a tensor of shape {x.shape} has size {x.shape[each]}, not 1; take "
                "one element with x[…, 0], or reduce the axis"
            )
    return view(x, (primitives.reshape, tuple(s for each, s in enumerate(x.shape) if each not in axes)))


def expand_dims(x: Tensor, axis: int | Sequence[int] = 0) -> Tensor:
    """New axes of size 1, at these axes of the result.

    >>> wg.expand_dims(wg.zeros((2, 3)), -1).shape
    (2, 3, 1)
    """
    x = as_tensor("expand_dims", x)
    rank = x.ndim + (len(axis) if isinstance(axis, Sequence) else 1)
    axes = normalise_axes("expand_dims", axis, rank)
    sizes = iter(x.shape)
    return view(x, (primitives.reshape, tuple(1 if each in axes else next(sizes) for each in range(rank))))


unsqueeze = expand_dims


def broadcast_to(x: Tensor, shape: int | Sequence[int]) -> Tensor:
    """x repeated along axes of size 1 and new leading ones, without a copy.

    >>> wg.broadcast_to(wg.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    x = as_tensor("broadcast_to", x)
    sizes = wholes("broadcast_to", "a size", shape)
    if any(size < 0 for size in sizes):
        raise ShapeError(f"broadcast_to: {sizes} is not a shape; sizes are 0 or more")
    return view(x, (primitives.expand, sizes))


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Tensors broadcast to their common shape.

    >>> [each.shape for each in wg.broadcast_arrays(wg.zeros((3, 1)), wg.zeros(2))]
    [(3, 2), (3, 2)]
    """
    found = [as_tensor("broadcast_arrays", each) for each in arrays]
    if not found:
        return ()
    shape = shapes.broadcast("broadcast_arrays", [each.shape for each in found])
    return tuple(view(each, (primitives.expand, shape)) for each in found)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that shapes broadcast to; () without arguments.

    >>> wg.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    return broadcast("broadcast_shapes", [as_shape("broadcast_shapes", each) for each in shapes or ((),)])


def expand(x: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """`broadcast_to`, where -1 keeps the size of an axis, as in PyTorch.

    >>> wg.expand(wg.zeros((3, 1)), -1, 4).shape
    (3, 4)
    """
    x = as_tensor("expand", x)
    sizes = wholes("expand", "a size", shape[0] if len(shape) == 1 else shape)
    new = len(sizes) - x.ndim
    if any(size < 0 and (size != -1 or axis < new) for axis, size in enumerate(sizes)):
        raise ShapeError(
            f"expand of {x.shape} to {sizes}: sizes are 0 or more, -1 only for an axis that x has"
        )
    kept = tuple(x.shape[axis - new] if size == -1 else size for axis, size in enumerate(sizes))
    return view(x, (primitives.expand, kept))


def of_one(function: Callable[..., Result], x: Tensor, axis: int | None, *options: Any) -> Result:
    """A function along an axis, of a tensor that has none: as of one element, for axis 0 or -1."""
    found = function(reshape(x, (1,)), axis, *options)
    if isinstance(found, tuple):
        first, second = found
        return reshape(first, ()), reshape(second, ())
    return reshape(found, ())


# The order of axes, and of elements along them


def permute_dims(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The axes in another order: axis i of the result is axis axes[i] of x.

    >>> wg.permute_dims(wg.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permuted("permute_dims", as_tensor("permute_dims", x), axes)


def _permuted(op: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    numbers = wholes(op, "an axis", axes)
    found = tuple(normalise_axis(op, axis, x.ndim) for axis in numbers)
    if sorted(found) != list(range(x.ndim)):
        raise AxisError(f"{op}: {numbers} must name each of the {x.ndim} axes of {x.shape} once")
    return view(x, (primitives.permute, found))


def transpose(x: Tensor, *axes: int | Sequence[int] | None) -> Tensor:
    """The axes in reverse order; in the order of a tuple, as NumPy; two of them exchanged, as PyTorch.

    >>> x = wg.zeros((2, 3, 4))
    >>> wg.transpose(x).shape, wg.transpose(x, (1, 0, 2)).shape, wg.transpose(x, 1, 2).shape
    ((4, 3, 2), (3, 2, 4), (2, 4, 3))
    """
    x = as_tensor("transpose", x)
    if not axes or axes == (None,):
        return _permuted("transpose", x, range(x.ndim)[::-1])
    if len(axes) == 1 and isinstance(axes[0], Sequence):
        return _permuted("transpose", x, axes[0])
    numbers = wholes("transpose", "an axis", axes)
    return swapaxes(x, *numbers) if len(numbers) == 2 else _permuted("transpose", x, numbers)


def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged.

    >>> wg.swapaxes(wg.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = as_tensor("swapaxes", x)
    first, second = (normalise_axis("swapaxes", each, x.ndim) for each in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return view(x, (primitives.permute, tuple(order)))


def matrix_transpose(x: Tensor) -> Tensor:
    """The last two axes exchanged.

    >>> wg.matrix_transpose(wg.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = as_tensor("matrix_transpose", x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: a tensor of shape {x.shape} has no two axes; reshape it first")
    return swapaxes(x, -2, -1)


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Axes moved to other positions; the others keep their order.

    >>> wg.moveaxis(wg.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor("moveaxis", x)
    sources, destinations = (
        [normalise_axis("moveaxis", each, x.ndim) for each in wholes("moveaxis", "an axis", axes)]
        for axes in (source, destination)
    )
    if not len(sources) == len(destinations) == len(set(sources)) == len(set(destinations)):
        raise AxisError(
            f"moveaxis from {source} to {destination}: give as many destinations as sources, each once"
        )
    rest = iter([axis for axis in range(x.ndim) if axis not in sources])
    moved = dict(zip(destinations, sources, strict=True))
    return view(
        x, (primitives.permute, tuple(moved[at] if at in moved else next(rest) for at in range(x.ndim)))
    )


def flip(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements in reverse order along axes, or along all.

    >>> wg.flip(wg.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    x = as_tensor("flip", x)
    return Tensor(primitives.flip(x.node, normalise_axes("flip", axis, x.ndim)))
