"""Pooling: the largest element, the mean or the p-norm of windows, or of all places of a channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import webgrad as wg

from ...arrays import np
from .table import Call, operator
from .values import bounded
from .windows import Sizes, Widths, by_axis, padded, spans_of, widths_of

_MAX = (wg.max_pool1d, wg.max_pool2d, wg.max_pool3d)
_MEAN = (wg.avg_pool1d, wg.avg_pool2d, wg.avg_pool3d)


class _Frame(NamedTuple):
    """How windows go over x: `widths` with what the last windows reach over the end, `given` without."""

    kernel: Sizes
    steps: Sizes
    apart: Sizes
    counts: Sizes  # of windows
    widths: Widths
    given: Widths


def _frame(
    x: Any,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    auto_pad: str,
    ceil_mode: int = 0,
) -> _Frame:
    count = x.ndim - 2
    if not 1 <= count <= 3:
        raise wg.ShapeError(f"pooling goes over one to three axes, x has shape {x.shape}")
    kernel = by_axis("kernel_shape", kernel_shape, count)
    steps, apart = by_axis("strides", strides, count), by_axis("dilations", dilations, count)
    spans = spans_of(kernel, apart)
    given = widths_of(x.shape[2:], spans, steps, pads, auto_pad)
    counts, widths = [], []
    for size, span, step, (before, after) in zip(x.shape[2:], spans, steps, given, strict=True):
        room = size + before + after - span
        number = (room + (step - 1 if ceil_mode else 0)) // step + 1
        if (number - 1) * step >= size + before:  # a window of nothing but the padding at the end
            number -= 1
        if room < 0 or number < 1:
            raise wg.ShapeError(
                f"windows of {kernel}, {spans} wide, do not fit into x {x.shape} with {given}"
            )
        counts.append(number)
        widths.append((before, max(0, (number - 1) * step + span - size - before)))
    return _Frame(kernel, steps, apart, tuple(counts), tuple(widths), given)


def _is_even(frame: _Frame) -> bool:
    """Whether padding is what webgrad's own functions take: equal at both ends, at most half of a window."""
    spans = spans_of(frame.kernel, frame.apart)
    return frame.given == frame.widths and all(
        before == after and 2 * before <= span
        for (before, after), span in zip(frame.given, spans, strict=True)
    )


# The largest


