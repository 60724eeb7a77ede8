"""Convolutions as products, without a gradient: forwards, transposed, and of the weights.

In: x (N, C, …) that is padded already, weights (O, C / groups, …), or gradients. Out: nodes around one matrix
product, whose second operand is windows of x, moved and not copied.
"""

from __future__ import annotations

import itertools
import math

from ...graph.node import Node
from ...ops import primitives
from ...tensor import Tensor
from ..array.manipulation import stack
from ..array.reductions import converted, fold, widened
from .windows import Sizes, cropped_or_padded, spans, taps_first

_MOST_WASTE = 1.5  # multiplications for each that a transposed convolution needs
_LEAST_WORK = 1 << 25  # of these: below, several products take longer than one with zeros


def multiplied(x: Node, weight: Tensor, stride: Sizes, dilation: Sizes, groups: int) -> Tensor:
    """The convolution of what is padded already: one product, or a sum where every channel is by itself."""
    outputs, inputs, *kernel = weight.shape
    if inputs == 1 and groups > 1 and len(kernel) * [1] != kernel:
        return _depthwise(x, weight, stride, dilation, groups)
    samples = x.sig.shape[0]
    grouped = (groups,) if groups > 1 else ()
    if len(kernel) * (1,) == tuple(kernel) == stride:
        sizes, patches = x.sig.shape[2:], x
    else:
        taps = taps_first(x, tuple(kernel), stride, dilation)
        count = len(kernel)
        sizes = taps.sig.shape[2 + count :]
        if groups > 1:
            taps = primitives.reshape(taps, (samples, groups, inputs, *taps.sig.shape[2:]))
        first = len(taps.sig.shape) - 2 * count
        order = (*range(first - 1), *range(first, first + count), first - 1)
        patches = primitives.permute(taps, (*order, *range(first + count, first + 2 * count)))
    depth = inputs * math.prod(kernel)
    patches = primitives.reshape(patches, (samples, *grouped, depth, math.prod(sizes)))
    rows = primitives.permute(weight.node, (0, *range(2, weight.ndim), 1))
    rows = primitives.reshape(rows, (*grouped, outputs // groups, depth))
    return Tensor(primitives.reshape(primitives.contract(rows, patches), (samples, outputs, *sizes)))


def _depthwise(x: Node, weight: Tensor, stride: Sizes, dilation: Sizes, groups: int) -> Tensor:
    """One input channel to each output channel: too thin for a matrix product."""
    outputs, _, *kernel = weight.shape
    count = len(kernel)
    taps = taps_first(x, tuple(kernel), stride, dilation)
    samples, _, *sizes = taps.sig.shape
    several = outputs // groups
    data = Tensor(primitives.reshape(taps, (samples, groups, 1, *sizes)))
    factors = Tensor(primitives.reshape(weight.node, (groups, several, *kernel, *[1] * count)))
    axes = tuple(range(3, 3 + count))
    total = fold("sum", widened(data) * widened(factors), axes)
    result = primitives.reshape(total.node, (samples, outputs, *sizes[count:]))
    return converted(Tensor(result), weight.dtype)


def weight_sums(x: Node, g: Node, kernel: Sizes, stride: Sizes, dilation: Sizes, groups: int) -> Tensor:
    """(O, C / groups, kernel): what of x, padded, met each element of a kernel, by g, summed over all places.

    One product, (outputs, samples × places) by (samples × places, channels × kernel).
    """
    samples, outputs, *sizes = g.sig.shape
    channels, count = x.sig.shape[1] // groups, len(kernel)
    taps = taps_first(x, kernel, stride, dilation)
    taps = primitives.reshape(taps, (samples, groups, channels, *kernel, *sizes))
    if channels == 1 and groups > 1 and len(kernel) * (1,) != tuple(kernel):
        return _depthwise_sums(taps, g, groups, count)
    places = tuple(range(3 + count, 3 + 2 * count))
    grouped = (groups,) if groups > 1 else ()
    long = samples * math.prod(sizes)
    windows = primitives.permute(taps, (1, 0, *places, *range(2, 3 + count)))
    windows = primitives.reshape(windows, windows.sig.shape[1 - len(grouped) :])
    windows = primitives.reshape(windows, (*grouped, long, channels * math.prod(kernel)))
    rows = primitives.reshape(g, (samples, *grouped, outputs // groups, *sizes))
    first = len(grouped) + 1
    rows = primitives.permute(rows, (*range(1, first + 1), 0, *range(first + 1, first + 1 + count)))
    rows = primitives.reshape(rows, (*grouped, outputs // groups, long))
    result = primitives.contract(rows, windows)
    return Tensor(primitives.reshape(result, (outputs, channels, *kernel)))


def _depthwise_sums(taps: Node, g: Node, groups: int, count: int) -> Tensor:
    """The same where each output channel has one input channel: too thin for a matrix product."""
    samples, outputs, *sizes = g.sig.shape
    rows = primitives.reshape(g, (samples, groups, outputs // groups, *[1] * count, *sizes))
    axes = (0, *range(3 + count, 3 + 2 * count))
    total = fold("sum", widened(Tensor(taps)) * widened(Tensor(rows)), axes)
    kernel = taps.sig.shape[3 : 3 + count]
    result = primitives.reshape(total.node, (outputs, 1, *kernel))
    return converted(Tensor(result), Tensor(g).dtype)


def spread(
    x: Node, weight: Node, stride: Sizes, dilation: Sizes, groups: int, cut: Sizes, sizes: Sizes
) -> Tensor:
    """The transposed convolution of x with a weight (C, O / groups, kernel), without `cut` elements before.

    Of outputs that are `stride` apart, each is a plain convolution with a part of the kernel. All these are
    one convolution with as many times more output channels, which are then laid length by length; or, where
    parts are of such different sizes that this multiplies by zeros for the most part, one for each.
    """
    whole = Phases(x, weight, stride, dilation, groups, cut, sizes)
    kernel, pairs = weight.sig.shape[2:], zip(stride, dilation, strict=True)
    dilated = any(step > 1 and apart > 1 for step, apart in pairs)
    taken = math.prod(whole.phase_sizes) * math.prod(stride)
    work = math.prod(weight.sig.shape) * x.sig.shape[0] * math.prod(x.sig.shape[2:])
    if dilated or work < _LEAST_WORK or taken < _MOST_WASTE * math.prod(kernel):
        return whole.joined(multiplied(whole.data, whole.weight, *whole.how))
    ones = (1,) * len(kernel)
    parts = []
    for first in itertools.product(*map(range, stride)):
        steps = zip(first, kernel, stride, strict=True)
        ranges = [(min(begin, size), size, step) for begin, size, step in steps]
        part = primitives.slice_(weight, (*((0, size, 1) for size in weight.sig.shape[:2]), *ranges))
        if 0 in part.sig.shape:
            zero = primitives.constant("spread", 0, x.sig.dtype, x.sig.device)
            shape = (x.sig.shape[0], groups * weight.sig.shape[1], *whole.count)
            parts.append(Tensor(primitives.expand(zero, shape)))
            continue
        phase = Phases(x, part, ones, dilation, groups, whole.first, whole.count)
        parts.append(phase.joined(multiplied(phase.data, phase.weight, *phase.how)))
    joined = stack(parts, 2)
    samples, outputs, count = joined.shape[:3]
    return whole.joined(Tensor(primitives.reshape(joined.node, (samples, outputs * count, *whole.count))))


class Phases:
    """A transposed convolution of x as a plain one of `data` with `weight`, whose results are then `joined`.

    Output q · stride + r, before `cut` elements are cut off, is phase r at q.
    """

    def __init__(
        self, x: Node, weight: Node, stride: Sizes, dilation: Sizes, groups: int, cut: Sizes, sizes: Sizes
    ) -> None:
        self.stride = stride
        self.output_sizes = sizes
        # With a stride and a dilation both, the kernel gets zeros in between, and has no dilation left.
        left = tuple(1 if step > 1 else apart for step, apart in zip(stride, dilation, strict=True))
        kernel = weight
        for at, (step, apart) in enumerate(zip(stride, dilation, strict=True)):
            if step > 1 and apart > 1:
                kernel = _spread(kernel, 2 + at, apart)
        self.phase_sizes = tuple(
            -(-size // step) for size, step in zip(kernel.sig.shape[2:], stride, strict=True)
        )
        self.first = tuple(less // step for less, step in zip(cut, stride, strict=True))
        self.start = tuple(less % step for less, step in zip(cut, stride, strict=True))
        last = [-(-(less + length) // step) for less, length, step in zip(cut, sizes, stride, strict=True)]
        self.count = tuple(end - begin for end, begin in zip(last, self.first, strict=True))
        reach = spans(self.phase_sizes, left)
        self.how = ((1,) * len(sizes), left, groups)
        self.data = cropped_or_padded(
            x,
            tuple(
                (span - 1 - begin, end - length)
                for span, begin, end, length in zip(reach, self.first, last, x.sig.shape[2:], strict=True)
            ),
        )
        self.weight = Tensor(self._arranged(kernel, groups))

    def _arranged(self, kernel: Node, groups: int) -> Node:
        """(C, O / groups, kernel) as (O × phases, C / groups, elements of a phase, backwards)."""
        inputs, outputs, *sizes = kernel.sig.shape
        count = len(sizes)
        full = [size * step for size, step in zip(self.phase_sizes, self.stride, strict=True)]
        kernel = cropped_or_padded(
            kernel, tuple((0, wanted - size) for wanted, size in zip(full, sizes, strict=True))
        )
        split = [each for pair in zip(self.phase_sizes, self.stride, strict=True) for each in pair]
        kernel = primitives.reshape(kernel, (groups, inputs // groups, outputs, *split))
        places = range(3, 3 + 2 * count)
        kernel = primitives.permute(kernel, (0, 2, *places[1::2], 1, *places[::2]))
        rows = groups * outputs * math.prod(self.stride)
        kernel = primitives.reshape(kernel, (rows, inputs // groups, *self.phase_sizes))
        return primitives.flip(kernel, tuple(range(2, 2 + count)))

    def joined(self, parts: Tensor) -> Tensor:
        """(N, O × phases, places) as (N, O, outputs): the phases interleaved, and cropped."""
        count = len(self.output_sizes)
        samples = parts.shape[0]
        outputs = parts.shape[1] // math.prod(self.stride)
        node = primitives.reshape(parts.node, (samples, outputs, *self.stride, *self.count))
        order = [each for at in range(2, 2 + count) for each in (at + count, at)]
        node = primitives.permute(node, (0, 1, *order))
        long = tuple(number * step for number, step in zip(self.count, self.stride, strict=True))
        node = primitives.reshape(node, (samples, outputs, *long))
        ranges = [
            (start, start + length, 1) for start, length in zip(self.start, self.output_sizes, strict=True)
        ]
        return Tensor(primitives.slice_(node, ((0, samples, 1), (0, outputs, 1), *ranges)))


def _spread(x: Node, axis: int, apart: int) -> Node:
    """Zeros between the elements of an axis."""
    shape = x.sig.shape
    x = primitives.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    x = primitives.pad(x, tuple((0, apart - 1 if at == axis + 1 else 0) for at in range(len(shape) + 1)))
    x = primitives.reshape(x, (*shape[:axis], shape[axis] * apart, *shape[axis + 1 :]))
    ranges = [(0, length, 1) for length in x.sig.shape]
    ranges[axis] = (0, (shape[axis] - 1) * apart + 1, 1)
    return primitives.slice_(x, tuple(ranges))
