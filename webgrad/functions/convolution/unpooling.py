"""Max pooling backwards: the largest elements put back to where they were, zeros elsewhere.

In: what max_pool gave, values and places (N, C, …) or (C, …), and the kernel, stride and padding that made
them. Out: one scatter. Of several values for one place the last stays; places out of range are clamped.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...gradients.own import own_gradient
from ...ops import primitives
from ...ops.shapes import check_kind
from ...ops.table import TABLE
from ...tensor import Tensor
from ..array.creation import as_tensor, zeros
from ..array.elementwise import clip
from ..array.reductions import converted
from ..array.reshaping import wholes
from .windows import PerAxis, Sizes, batched, per_axis, unbatched


def _max_unpool(
    op: str,
    count: int,
    x: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Tensor:
    values, places = as_tensor(op, x), as_tensor(op, indices)
    check_kind(f"{op} (its indices)", "iu", places.dtype)
    if values.shape != places.shape:
        raise ShapeError(f"{op}: x {values.shape} and the indices {places.shape} must have one shape")
    data, was_batched = batched(op, values, count)
    kernel = per_axis(op, "kernel_size", kernel_size, count)
    steps = kernel if stride is None else per_axis(op, "stride", stride, count)
    around = per_axis(op, "padding", padding, count, least=0)
    sizes = _output_sizes(op, data, kernel, steps, around, output_size)
    planes, size, each = math.prod(data.shape[:2]), math.prod(sizes), math.prod(data.shape[2:])
    counter = dtypes.int32 if planes * size < 1 << 31 else dtypes.int64
    start = primitives.iota(planes, counter, data.node.sig.device)
    rows = Tensor(primitives.reshape(start, (planes, 1))) * size
    inside = clip(converted(places, counter), 0, max(size - 1, 0))  # never in another plane
    index = Tensor(primitives.reshape(inside.node, (planes, each))) + rows
    flat = primitives.reshape(index.node, (planes * each,))
    own = Tensor(data.node)  # which nobody else changes

    def put_back() -> Tensor:
        base = zeros((planes * size, 1), dtype=data.dtype, device=data.device)
        updates = primitives.reshape(own.node, (planes * each, 1))
        result = primitives.scatter(TABLE["scatter_set"], base.node, flat, updates)
        return Tensor(primitives.reshape(result, (*own.shape[:2], *sizes)))

    def taken(g: Tensor) -> Tensor:
        line = primitives.reshape(g.node, (planes * size,))
        return Tensor(primitives.reshape(primitives.take(line, flat, 0), own.shape))

    return unbatched(own_gradient(put_back, (own, taken)), was_batched)


def _output_sizes(op: str, x: Tensor, kernel: Sizes, stride: Sizes, around: Sizes, wanted: Any) -> Sizes:
    """The requested output sizes, or the smallest that the windows can come from."""
    least = tuple(
        (length - 1) * step - 2 * each + size
        for length, step, each, size in zip(x.shape[2:], stride, around, kernel, strict=True)
    )
    if min(least) < 0:
        raise ShapeError(
            f"{op} of {x.shape}: with a kernel of {kernel}, stride {stride} and padding {around} nothing is "
            f"left: sizes {least}"
        )
    if wanted is None:
        return least
    asked = wholes(op, "a size in output_size", wanted)
    given = asked[-len(kernel) :]
    if len(given) != len(kernel) or any(
        abs(length - other) >= step for length, other, step in zip(given, least, stride, strict=False)
    ):
        raise ArgumentError(
            f"{op} of {x.shape}: output_size {asked} has no such windows; its last sizes must be "
            f"within a stride, {stride}, of {least}"
        )
    return given


def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    output_size: Any = None,
) -> Tensor:
    """What max_pool1d gave, values and indices, back in their places; zeros elsewhere.

    >>> wg.max_unpool1d(wg.asarray([[3.0, 2.0]]), wg.asarray([[1, 2]]), 2).tolist()
    [[0.0, 3.0, 2.0, 0.0]]
    """
    return _max_unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    output_size: Any = None,
) -> Tensor:
    """What max_pool2d gave, values and indices, back in their places; zeros elsewhere.

    >>> wg.max_unpool2d(wg.ones((1, 1, 1)), wg.zeros((1, 1, 1), dtype=wg.int32), 2).tolist()
    [[[1.0, 0.0], [0.0, 0.0]]]
    """
    return _max_unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    output_size: Any = None,
) -> Tensor:
    """What max_pool3d gave, values and indices, back in their places; zeros elsewhere.

    >>> wg.max_unpool3d(wg.ones((2, 1, 1, 1)), wg.zeros((2, 1, 1, 1), dtype=wg.int32), 2).shape
    (2, 2, 2, 2)
    """
    return _max_unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size)
