"""Gradients of pooling: of every window to its first largest element, or to all of its elements.

In: a gradient (N, C, windows) and the geometry of windows. Out: the gradient of the images (N, C, sizes). An
element gathers from the windows that it is in, a few along each axis, so that nothing is larger than the
images. All is made of ops that have gradients themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import dtypes
from ..functions.array.elementwise import where
from ..functions.array.reductions import fold
from ..functions.convolution.windows import Sizes, Widths, cropped_or_padded, spans, taps_first
from ..graph.node import Node
from ..ops import primitives
from ..tensor import Tensor


@dataclass(frozen=True, slots=True)
class Frame:
    """Geometry of windows: `around` is the user's padding, `widths` also what ceil_mode adds at the end."""

    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    around: Sizes
    widths: Widths
    counts: Sizes  # windows along each axis


def side_by_side(sizes: Sizes, counts: Sizes) -> Frame:
    """Adjacent windows, `counts` along each axis, that cover everything once."""
    kernel = tuple(size // number for size, number in zip(sizes, counts, strict=True))
    none, one = (0,) * len(sizes), (1,) * len(sizes)
    return Frame(kernel, kernel, one, none, tuple(zip(none, none, strict=True)), counts)


def windows(x: Node, frame: Frame, value: float) -> Node:
    """(…, sizes) padded with a value, as (…, elements of a window, windows)."""
    before = len(x.sig.shape) - len(frame.kernel)
    padded = primitives.pad(x, (*[(0, 0)] * before, *frame.widths), value)
    return taps_first(padded, frame.kernel, frame.stride, frame.dilation)


def plane(x: Tensor) -> Node:
    """The flat index of every element in the last axes."""
    return _plane_of(x.shape[2:], x)


# The largest element


def to_first_largest(x: Tensor, g: Tensor, frame: Frame) -> Tensor:
    """The gradient of the maximum of every window; of several equal ones the first gets it."""
    count, end = len(frame.kernel), math.prod(x.shape[2:])
    taps = Tensor(windows(x.node, frame, -math.inf))
    places = Tensor(windows(plane(x), frame, end))
    axes = tuple(range(2, 2 + count))
    largest = fold("max", taps, axes)
    kept = primitives.reshape(largest.node, (*taps.shape[:2], *[1] * count, *taps.shape[2 + count :]))
    return to_places(fold("min", where(taps == Tensor(kept), places, end), axes), g, x.shape, frame)


def to_places(places: Tensor, g: Tensor, shape: Sizes, frame: Frame) -> Tensor:
    """g scattered to the flat index that `places` has for each window; indices out of range are dropped.

    Along an axis the element at q · stride + r is in windows q, q - 1, …, as many as a window has strides.
    """
    sizes, count = shape[2:], len(frame.kernel)
    each = [
        -(-span // step) for span, step in zip(spans(frame.kernel, frame.dilation), frame.stride, strict=True)
    ]
    steps = [
        -(-(size + before) // step)
        for size, (before, _), step in zip(sizes, frame.widths, frame.stride, strict=True)
    ]
    around = tuple(
        (number - 1, whole - windows)
        for number, whole, windows in zip(each, steps, frame.counts, strict=True)
    )
    found = _gathered(places.node, around, each, math.prod(sizes))
    gradient = _gathered(g.node, around, each, 0)
    own = cropped_or_padded(
        _plane_of(sizes, places),
        tuple(
            (before, whole * step - size - before)
            for size, (before, _), whole, step in zip(sizes, frame.widths, steps, frame.stride, strict=True)
        ),
        -1,
    )
    pairs = tuple(size for pair in zip(steps, frame.stride, strict=True) for size in pair)
    own = primitives.reshape(own, (*pairs, *[1] * count))
    hit = where(Tensor(found) == Tensor(own), Tensor(gradient), 0.0)
    total = fold("sum", hit, tuple(range(2 + 2 * count, 2 + 3 * count))) if math.prod(each) > 1 else hit
    long = tuple(whole * step for whole, step in zip(steps, frame.stride, strict=True))
    result = primitives.reshape(total.node, (*shape[:2], *long))
    return Tensor(_cut_out(result, sizes, frame))


def _plane_of(sizes: Sizes, like: Tensor) -> Node:
    return primitives.reshape(primitives.iota(math.prod(sizes), dtypes.int32, like.node.sig.device), sizes)


def _gathered(x: Node, around: Widths, each: Sequence[int], value: float) -> Node:
    """(N, C, windows) as (N, C, steps, 1, steps, 1, …, windows that reach here…)."""
    count = len(each)
    x = cropped_or_padded(x, around, value)
    for at, number in enumerate(each):
        x = primitives.window(x, 2 + at, number)
    shape = x.sig.shape
    pairs = tuple(size for whole in shape[2 : 2 + count] for size in (whole, 1))
    return primitives.reshape(x, (*shape[:2], *pairs, *shape[2 + count :]))


def _cut_out(x: Node, sizes: Sizes, frame: Frame) -> Node:
    """The elements that are not padding; zeros where no window came."""
    long = x.sig.shape[2:]
    return cropped_or_padded(
        x,
        tuple(
            (-before, size + before - length)
            for size, (before, _), length in zip(sizes, frame.widths, long, strict=True)
        ),
    )


# All elements


def spread_evenly(g: Tensor, sizes: Sizes, frame: Frame) -> Tensor:
    """The gradient of the sum of every window, whose elements are adjacent."""
    node = g.node
    for at, (size, step) in enumerate(zip(frame.kernel, frame.stride, strict=True)):
        (before, _), length = frame.widths[at], sizes[at]
        node = _spread_along(node, 2 + at, size, step, -(-(length + before) // step))
    return Tensor(_cut_out(node, sizes, frame))


def _spread_along(g: Node, axis: int, size: int, step: int, steps: int) -> Node:
    """Windows along an axis to the `steps` × `step` elements that they cover."""
    shape = g.sig.shape
    number = -(-size // step)
    around = [(0, 0)] * len(shape)
    around[axis] = (number - 1, steps - shape[axis])
    g = cropped_or_padded(g, tuple(around))
    whole = (*shape[:axis], steps, *shape[axis + 1 :])
    if size % step == 0:
        if number > 1:
            g = fold("sum", Tensor(primitives.window(g, axis, number)), (len(shape),)).node
        wide = (*whole[: axis + 1], step, *whole[axis + 1 :])
        g = primitives.expand(primitives.reshape(g, (*whole[: axis + 1], 1, *whole[axis + 1 :])), wide)
    else:
        reaching = Tensor(primitives.window(g, axis, number))  # the last one is the window that begins here
        elements = Tensor(primitives.iota(step, dtypes.int32, g.sig.device)).reshape((step, 1))
        earlier = Tensor(primitives.iota(number, dtypes.int32, g.sig.device))
        inside = elements + (number - 1 - earlier) * step < size
        inside = inside.reshape((step, *[1] * (len(shape) - axis - 1), number))
        apart = reaching.reshape((*whole[: axis + 1], 1, *whole[axis + 1 :], number))
        g = fold("sum", where(inside, apart, 0.0), (len(shape) + 1,)).node
    return primitives.reshape(g, (*whole[:axis], steps * step, *whole[axis + 1 :]))
