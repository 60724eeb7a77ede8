"""Sorting: sorted elements and their indices, the largest ones, and searching in a sorted tensor.

In: tensors of any dtype. Out: values, or int32 indices. Sorting is stable: equal elements stay in the order
they were in, -0 and +0 are equal, and NaN is larger than every number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

from ... import dtypes
from ...dtypes import promote
from ...errors import ArgumentError, DeviceError, DTypeError, ShapeError
from ...graph.node import Node, make
from ...ops import primitives
from ...ops.primitives import elementwise
from ...ops.shapes import check_kind, normalise_axis
from ...ops.table import TABLE
from ...tensor import Tensor
from .creation import as_tensor
from .reshaping import of_one


def sort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis. NaN comes last; first where `descending`.

    It is always stable; `stable` is accepted as in the array API.

    >>> wg.sort(wg.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    x = _orderable("sort", x)
    if not x.shape:
        return of_one(sort, x, axis)

    def in_order(line: Node) -> Node:
        return primitives.take_along(line, _sorted_indices(line, descending), x.ndim - 1)

    return Tensor(_along_last(x.node, normalise_axis("sort", axis, x.ndim), in_order))


def argsort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices, int32, that sort an axis; in the order of `sort`.

    >>> wg.argsort(wg.asarray([30, 10, 20])).tolist()
    [1, 2, 0]
    """
    x = _orderable("argsort", x)
    if not x.shape:
        return of_one(argsort, x, axis)
    places = partial(_sorted_indices, descending=descending)
    return Tensor(_along_last(x.node, normalise_axis("argsort", axis, x.ndim), places))


def topk(
    x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis, and their indices.

    They are always sorted, whatever `sorted` is; of equal ones the first comes first. NaN is the largest.

    >>> [each.tolist() for each in wg.topk(wg.asarray([3, 1, 4, 1, 5]), 2)]
    [[5, 4], [4, 2]]
    """
    x = _orderable("topk", x)
    if not x.shape:
        return of_one(lambda x, axis: topk(x, k, axis), x, axis)
    along = normalise_axis("topk", axis, x.ndim)
    size = x.shape[along]
    try:
        count = index(k)
    except TypeError:
        raise ArgumentError(f"topk: k must be an integer, not {k!r}") from None
    if not 0 <= count <= size:
        raise ShapeError(
            f"topk: k must be from 0 to {size}, the size of axis {along} of {x.shape}, not {count}"
        )
    indices = _along_last(x.node, along, partial(_sorted_indices, descending=largest, count=count))
    return Tensor(primitives.take_along(x.node, indices, along)), Tensor(indices)


def _orderable(op: str, x: Any) -> Tensor:
    """A tensor whose elements have an order: complex numbers have none."""
    tensor = as_tensor(op, x)
    check_kind(op, "biuf", tensor.dtype)
    return tensor


def searchsorted(x1: Tensor, x2: Tensor | float, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The indices, int32, at which to insert elements of x2 into x1, sorted, so that it stays sorted.

    Where x1 has several axes, it is lines along the last one, and x2 has elements for each of them. `side`:
    left or right of equal elements. `sorter`: argsort(x1), where x1 is not sorted.

    >>> wg.searchsorted(wg.asarray([1, 3, 5]), wg.asarray([0, 3, 9])).tolist()
    [0, 1, 3]
    """
    line = _orderable("searchsorted", x1)
    values = _orderable("searchsorted", _as_operand(x2, line))
    if not line.ndim or (line.ndim > 1 and line.shape[:-1] != values.shape[:-1]):
        raise ShapeError(
            f"searchsorted takes a sorted tensor of one dimension, or as many lines as x2 has, not the "
            f"shapes {line.shape} and {values.shape}"
        )
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    if line.device is not values.device:
        raise DeviceError(
            f"searchsorted: x1 is on {line.device.name}, x2 on {values.device.name}: move one with to_device"
        )
    common = promote(line.dtype, values.dtype)
    ordered = primitives.cast(line.node, common)
    if sorter is not None:
        ordered = primitives.take_along(ordered, _sorter_node(sorter, line), line.ndim - 1)
    if line.ndim > 1:
        return _searched(Tensor(ordered), Tensor(primitives.cast(values.node, common)), side)
    return Tensor(make(TABLE["search_places"], (ordered, primitives.cast(values.node, common)), (side,)))


def _searched(lines: Tensor, values: Tensor, side: str) -> Tensor:
    """Binary search in each line by itself."""
    size = lines.shape[-1]
    zero = primitives.constant("searchsorted", 0, dtypes.int32, lines.device)
    low = Tensor(primitives.expand(zero, values.shape))
    if not size or not values.size:
        return low
    high = low + size
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        at = elementwise(TABLE["minimum"], middle.node, size - 1)
        before = _is_before(Tensor(primitives.take_along(lines.node, at, lines.ndim - 1)), values, side)
        before = before & (low < high)
        low = Tensor(primitives.choose(before.node, (middle + 1).node, low.node))
        high = Tensor(primitives.choose(before.node, high.node, middle.node))
    return low


def _is_before(x: Tensor, value: Tensor, side: str) -> Tensor:
    """Whether an element comes before a value; NaN comes last."""
    if side == "left":
        return (x < value) | ((value != value) & (x == x))
    return (x <= value) | (value != value)


def _as_operand(value: Any, line: Tensor) -> Any:
    """A number as a tensor of the dtype it has in arithmetic with `line`; anything else as it is."""
    if not isinstance(value, (bool, int, float)):
        return value
    dtype = dtypes.dtype_of_scalar(value, line.dtype)
    return Tensor(primitives.constant("searchsorted", value, dtype, line.device))


def _sorter_node(sorter: Tensor, line: Tensor) -> Node:
    indices = as_tensor("searchsorted", sorter)
    if indices.shape != line.shape or indices.dtype.kind not in "iu":
        raise DTypeError(
            f"searchsorted: sorter must be argsort(x1), integers of shape {line.shape}, "
            f"not {indices.dtype.name} of shape {indices.shape}"
        )
    return indices.node


def _sorted_indices(x: Node, descending: bool, count: int | None = None) -> Node:
    """The indices, int32, that sort the last axis; with `count` only the first so many."""
    whole = x.sig.shape[-1] if count is None else count
    return make(TABLE["sort_places"], (x,), (descending, whole))


def _along_last(x: Node, axis: int, function: Callable[[Node], Node]) -> Node:
    """A function of the last axis, of another one."""
    rank = len(x.sig.shape)
    last = (*(each for each in range(rank) if each != axis), axis)
    done = function(primitives.permute(x, last))
    return primitives.permute(done, tuple(last.index(each) for each in range(rank)))
