"""Nodes from nodes: the primitives as functions, with promotion, broadcasting and checks at the call.

In: nodes and Python numbers. Out: nodes. Everything a user can call is made of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, dtype_of_scalar, float32, promote
from ..errors import DeviceError, DTypeError, ShapeError
from ..graph.history import recording
from ..graph.node import Node, make, scalar, source
from ..graph.op import SCALAR, Op
from ..graph.trace import current_trace, is_runtime
from .table import TABLE

__all__ = ["alias", "cast", "concat", "contract", "elementwise", "iota", "reduce", "reshape"]

Number = bool | int | float
_LARGEST = float(np.finfo(np.float32).max)
_CAST = TABLE["cast"]


def cast(x: Node, dtype: DType) -> Node:
    """x in another dtype; x itself where it has that."""
    if x.sig.dtype is dtype:
        return x
    device = x.sig.device
    if dtype.feature and device.is_gpu and dtype.feature not in device.features:
        raise DTypeError(
            f"{x.sig.dtype.name} to {dtype.name}: {device.name} has no {dtype.name}; use a smaller type, or "
            "the cpu"
        )
    if x.sig.op is SCALAR and not is_runtime(x.storage):
        return constant("cast", x.storage, dtype, device, wrap=True)
    return make(_CAST, (x,), (dtype,))


def elementwise(op: Op, *operands: Node | Number) -> Node:
    """A map op over nodes of one device, brought to one dtype; numbers take the others' type."""
    if len(operands) == 2:  # the common cases first: this is called for every operator
        a, b = operands
        if a.__class__ is Node:
            left = a.sig
            if b.__class__ is Node:
                right = b.sig
                if left.dtype is right.dtype and left.device is right.device:
                    return make(op, (a, b))
            elif b.__class__ is float and left.dtype is float32 and -_LARGEST < b < _LARGEST:
                return make(op, (a, scalar(b, float32, left.device)))
    return make(op, common(op.name, operands))


def common(op: str, operands: Sequence[Node | Number]) -> tuple[Node, ...]:
    """Operands as nodes of one dtype on one device."""
    nodes = [each for each in operands if isinstance(each, Node)]
    first = nodes[0]
    dtype = None
    device = first.sig.device
    check_device(op, *nodes)
    for node in nodes:
        dtype = node.sig.dtype if dtype is None else promote(dtype, node.sig.dtype)
    assert dtype is not None
    if len(nodes) != len(operands):
        for each in operands:
            if each.__class__ is not Node:
                dtype = dtype_of_scalar(each, dtype)
    return tuple(
        cast(each, dtype) if each.__class__ is Node else constant(op, each, dtype, device)
        for each in operands
    )


def constant(op: str, value: Any, dtype: DType, device: Any, *, wrap: bool = False) -> Node:
    """A Python number as a node of a dtype that can hold it; with `wrap` as a cast would make it fit."""
    try:
        if wrap and dtype.kind in "iu":
            value = _fitted(value, dtype)
        value = bool(value) if dtype.kind == "b" else float(value) if dtype.kind == "f" else int(value)
    except (TypeError, ValueError, OverflowError):
        raise DTypeError(f"{op}: {value!r} is no number that {dtype.name} holds") from None
    if dtype.kind == "f" and (dtype.itemsize == 2 or not -_LARGEST < value < _LARGEST):
        with np.errstate(all="ignore"):
            value = float(dtype.numpy.type(value))  # as it is stored: rounded, or infinite
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if dtype.kind == "i" else (0, 1 << bits)
        if not low <= value < high:
            raise DTypeError(
                f"{op}: {value} does not fit {dtype.name}, which holds {low} to {high - 1}: convert the "
                "tensor to a wider type first"
            )
    return scalar(value, dtype, device)


def _fitted(value: Any, dtype: DType) -> int:
    """A number as a cast makes it fit an integer type: floats stop at its ends, integers wrap."""
    bits = 8 * dtype.itemsize
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)
    if isinstance(value, float):
        return 0 if value != value else int(min(max(value, low), high))
    wrapped: int = (int(value) - low) % (1 << bits) + low
    return wrapped


def iota(length: int, dtype: DType, device: Any) -> Node:
    """0, 1, 2, …"""
    if device.is_gpu and length >= 1 << 32:
        raise ShapeError(f"arange of {length:,} elements: GPUs count to 4,294,967,295; make it in parts")
    return source(TABLE["iota"], (length,), dtype, device)


