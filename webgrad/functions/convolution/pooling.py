"""Pooling: the largest element or the mean of every window, as PyTorch does it.

In: x (N, C, …) or (C, …), and kernel, stride and padding. Out: folds over windows that are moved and not
copied. The place of the largest element is that in its plane, flattened, as int32: the first of several that
are equal; where there are NaNs, the last of those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ... import dtypes
from ...errors import ArgumentError
from ...gradients.history import grad_mode_set
from ...gradients.own import own_gradient
from ...gradients.pooling import Frame, plane, spread_evenly, to_first_largest, to_places, windows
from ...ops import primitives
from ...ops.shapes import check_kind
from ...ops.table import lowest
from ...tensor import Tensor
from ..array.creation import as_tensor
from ..array.elementwise import isnan, maximum, minimum, where
from ..array.reductions import converted, floating, fold
from ..array.reshaping import whole
from ..pure import pure
from .windows import PerAxis, batched, check_inside, per_axis, spans, unbatched

MANY = 12  # elements of a window from which its axes are folded one after another


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of a pooling, checked: x (N, C, …), and how windows go over it."""

    op: str
    x: Tensor
    frame: Frame
    was_batched: bool


def _called(
    op: str, count: int, given: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> _Call:
    x, was_batched = batched(op, as_tensor(op, given), count)
    kernel = per_axis(op, "kernel_size", kernel_size, count)
    empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)  # as PyTorch has it
    steps = kernel if empty else per_axis(op, "stride", stride, count)
    around = per_axis(op, "padding", padding, count, least=0)
    apart = per_axis(op, "dilation", dilation, count)
    reach = spans(kernel, apart)
    if any(2 * each > span for each, span in zip(around, reach, strict=True)):
        raise ArgumentError(
            f"{op}: padding {around} is more than half of what the kernel {kernel} spans, {reach}: some "
            "windows would hold nothing but padding"
        )
    sizes = x.shape[2:]
    padded = tuple(length + 2 * each for length, each in zip(sizes, around, strict=True))
    counts, widths = [], []
    for length, full, each, span, step in zip(sizes, padded, around, reach, steps, strict=True):
        number = (full - span + (step - 1 if ceil else 0)) // step + 1
        if number < 1:
            check_inside(op, x, padded, kernel, apart)
        if (number - 1) * step >= length + each:  # every window begins before the padding at the end
            number -= 1
        counts.append(number)
        widths.append((each, max(each, (number - 1) * step + span - length - each)))
    frame = Frame(kernel, steps, apart, around, tuple(widths), tuple(counts))
    return _Call(op, x, frame, was_batched)


def _pooled(name: str, x: Tensor, frame: Frame, value: Any) -> Tensor:
    """Windows folded: all axes at once, or one after another where that is much less work."""
    count = len(frame.kernel)
    if math.prod(frame.kernel) < MANY or count == 1:
        return fold(name, Tensor(windows(x.node, frame, value)), tuple(range(2, 2 + count)))
    result = Tensor(primitives.pad(x.node, ((0, 0), (0, 0), *frame.widths), value))
    for axis in reversed(range(2, 2 + count)):
        each = (frame.kernel[axis - 2], frame.stride[axis - 2], frame.dilation[axis - 2])
        elements = primitives.window(result.node, axis, *each)
        order = (*range(axis), 2 + count, *range(axis, 2 + count))
        result = fold(name, Tensor(primitives.permute(elements, order)), (axis,))
    return result


def first_largest(taps: Tensor, places: Tensor, count: int, end: int) -> tuple[Tensor, Tensor]:
    """The largest of every window, and its place; `places` (elements, windows) are `end` in the padding."""
    axes = tuple(range(2, 2 + count))
    largest = fold("max", taps, axes)
    kept = primitives.reshape(largest.node, (*taps.shape[:2], *[1] * count, *taps.shape[2 + count :]))
    found = where(taps == Tensor(kept), places, end)
    if taps.dtype.kind != "f":
        return largest, fold("min", found, axes)
    found = fold("min", where(isnan(taps), -1 - places, found), axes)  # the last NaN is the least
    return largest, where(found < 0, -1 - found, found)


