"""Sorting: sorted elements and their indices, the largest ones, and searching in a sorted tensor.

In: tensors of any dtype. Out: values, or int32 indices. Elements become unsigned keys of the same order, so
that one primitive sorts them all; the cpu sorts them as they are. Sorting is stable: equal elements stay in
the order they were in, -0 and +0 are equal, and NaN is larger than every number.
"""

from __future__ import annotations

import math
from operator import index
from typing import Any

from ... import dtypes
from ...dtypes import promote
from ...errors import ArgumentError, DeviceError, DTypeError, ShapeError
from ...graph.node import Node, make
from ...graph.op import Op
from ...ops import primitives
from ...ops.capabilities import sorts_elements
from ...ops.primitives import elementwise
from ...ops.shapes import check_kind, normalise_axis
from ...ops.table import TABLE
from ...tensor import Tensor
from .creation import as_tensor
from .reshaping import axis_slice

__all__ = ["argsort", "searchsorted", "sort", "topk"]

MAX_SORTED_WHOLE = 8192  # elements: up to here all of them are sorted, whatever is wanted,
MIN_SELECTED_SHARE = 32  # and where more than one of so many is wanted
_INFINITIES = {
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float32": 0x7F800000,
    "float64": 0x7FF0000000000000,
}


def sort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis. NaN comes last; first where `descending`.

    It is always stable; `stable` is accepted as in the array API.

    >>> wg.sort(wg.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    x = _orderable("sort", x)
    along = normalise_axis("sort", axis, x.ndim)
    if sorts_elements(x.device):
        return Tensor(_along_last(x.node, along, TABLE["sort_values"], (descending,)))
    return Tensor(primitives.take_along(x.node, _order(x.node, along, descending), along))


def argsort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices, int32, that sort an axis; in the order of `sort`.

    >>> wg.argsort(wg.asarray([30, 10, 20])).tolist()
    [1, 2, 0]
    """
    x = _orderable("argsort", x)
    return Tensor(_order(x.node, normalise_axis("argsort", axis, x.ndim), descending))


def topk(
    x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis, and their indices.

    They are always sorted, whatever `sorted` is; of equal ones the first comes first. NaN is the largest.

    >>> [each.tolist() for each in wg.topk(wg.asarray([3, 1, 4, 1, 5]), 2)]
    [[5, 4], [4, 2]]
    """
    x = _orderable("topk", x)
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
    indices = _order(x.node, along, descending=largest, count=count)
    return Tensor(primitives.take_along(x.node, indices, along)), Tensor(indices)


def _orderable(op: str, x: Any) -> Tensor:
    """A tensor whose elements have an order: complex numbers have none."""
    tensor = as_tensor(op, x)
    check_kind(op, "biuf", tensor.dtype)
    return tensor


def searchsorted(x1: Tensor, x2: Tensor | float, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The indices, int32, at which to insert elements of x2 into x1, 1-d and sorted, so that it stays sorted.

    `side`: left or right of equal elements. `sorter`: argsort(x1), where x1 is not sorted.

    >>> wg.searchsorted(wg.asarray([1, 3, 5]), wg.asarray([0, 3, 9])).tolist()
    [0, 1, 3]
    """
    line = _orderable("searchsorted", x1)
    values = _orderable("searchsorted", _as_operand(x2, line))
    if line.ndim != 1:
        raise ShapeError(f"searchsorted takes a sorted tensor of one dimension, not of shape {line.shape}")
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    if line.device is not values.device:
        raise DeviceError(
            f"searchsorted: x1 is on {line.device.name}, x2 on {values.device.name}: move one with to_device"
        )
    common = promote(line.dtype, values.dtype)
    if sorts_elements(line.device):
        ordered = primitives.cast(line.node, common)
        if sorter is not None:
            ordered = primitives.take(ordered, _sorter_node(sorter, line), 0)
        found = make(TABLE["search_places"], (ordered, primitives.cast(values.node, common)), (side,))
        return Tensor(found)
    keys = _keys(primitives.cast(line.node, common))
    if sorter is not None:
        keys = primitives.take(keys, _sorter_node(sorter, line), 0)
    return Tensor(_search(keys, _keys(primitives.cast(values.node, common)), side))


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


def _search(keys: Node, wanted: Node, side: str) -> Node:
    """How many keys are less than each wanted one (or equal): each round finds one bit of the count."""
    length = keys.sig.shape[0]
    device = keys.sig.device
    found = primitives.expand(primitives.constant("searchsorted", 0, dtypes.int32, device), wanted.sig.shape)
    for bit in reversed(range(length.bit_length())):  # the highest first
        further = elementwise(TABLE["add"], found, 1 << bit)
        key = primitives.take(keys, elementwise(TABLE["subtract"], further, 1), 0)
        # take clamps indices out of range, so that the last key is compared instead
        before = elementwise(TABLE["less" if side == "left" else "less_equal"], key, wanted)
        inside = elementwise(TABLE["less_equal"], further, length)
        found = primitives.choose(elementwise(TABLE["logical_and"], before, inside), further, found)
    return found


# Keys


def _order(x: Node, axis: int, descending: bool, count: int | None = None) -> Node:
    """The indices, int32, that sort an axis; with `count` only the first so many."""
    rank = len(x.sig.shape)
    if sorts_elements(x.sig.device):
        whole = x.sig.shape[axis] if count is None else count
        return _along_last(x, axis, TABLE["sort_places"], (descending, whole))
    last = (*(each for each in range(rank) if each != axis), axis)
    keys = _keys(primitives.permute(x, last))
    if descending:
        keys = elementwise(TABLE["bitwise_invert"], keys)
    indices = _sorted_indices(keys) if count is None else _smallest_indices(keys, count)
    return primitives.permute(indices, tuple(last.index(each) for each in range(rank)))


def _along_last(x: Node, axis: int, op: Op, attributes: tuple[object, ...]) -> Node:
    """An op along the last axis, done along another."""
    rank = len(x.sig.shape)
    last = (*(each for each in range(rank) if each != axis), axis)
    done = make(op, (primitives.permute(x, last),), attributes)
    return primitives.permute(done, tuple(last.index(each) for each in range(rank)))


def _smallest_indices(keys: Node, count: int) -> Node:
    """The indices of the `count` smallest keys along the last axis, in order, without sorting all of them.

    They are in the `count` blocks with the smallest minima: if one were in another block, the minima of those
    `count` blocks would come before it.
    """
    length = keys.sig.shape[-1]
    if length <= MAX_SORTED_WHOLE or count * MIN_SELECTED_SHARE > length or not count:
        return axis_slice(_sorted_indices(keys), -1, 0, count)
    block = 1 << round(math.log2(length / count) / 2)
    blocks = -(-length // block)
    last = len(keys.sig.shape) - 1
    rows = keys.sig.shape[:-1]
    ends = (*((0, 0) for _ in rows), (0, blocks * block - length))  # the largest keys, behind all others
    padded = primitives.pad(keys, ends, keys.sig.dtype.limits[1])
    minima = primitives.reduce(TABLE["min"], primitives.reshape(padded, (*rows, blocks, block)), (last + 1,))
    chosen = _smallest_indices(minima, count)
    rising = primitives.sort_order(primitives.cast(chosen, dtypes.uint32))  # so that ties stay in order
    chosen = primitives.reshape(primitives.take_along(chosen, rising, last), (*rows, count, 1))
    inside = primitives.iota(block, dtypes.int32, keys.sig.device)
    indices = elementwise(TABLE["add"], elementwise(TABLE["multiply"], chosen, block), inside)
    indices = primitives.reshape(indices, (*rows, count * block))
    best = _smallest_indices(primitives.take_along(padded, indices, last), count)
    return primitives.take_along(indices, best, last)


def _sorted_indices(keys: Node) -> Node:
    """The order of keys along the last axis. Kernels sort 32 bits: wider keys in two rounds."""
    if keys.sig.dtype is not dtypes.uint64:
        return primitives.sort_order(keys)
    last = len(keys.sig.shape) - 1
    low = primitives.cast(elementwise(TABLE["bitwise_and"], keys, 0xFFFFFFFF), dtypes.uint32)
    high = primitives.cast(elementwise(TABLE["right_shift"], keys, 32), dtypes.uint32)
    by_low = primitives.sort_order(low)
    by_high = primitives.sort_order(primitives.take_along(high, by_low, last))
    return primitives.take_along(by_low, by_high, last)


def _keys(x: Node) -> Node:
    """Unsigned numbers of the same width, in the order of the elements."""
    dtype = x.sig.dtype
    unsigned = dtypes.as_dtype(f"uint{dtype.bits}")
    if dtype.kind in "bu":
        return primitives.cast(x, unsigned)
    bits = make(TABLE["bitcast"], (x,), (unsigned,))
    top = 1 << (dtype.bits - 1)
    if dtype.kind == "i":
        return elementwise(TABLE["bitwise_xor"], bits, top)
    return _float_keys(bits, top, _INFINITIES[dtype.name])


def _float_keys(bits: Node, top: int, infinity: int) -> Node:
    """Negative floats are ordered backwards by their bits; -0 becomes +0, and each NaN the largest key."""

    def choose(condition: Node, yes: Node | int, no: Node) -> Node:
        other = (
            primitives.constant("sort", yes, bits.sig.dtype, bits.sig.device) if isinstance(yes, int) else yes
        )
        return primitives.choose(condition, other, no)

    backwards = elementwise(TABLE["bitwise_invert"], bits)
    upwards = elementwise(TABLE["bitwise_or"], bits, top)
    keys = choose(elementwise(TABLE["greater"], bits, top), backwards, upwards)  # top itself is -0
    magnitude = elementwise(TABLE["bitwise_and"], bits, top - 1)
    largest = bits.sig.dtype.limits[1]
    return choose(elementwise(TABLE["greater"], magnitude, infinity), largest, keys)
