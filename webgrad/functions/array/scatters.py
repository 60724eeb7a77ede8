"""Scatter: slices along an axis, or single elements, at computed indices: set, add, multiply, extremes.

In: a tensor, indices along one axis, updates. Out: a new tensor. Updates of one element are applied in their
order, so results are the same on every run: the last of several set ones stays. Indices in tensors may be
negative, counted from the end, and are clamped to the range; host indices are checked at the call.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...arrays import has_numpy, np
from ...dtypes import DType, promote
from ...errors import AxisError, DeviceError, DTypeError, IndexingError, ShapeError
from ...graph.node import Node, make
from ...ops import primitives
from ...ops.host_arrays import converted
from ...ops.primitives import elementwise
from ...ops.shapes import broadcast, normalise_axis
from ...ops.table import TABLE
from ...tensor import Tensor
from ...values import Values, packed, values_of
from .creation import as_any_number, as_tensor, asarray
from .reductions import compute_dtype

Number = bool | int | float | complex


def index_set(x: Tensor, index: Any, updates: Tensor | Number, axis: int = 0) -> Tensor:
    """x with the slices `index` of an axis replaced by those of `updates`, which broadcast to their shape.

    >>> wg.index_set(wg.zeros(4), [1, 3], wg.asarray([5.0, 6.0])).tolist()
    [0.0, 5.0, 0.0, 6.0]
    """
    return _by_slices("index_set", "set", x, index, updates, axis)


def index_add(x: Tensor, index: Any, updates: Tensor | Number, axis: int = 0) -> Tensor:
    """x with `updates` added to the slices `index` of an axis; an index that occurs twice is added twice.

    >>> wg.index_add(wg.zeros(3), [0, 0, 2], 1.0).tolist()
    [2.0, 0.0, 1.0]
    """
    return _by_slices("index_add", "add", x, index, updates, axis)


def index_max(x: Tensor, index: Any, updates: Tensor | Number, axis: int = 0) -> Tensor:
    """x with the slices `index` of an axis, or those of `updates` where they are larger; NaN stays.

    >>> wg.index_max(wg.asarray([1, 5]), [0, 1], 3).tolist()
    [3, 5]
    """
    return _by_slices("index_max", "max", x, index, updates, axis)


def index_min(x: Tensor, index: Any, updates: Tensor | Number, axis: int = 0) -> Tensor:
    """x with the slices `index` of an axis, or those of `updates` where they are smaller; NaN stays.

    >>> wg.index_min(wg.asarray([1, 5]), [0, 1], 3).tolist()
    [1, 3]
    """
    return _by_slices("index_min", "min", x, index, updates, axis)


def index_multiply(x: Tensor, index: Any, updates: Tensor | Number, axis: int = 0) -> Tensor:
    """x with the slices `index` of an axis multiplied by those of `updates`, by all of them in turn.

    >>> wg.index_multiply(wg.asarray([2, 3]), [0, 0], wg.asarray([5, 7])).tolist()
    [70, 3]
    """
    return _by_slices("index_multiply", "multiply", x, index, updates, axis)


def scatter_set(x: Tensor, index: Any, updates: Tensor | Number, axis: int = -1) -> Tensor:
    """x with single elements replaced: the inverse of take_along_axis.

    `index` has as many dimensions as x, and broadcasts to it on all axes but `axis`.

    >>> wg.scatter_set(wg.zeros((2, 3)), [[0], [2]], 1.0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return _by_elements("scatter_set", "set", x, index, updates, axis)


def scatter(x: Tensor, index: Any, updates: Tensor | Number, axis: int = -1) -> Tensor:
    """`scatter_set`, by PyTorch's name.

    >>> wg.scatter(wg.zeros(3), [2, 0], wg.asarray([5.0, 7.0])).tolist()
    [7.0, 0.0, 5.0]
    """
    return _by_elements("scatter", "set", x, index, updates, axis)


def scatter_add(x: Tensor, index: Any, updates: Tensor | Number, axis: int = -1) -> Tensor:
    """x with updates added to single elements; `index` as in `scatter_set`.

    >>> wg.scatter_add(wg.zeros(3), [0, 0, 1], 1.0).tolist()
    [2.0, 1.0, 0.0]
    """
    return _by_elements("scatter_add", "add", x, index, updates, axis)


def scatter_max(x: Tensor, index: Any, updates: Tensor | Number, axis: int = -1) -> Tensor:
    """x with updates where they are larger than its elements; `index` as in `scatter_set`; NaN stays.

    >>> wg.scatter_max(wg.zeros(2), [1, 1], wg.asarray([5.0, 7.0])).tolist()
    [0.0, 7.0]
    """
    return _by_elements("scatter_max", "max", x, index, updates, axis)


def scatter_min(x: Tensor, index: Any, updates: Tensor | Number, axis: int = -1) -> Tensor:
    """x with updates where they are smaller than its elements; `index` as in `scatter_set`; NaN stays.

    >>> wg.scatter_min(wg.zeros(2), [1, 1], wg.asarray([-5.0, -7.0])).tolist()
    [0.0, -7.0]
    """
    return _by_elements("scatter_min", "min", x, index, updates, axis)


def _axis(op: str, axis: Any, rank: int) -> int:
    if isinstance(axis, Tensor):
        raise AxisError(
            f"{op}: the axis is the last argument, and a tensor of shape {axis.shape} stands there; "
            f"PyTorch's {op}(x, axis, index, updates) is {op}(x, index, updates, axis)"
        )
    return normalise_axis(op, axis, rank)


def scatter_multiply(x: Tensor, index: Any, updates: Tensor | Number, axis: int = -1) -> Tensor:
    """x with single elements multiplied by updates, by all of them in turn; `index` as in `scatter_set`.

    >>> wg.scatter_multiply(wg.asarray([2.0, 3.0]), [1, 1], wg.asarray([5.0, 7.0])).tolist()
    [2.0, 105.0]
    """
    return _by_elements("scatter_multiply", "multiply", x, index, updates, axis)


def _by_slices(op: str, how: str, x: Tensor, index: Any, updates: Any, axis: int) -> Tensor:
    x = as_tensor(op, x)
    along = _axis(op, axis, x.ndim)
    indices = _index_node(op, index, x, along)
    if len(indices.sig.shape) > 1:
        raise ShapeError(f"{op}: the index must have one dimension, not the shape {indices.sig.shape}")
    indices = primitives.reshape(indices, (indices.sig.size,))
    count, others = indices.sig.size, (*x.shape[:along], *x.shape[along + 1 :])
    shape = (*x.shape[:along], count, *x.shape[along + 1 :])
    values = _values(op, updates, x, shape)
    order = (along, *(each for each in range(x.ndim) if each != along))
    base = primitives.permute(x.node, order)
    columns = math.prod(others)
    rows = primitives.reshape(base, (x.shape[along], columns))
    changed = write_rows(
        op, how, rows, indices, primitives.reshape(primitives.permute(values, order), (count, columns))
    )
    back = tuple(order.index(each) for each in range(x.ndim))
    return Tensor(primitives.permute(primitives.reshape(changed, base.sig.shape), back))


def _by_elements(op: str, how: str, x: Tensor, index: Any, updates: Any, axis: int) -> Tensor:
    x = as_tensor(op, x)
    along = _axis(op, axis, x.ndim)
    indices = _index_node(op, index, x, along)
    if len(indices.sig.shape) != x.ndim:
        raise ShapeError(
            f"{op}: x {x.shape} and the index {indices.sig.shape} must have the same number of dimensions"
        )
    shape = (*x.shape[:along], indices.sig.shape[along], *x.shape[along + 1 :])
    if broadcast(op, [indices.sig.shape, shape]) != shape:
        raise ShapeError(f"{op}: the index {indices.sig.shape} does not broadcast to {shape} for x {x.shape}")
    if x.size >= 2**31:
        raise ShapeError(f"{op}: x {x.shape} has 2**31 elements or more; write to it in parts")
    values = _values(op, updates, x, shape)
    return Tensor(_write_flat(op, how, x.node, primitives.expand(indices, shape), values, along))


def _write_flat(op: str, how: str, x: Node, indices: Node, values: Node, axis: int) -> Node:
    """Elements as rows of one column: flat indices into the whole tensor, with `axis` innermost."""
    rank = len(x.sig.shape)
    order = (*(each for each in range(rank) if each != axis), axis)
    base = primitives.permute(x, order)
    size, lines = x.sig.shape[axis], math.prod(base.sig.shape[:-1])
    flat = primitives.permute(indices, order)
    if lines != 1:  # in one line the scatter itself clamps indices out of range
        line = primitives.iota(lines, dtypes.int32, x.sig.device)
        line = primitives.reshape(line, (*base.sig.shape[:-1], 1))
        inside = elementwise(TABLE["maximum"], elementwise(TABLE["minimum"], flat, max(size - 1, 0)), 0)
        start = elementwise(TABLE["multiply"], line, size)
        flat = elementwise(TABLE["add"], start, primitives.cast(inside, dtypes.int32))
    column = primitives.reshape(primitives.permute(values, order), (values.sig.size, 1))
    changed = write_rows(
        op, how, primitives.reshape(base, (x.sig.size, 1)), primitives.reshape(flat, (flat.sig.size,)), column
    )
    return primitives.permute(
        primitives.reshape(changed, base.sig.shape), tuple(order.index(each) for each in range(rank))
    )


def write_rows(op: str, how: str, base: Node, indices: Node, values: Node) -> Node:
    """base (rows, columns) with rows written. 16-bit floats are added in float32, and rounded once."""
    dtype = base.sig.dtype
    if how == "add" and dtype.kind == "b":
        raise DTypeError(f"{op} is not offered for bool: convert it with astype, or use max, which is or")
    if not base.sig.size or not indices.sig.size:
        return base
    if how == "multiply":
        wide = compute_dtype(dtype)
        changed = _multiplied(op, primitives.cast(base, wide), indices, primitives.cast(values, wide))
        return primitives.cast(changed, dtype)
    if how == "min":  # the maximum of elements in the opposite order
        changed = write_rows(op, "max", _reversed(base), indices, _reversed(values))
        return _reversed(changed)
    computed = compute_dtype(dtype) if how == "add" else dtype
    changed = primitives.scatter(
        TABLE[f"scatter_{how}"], primitives.cast(base, computed), indices, primitives.cast(values, computed)
    )
    return primitives.cast(changed, dtype)


def _multiplied(op: str, base: Node, indices: Node, values: Node) -> Node:
    """base with rows multiplied: in the order of their indices, each by those before it of the same one."""
    if base.sig.dtype.kind == "b":
        raise DTypeError(f"{op} is not offered for bool: convert it with astype, or use min, which is and")
    count = indices.sig.size
    inside = elementwise(TABLE["minimum"], indices, base.sig.shape[0] - 1)
    order = make(TABLE["sort_places"], (inside,), (False, count))
    rows, product = primitives.take(inside, order, 0), primitives.take(values, order, 0)
    one = primitives.constant(op, 1, base.sig.dtype, base.sig.device)
    step = 1
    while step < count:  # products of 2, 4, 8 … rows that follow each other
        same = elementwise(TABLE["equal"], _from(rows, step), _to(rows, count - step))
        factor = primitives.choose(
            primitives.reshape(same, (count - step, 1)), _to(product, count - step), one
        )
        whole = elementwise(TABLE["multiply"], _from(product, step), factor)
        product = primitives.concat([_to(product, step), whole], 0)
        step *= 2
    ones = primitives.expand(primitives.reshape(one, (1, 1)), base.sig.shape)
    return elementwise(TABLE["multiply"], base, write_rows(op, "set", ones, rows, product))


def _from(x: Node, start: int) -> Node:
    return primitives.slice_(x, ((start, x.sig.shape[0], 1), *((0, size, 1) for size in x.sig.shape[1:])))


def _to(x: Node, stop: int) -> Node:
    return primitives.slice_(x, ((0, stop, 1), *((0, size, 1) for size in x.sig.shape[1:])))


def _reversed(x: Node) -> Node:
    """Elements mapped so that their order is reversed."""
    kind = x.sig.dtype.kind
    name = "negative" if kind == "f" else "logical_not" if kind == "b" else "bitwise_invert"
    return elementwise(TABLE[name], x)


# Arguments


def _index_node(op: str, index: Any, x: Tensor, axis: int) -> Node:
    """The index on x's device, counted from 0."""
    size = x.shape[axis]
    if not isinstance(index, Tensor):
        return asarray(_checked(op, index, size, axis), device=x.device).node
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{op}: indices must be integers, not {index.dtype.name}; for a mask use where")
    if index.device is not x.device:
        raise DeviceError(
            f"{op}: x is on {x.device.name}, the index on {index.device.name}: move one with to_device"
        )
    node = index.node
    if index.dtype.kind == "u":
        return node
    if index.dtype is not dtypes.int64:
        node = primitives.cast(node, dtypes.int32)  # which holds the size
    from_end = elementwise(TABLE["add"], node, size)
    return primitives.choose(elementwise(TABLE["less"], node, 0), from_end, node)


def _checked(op: str, index: Any, size: int, axis: int) -> Any:
    """A host index, checked to be in range."""
    try:
        indices: Any = np.asarray(index) if has_numpy() else values_of(op, index)
    except ValueError:
        raise IndexingError(
            f"{op}: {index!r} is not an index: its nested lists have different lengths"
        ) from None
    if indices.size == 0:
        return converted(indices, dtypes.int32)
    if indices.dtype.kind not in "iu":
        raise IndexingError(f"{op}: indices must be integers, not {indices.dtype}")
    if isinstance(indices, Values):
        numbers = indices.numbers()
        for each in numbers:
            if not -size <= each < size:
                raise IndexingError(f"{op}: index {each} is out of range for axis {axis} with size {size}")
        return packed([each % size for each in numbers], dtypes.int32, indices.shape)
    wrong = indices[(indices < -size) | (indices >= size)]
    if wrong.size:
        raise IndexingError(f"{op}: index {wrong.flat[0]} is out of range for axis {axis} with size {size}")
    return np.where(indices < 0, indices + size, indices).astype(np.int32)


def _values(op: str, updates: Any, x: Tensor, shape: tuple[int, ...]) -> Node:
    """The updates in x's dtype, broadcast to a shape."""
    if not isinstance(updates, Tensor):
        number = as_any_number(op, updates)
        return primitives.expand(
            primitives.constant(op, _checked_number(op, number, x.dtype), x.dtype, x.device), shape
        )
    if updates.device is not x.device:
        raise DeviceError(
            f"{op}: x is on {x.device.name}, the updates on {updates.device.name}: move one with to_device"
        )
    if promote(x.dtype, updates.dtype) is not x.dtype:
        raise DTypeError(
            f"{op}: {x.dtype.name} does not hold updates of {updates.dtype.name}: convert one with astype"
        )
    if len(updates.shape) > len(shape) or broadcast(op, [updates.shape, shape]) != shape:
        raise ShapeError(
            f"{op}: updates of shape {updates.shape} do not broadcast to {shape}, what the index selects"
        )
    return primitives.expand(primitives.cast(updates.node, x.dtype), shape)


def _checked_number(op: str, number: Number, dtype: DType) -> Number:
    if isinstance(number, float) and dtype.kind not in "fc":
        raise DTypeError(f"{op}: {dtype.name} does not hold {number}: convert x with astype first")
    return number