def _max_pool(call: _Call, return_indices: bool) -> Any:
    data, frame, was_batched = call.x, call.frame, call.was_batched
    check_kind(call.op, "iuf", data.dtype)
    least = lowest(data.dtype)
    own = Tensor(data.node)  # which nobody else changes
    if not return_indices:
        found = own_gradient(
            lambda: _pooled("max", own, frame, least), (own, lambda g: to_first_largest(own, g, frame))
        )
        return unbatched(found, was_batched)
    end = math.prod(data.shape[2:])
    with grad_mode_set(False):
        taps = Tensor(windows(data.node, frame, least))
        places = Tensor(windows(plane(data), frame, end))
        largest, places = first_largest(taps, places, len(frame.kernel), end)
    largest = own_gradient(lambda: largest, (own, lambda g: to_places(places, g, own.shape, frame)))
    return unbatched(largest, was_batched), unbatched(places, was_batched)


def _avg_pool(call: _Call, count_include_pad: bool, divisor: int | None = None) -> Tensor:
    op, data, frame = call.op, call.x, call.frame
    wide = floating(op, data)
    own = Tensor(wide.node)  # which nobody else changes
    total = own_gradient(
        lambda: _pooled("sum", own, frame, 0), (own, lambda g: spread_evenly(g, own.shape[2:], frame))
    )
    if divisor is not None:
        if whole(op, "divisor_override", divisor) == 0:
            raise ArgumentError(f"{op}: divisor_override is not 0")
        result = total / divisor
    else:
        result = total / _elements(data, frame, count_include_pad)
    return unbatched(converted(result, data.dtype), call.was_batched)


def _elements(x: Tensor, frame: Frame, include_padding: bool) -> Any:
    """How many elements each window is the mean of: one number, or one for each window."""
    result: Any = 1
    for at, length in enumerate(x.shape[2:]):
        size, step, around = frame.kernel[at], frame.stride[at], frame.around[at]
        low, high = (-around, length + around) if include_padding else (0, length)
        last = (frame.counts[at] - 1) * step - around + size
        if low == -around and last <= high:  # every window has all of them
            result = result * size
            continue
        index = Tensor(primitives.iota(frame.counts[at], dtypes.int32, x.node.sig.device))
        start = index * step - around
        number = converted(minimum(start + size, high) - maximum(start, low), dtypes.float32)
        along = (frame.counts[at], *[1] * (x.ndim - 3 - at))
        result = Tensor(primitives.reshape(number.node, along)) * result
    return result


# The public functions


@pure
def max_pool1d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window over x (N, C, L); with return_indices also its place.

    >>> wg.max_pool1d(wg.asarray([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[3.0, 2.0]]
    """
    call = _called("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(call, return_indices)


@pure
def max_pool2d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window over x (N, C, H, W); with return_indices also its place.

    >>> wg.max_pool2d(wg.arange(16.0).reshape((1, 4, 4)), 2).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
    """
    call = _called("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(call, return_indices)


@pure
def max_pool3d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window over x (N, C, D, H, W); with return_indices also its place.

    >>> wg.max_pool3d(wg.arange(8.0).reshape((1, 2, 2, 2)), 2).tolist()
    [[[[7.0]]]]
    """
    call = _called("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool(call, return_indices)


@pure
def avg_pool1d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window over x (N, C, L).

    >>> wg.avg_pool1d(wg.asarray([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[2.0, 1.0]]
    """
    call = _called("avg_pool1d", 1, x, kernel_size, stride, padding, 1, ceil_mode)
    return _avg_pool(call, count_include_pad)


@pure
def avg_pool2d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window over x (N, C, H, W); of padding too, unless told otherwise.

    >>> wg.avg_pool2d(wg.arange(16.0).reshape((1, 4, 4)), 2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    call = _called("avg_pool2d", 2, x, kernel_size, stride, padding, 1, ceil_mode)
    return _avg_pool(call, count_include_pad, divisor_override)


@pure
def avg_pool3d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window over x (N, C, D, H, W); of padding too, unless told otherwise.

    >>> wg.avg_pool3d(wg.arange(8.0).reshape((1, 2, 2, 2)), 2).tolist()
    [[[[3.5]]]]
    """
    call = _called("avg_pool3d", 3, x, kernel_size, stride, padding, 1, ceil_mode)
    return _avg_pool(call, count_include_pad, divisor_override)