def reshape(x: Node, shape: tuple[int, ...]) -> Node:
    """The same elements in another shape."""
    return _same(x) if x.sig.shape == shape else make(TABLE["reshape"], (x,), (shape,))


def _same(x: Node) -> Node:
    """x itself; where no histories are kept a node without one, since a result must not require gradients."""
    return x if recording.on or x.history is None else alias(x)


def alias(x: Node) -> Node:
    """The same value as a node of its own; it has a history if gradients go through x.

    While a function is captured its leaves are what tensors hold, so no other node may have their storage.
    """
    if x.storage is not None and x.history is None and current_trace() is None:
        return Node(x.sig, (), x.storage, x.where)
    return make(TABLE["reshape"], (x,), (x.sig.shape,))


def permute(x: Node, axes: tuple[int, ...]) -> Node:
    """Axis i of the result is axis axes[i] of x."""
    return _same(x) if axes == tuple(range(len(axes))) else make(TABLE["permute"], (x,), (axes,))


def expand(x: Node, shape: tuple[int, ...]) -> Node:
    """x repeated along axes of side 1, and new leading ones."""
    return _same(x) if x.sig.shape == shape else make(TABLE["expand"], (x,), (shape,))


def pad(x: Node, widths: tuple[tuple[int, int], ...], value: Number = 0) -> Node:
    """x with `value` before and after it on each axis."""
    if all(before == after == 0 for before, after in widths):
        return _same(x)
    return make(TABLE["pad"], (x, constant("pad", value, x.sig.dtype, x.sig.device)), (widths,))


def slice_(x: Node, ranges: tuple[tuple[int, int, int], ...]) -> Node:
    """Parts of each axis as (start, stop, step), steps positive and inside."""
    if all((0, side, 1) == each for side, each in zip(x.sig.shape, ranges, strict=True)):
        return _same(x)
    return make(TABLE["slice"], (x,), (ranges,))


def flip(x: Node, axes: tuple[int, ...]) -> Node:
    """x backwards along some axes."""
    return make(TABLE["flip"], (x,), (axes,)) if axes else _same(x)


def window(x: Node, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Node:
    """Windows along an axis, as many as fit: their number there, their elements along a new last axis."""
    return make(TABLE["window"], (x,), (axis, size, stride, dilation))


def reduce(op: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """Axes folded; they are gone from the result."""
    return make(op, (x,), (axes,)) if axes else _same(x)


def concat(xs: Sequence[Node], axis: int) -> Node:
    """Nodes of one dtype side by side."""
    return _same(xs[0]) if len(xs) == 1 else make(TABLE["concat"], common("concat", xs), (axis,))


def contract(a: Node, b: Node) -> Node:
    """(…, m, k) @ (…, k, n)."""
    return make(TABLE["matmul"], common("matmul", (a, b)))


def check_device(op: str, *nodes: Node) -> None:
    """Refuse nodes of different devices."""
    device = nodes[0].sig.device
    for each in nodes[1:]:
        if each.sig.device is not device:
            raise DeviceError(
                f"{op}: one operand is on {device.name}, another on {each.sig.device.name}: move one with "
                f"x.to_device({device.name!r})"
            )


def take(x: Node, index: Node, axis: int) -> Node:
    """Elements of an axis by index; the index's axes come in its place. Indices must be inside."""
    check_device("take", x, index)
    return make(TABLE["take"], (x, index), (axis,))


def take_along(x: Node, index: Node, axis: int) -> Node:
    """x[…, index[…, i, …], …]: an index for each element of the result."""
    check_device("take_along_axis", x, index)
    return make(TABLE["take_along"], (x, index), (axis,))


def scan(op: Op, x: Node, axis: int) -> Node:
    """Running totals along an axis."""
    return make(op, (x,), (axis,))


def sort_order(keys: Node) -> Node:
    """The stable permutation that sorts unsigned keys along the last axis."""
    return make(TABLE["sort_order"], (keys,))


def scatter(op: Op, base: Node, index: Node, updates: Node) -> Node:
    """base (rows, columns) with `updates` (count, columns) set, added or maxed into rows `index` (count,)."""
    check_device(op.name, base, index, updates)
    return make(op, (base, index, updates))