@operator("MaxPool")
def max_pool(
    x: Any,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] = (),
    kernel_shape: Sequence[int],
    pads: Sequence[int] = (),
    storage_order: int = 0,
    strides: Sequence[int] = (),
    call: Call,
) -> Any:
    frame = _frame(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    count, asks_places = len(frame.kernel), call.outputs > 1
    starts: Sizes = (0,) * count
    if _is_even(frame):
        around: Any = tuple(before for before, _ in frame.given)
        wide = x
    else:
        around, starts = 0, tuple(before for before, _ in frame.widths)
        wide = padded(x, frame.widths, _least(x))
    found = _MAX[count - 1](wide, frame.kernel, frame.steps, around, frame.apart, False, asks_places)
    if not asks_places:
        return found
    y, places = found
    sizes = tuple(
        size + (0 if around else sum(width)) for size, width in zip(x.shape[2:], frame.widths, strict=True)
    )
    return y, _flat_places(places, sizes if not around else x.shape[2:], starts, x.shape, bool(storage_order))


def _least(x: Any) -> float:
    return -math.inf if x.dtype.kind == "f" else int(wg.iinfo(x.dtype).min)


def _flat_places(places: Any, sizes: Sizes, starts: Sizes, shape: Sizes, columns_first: bool) -> Any:
    """Places in planes of some `sizes` as places in the whole of x, which begins at `starts` of the plane."""
    axes = shape[2:]
    along: list[Any] = []
    rest = places.astype(wg.int64)
    for size, start in zip(reversed(sizes), reversed(starts), strict=True):
        along.insert(0, rest % size - start)
        rest = rest // size
    order = range(len(axes)) if not columns_first else reversed(range(len(axes)))
    flat: Any = 0
    for at in order:
        flat = flat * axes[at] + along[at]
    planes = np.arange(shape[0] * shape[1], dtype=np.int64) * math.prod(axes)
    first = planes.reshape((shape[0], shape[1], *[1] * len(axes)))
    return flat + wg.asarray(first, device=places.device)


@operator("MaxUnpool", 9, host="output_shape")
def max_unpool(
    x: Any,
    places: Any,
    output_shape: Any = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    """Each element at its place of zeros, in the size that pooling was of; then more zeros at the ends."""
    count = len(kernel_shape)
    steps, widths = by_axis("strides", strides, count), by_axis("pads", pads, 2 * count, 0)
    sizes = [
        (size - 1) * step - widths[at] - widths[at + count] + kernel
        for at, (size, step, kernel) in enumerate(zip(x.shape[2:], steps, kernel_shape, strict=True))
    ]
    whole = (*x.shape[:2], *sizes)
    base = wg.zeros((math.prod(whole),), x.dtype, device=x.device)
    y = wg.scatter_set(base, places.reshape((-1,)), x.reshape((-1,)), axis=0).reshape(whole)
    if output_shape is None:
        return y
    after = [(0, int(want) - size) for want, size in zip(output_shape, whole, strict=True)]
    return y if not any(map(any, after)) else wg.pad(y, after)


# Means and norms


@operator("AveragePool")
def average_pool(
    x: Any,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] = (),
    kernel_shape: Sequence[int],
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    frame = _frame(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    count, is_dense = len(frame.kernel), set(frame.apart) == {1}
    if is_dense and _is_even(frame):
        around = tuple(before for before, _ in frame.given)
        return _MEAN[count - 1](x, frame.kernel, frame.steps, around, False, bool(count_include_pad))
    wide = x.astype(x.dtype.wide, copy=False)
    numbers = _elements(frame, x.shape[2:], bool(count_include_pad))
    return (_sums(wide, frame) / wg.asarray(numbers, wide.dtype, device=x.device)).astype(x.dtype, copy=False)


def _sums(x: Any, frame: _Frame) -> Any:
    """The sum of every window."""
    count = len(frame.kernel)
    x = padded(x, frame.widths)
    if set(frame.apart) == {1}:
        return _MEAN[count - 1](x, frame.kernel, frame.steps) * float(math.prod(frame.kernel))
    for at in range(count):
        spread = (frame.kernel[at] - 1) * frame.apart[at] + 1
        lines = wg.sliding_windows(x, spread, frame.steps[at], axis=2 + at)
        x = wg.sum(lines[..., :: frame.apart[at]], axis=-1)
    return x


def _elements(frame: _Frame, sizes: Sizes, with_padding: bool) -> Any:
    """How many elements each window is the mean of."""
    found = np.ones((), np.float64)
    for at, size in enumerate(sizes):
        before, after = frame.given[at]
        low, high = (0, before + size + after) if with_padding else (before, before + size)
        bounded(frame.counts[at], frame.kernel[at])
        windows = np.arange(frame.counts[at])[:, None] * frame.steps[at]
        places = windows + np.arange(frame.kernel[at]) * frame.apart[at]
        found = found[..., None] * ((places >= low) & (places < high)).sum(-1)
    return np.maximum(found, 1)


@operator("LpPool")
def lp_pool(
    x: Any,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] = (),
    kernel_shape: Sequence[int],
    p: float = 2,
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    frame = _frame(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    wide = x.astype(x.dtype.wide, copy=False)
    return (_sums(abs(wide) ** p, frame) ** (1.0 / p)).astype(x.dtype, copy=False)


# All places


def _places(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@operator("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    return wg.mean(x, axis=_places(x), keepdims=True)


@operator("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    return wg.max(x, axis=_places(x), keepdims=True)


@operator("GlobalLpPool")
def global_lp_pool(x: Any, *, p: float = 2) -> Any:
    wide = x.astype(x.dtype.wide, copy=False)
    total = wg.sum(abs(wide) ** p, axis=_places(x), keepdims=True)
    return (total ** (1.0 / p)).astype(x.dtype, copy=False)
