"""Convolution and transposed convolution over one, two or three axes, as PyTorch does them.

In: x (N, C, …) or (C, …), a weight, and how the kernel goes over x. Out: a tensor made of one matrix product:
the weight (outputs, elements of a window × channels) by patches (elements of a window × channels, windows),
which are x moved and not copied. 16-bit floats are multiplied and summed in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..graph.node import Node
from ..tensor import Tensor
from . import primitives
from .autocast import in_half
from .creation import as_tensor
from .reductions import converted, fold, widened
from .reshaping import whole
from .shapes import check_kind
from .windows import (
    PerAxis,
    Sides,
    Widths,
    batched,
    check_inside,
    cropped_or_padded,
    per_axis,
    spans,
    taps_first,
    unbatched,
)

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

Padding = PerAxis | str


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of a convolution, checked: x (N, C, …), and its weight as the user gave it."""

    op: str
    x: Tensor
    weight: Tensor
    bias: Tensor | None
    stride: Sides
    dilation: Sides
    groups: int
    was_batched: bool

    @property
    def kernel(self) -> Sides:
        """The sides of the kernel."""
        return self.weight.shape[2:]

    @property
    def given(self) -> Sides:
        """The shape of x as the user gave it."""
        return self.x.shape if self.was_batched else self.x.shape[1:]


def _called(
    op: str, count: int, x: Any, weight: Any, bias: Any, stride: Any, dilation: Any, groups: Any
) -> _Call:
    operands = [as_tensor(op, each).node for each in (x, weight, *([] if bias is None else [bias]))]
    first, second, *third = (Tensor(each) for each in primitives.common(op, operands))
    check_kind(op, "iuf", first.dtype)
    data, was_batched = batched(op, first, count)
    if second.ndim != count + 2 or 0 in second.shape:
        axes = ("k", "kh, kw", "kd, kh, kw")[count - 1]
        channels = "C, O / groups" if "transpose" in op else "O, C / groups"
        raise ShapeError(f"{op} takes a weight ({channels}, {axes}) with elements in it, not {second.shape}")
    parts = whole(op, "groups", groups)
    if parts < 1:
        raise ArgumentError(f"{op}: groups is 1 or more, not {groups}")
    steps, apart = per_axis(op, "stride", stride, count), per_axis(op, "dilation", dilation, count)
    return _Call(op, data, second, third[0] if third else None, steps, apart, parts, was_batched)


def _check_groups(call: _Call, side: int, weight: str) -> None:
    if side % call.groups:
        raise ShapeError(
            f"{call.op} with weight {call.weight.shape} and groups={call.groups}: the weight is ({weight}), "
            f"and its first side must be a multiple of groups, which {side} is not"
        )


def _check_bias(call: _Call, outputs: int) -> None:
    if call.bias is not None and call.bias.shape != (outputs,):
        raise ShapeError(
            f"{call.op}: the bias is one number for each of {outputs} output channels, not {call.bias.shape}"
        )


def _finished(call: _Call, result: Tensor) -> Tensor:
    """With the bias, and without a batch where x had none."""
    if call.bias is not None:
        sides = (call.bias.size, *[1] * (result.ndim - 2))
        result = result + Tensor(primitives.reshape(call.bias.node, sides))
    return unbatched(result, call.was_batched)


# Convolution


def _convolution(
    op: str,
    count: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Tensor:
    call = _called(op, count, x, weight, bias, stride, dilation, groups)
    outputs, inputs = call.weight.shape[:2]
    if call.x.shape[1] != inputs * call.groups:
        raise ShapeError(
            f"{op} of x {call.given} with weight {call.weight.shape} and groups={call.groups}: the weight is "
            f"(O, C / groups, …), so x must have {inputs * call.groups} channels, not {call.x.shape[1]}"
        )
    _check_groups(call, outputs, "O, C / groups, …")
    _check_bias(call, outputs)
    widths = _widths(call, padding)
    padded = cropped_or_padded(call.x.node, widths)
    check_inside(op, call.x, padded.sig.shape[2:], call.kernel, call.dilation)
    return _finished(call, _multiplied(padded, call.weight, call.stride, call.dilation, call.groups))


def _widths(call: _Call, padding: Any) -> Widths:
    """The padding before and after each axis."""
    if not isinstance(padding, str):
        found = per_axis(call.op, "padding", padding, len(call.kernel), least=0)
        return tuple((each, each) for each in found)
    if padding == "valid":
        return ((0, 0),) * len(call.kernel)
    if padding != "same":
        raise ArgumentError(
            f"{call.op}: padding is a number, one for each axis, 'same' or 'valid', not {padding!r}"
        )
    if set(call.stride) != {1}:
        raise ArgumentError(
            f"{call.op}: padding='same' has a meaning with stride=1 only, not {call.stride}: give numbers"
        )
    total = [span - 1 for span in spans(call.kernel, call.dilation)]
    return tuple((each // 2, each - each // 2) for each in total)


def _multiplied(x: Node, weight: Tensor, stride: Sides, dilation: Sides, groups: int) -> Tensor:
    """The convolution of what is padded already: one product, or a sum where every channel is by itself."""
    outputs, inputs, *kernel = weight.shape
    if inputs == 1 and groups > 1 and len(kernel) * [1] != kernel:
        return _depthwise(x, weight, stride, dilation, groups)
    samples = x.sig.shape[0]
    grouped = (groups,) if groups > 1 else ()
    if len(kernel) * (1,) == tuple(kernel) == stride:
        sides, patches = x.sig.shape[2:], x
    else:
        taps = taps_first(x, tuple(kernel), stride, dilation)
        count = len(kernel)
        sides = taps.sig.shape[2 + count :]
        if groups > 1:
            taps = primitives.reshape(taps, (samples, groups, inputs, *taps.sig.shape[2:]))
        first = len(taps.sig.shape) - 2 * count
        order = (*range(first - 1), *range(first, first + count), first - 1)
        patches = primitives.permute(taps, (*order, *range(first + count, first + 2 * count)))
    depth = inputs * math.prod(kernel)
    patches = primitives.reshape(patches, (samples, *grouped, depth, math.prod(sides)))
    rows = primitives.permute(weight.node, (0, *range(2, weight.ndim), 1))
    rows = primitives.reshape(rows, (*grouped, outputs // groups, depth))
    return Tensor(primitives.reshape(primitives.contract(rows, patches), (samples, outputs, *sides)))


def _depthwise(x: Node, weight: Tensor, stride: Sides, dilation: Sides, groups: int) -> Tensor:
    """One input channel to each output channel: too thin for a matrix product."""
    outputs, _, *kernel = weight.shape
    count = len(kernel)
    taps = taps_first(x, tuple(kernel), stride, dilation)
    samples, _, *sides = taps.sig.shape
    several = outputs // groups
    data = Tensor(primitives.reshape(taps, (samples, groups, 1, *sides)))
    factors = Tensor(primitives.reshape(weight.node, (groups, several, *kernel, *[1] * count)))
    axes = tuple(range(3, 3 + count))
    total = fold("sum", widened(data) * widened(factors), axes)
    result = primitives.reshape(total.node, (samples, outputs, *sides[count:]))
    return converted(Tensor(result), weight.dtype)


# Transposed convolution


def _transposed(
    op: str,
    count: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    """By phases: of outputs that are `stride` apart, each is a plain convolution with a part of the kernel.

    All phases are one convolution with as many times more output channels, which then are laid side by side.
    """
    call = _called(op, count, x, weight, bias, stride, dilation, groups)
    inputs, each_outputs = call.weight.shape[:2]
    outputs = each_outputs * call.groups
    if call.x.shape[1] != inputs:
        raise ShapeError(
            f"{op} of x {call.given} with weight {call.weight.shape} and groups={call.groups}: the weight is "
            f"(C, O / groups, …), so x must have {inputs} channels, not {call.x.shape[1]}"
        )
    _check_groups(call, inputs, "C, O / groups, …")
    _check_bias(call, outputs)
    cut = per_axis(op, "padding", padding, count, least=0)
    more = per_axis(op, "output_padding", output_padding, count, least=0)
    if any(extra >= max(each) for extra, *each in zip(more, call.stride, call.dilation, strict=True)):
        raise ArgumentError(
            f"{op}: output_padding {more} must be smaller than the stride {call.stride} or the dilation "
            f"{call.dilation}"
        )
    reach = spans(call.kernel, call.dilation)
    sides = tuple(
        (side - 1) * step - 2 * less + span + extra
        for side, step, less, span, extra in zip(call.x.shape[2:], call.stride, cut, reach, more, strict=True)
    )
    if min(sides) < 1:
        raise ShapeError(f"{op} of {call.given}: with padding {cut} nothing is left: sides {sides}")
    phases = _Phases(call, cut, sides)
    return _finished(call, phases.joined(_multiplied(phases.data, phases.weight, *phases.how, call.groups)))


class _Phases:
    """A transposed convolution as a plain one. Output q · stride + r, before cutting, is phase r at q."""

    def __init__(self, call: _Call, cut: Sides, sides: Sides) -> None:
        self.stride = call.stride
        self.sides = sides
        # With a stride and a dilation both, the kernel gets zeros in between, and has no dilation left.
        dilation = tuple(
            1 if step > 1 else apart for step, apart in zip(call.stride, call.dilation, strict=True)
        )
        kernel = call.weight.node
        for at, (step, apart) in enumerate(zip(call.stride, call.dilation, strict=True)):
            if step > 1 and apart > 1:
                kernel = _spread(kernel, 2 + at, apart)
        self.sizes = tuple(
            -(-size // step) for size, step in zip(kernel.sig.shape[2:], call.stride, strict=True)
        )
        self.first = tuple(less // step for less, step in zip(cut, call.stride, strict=True))
        self.start = tuple(less % step for less, step in zip(cut, call.stride, strict=True))
        last = [-(-(less + side) // step) for less, side, step in zip(cut, sides, call.stride, strict=True)]
        self.count = tuple(end - begin for end, begin in zip(last, self.first, strict=True))
        reach = spans(self.sizes, dilation)
        self.how = ((1,) * len(sides), dilation)
        self.data = cropped_or_padded(
            call.x.node,
            tuple(
                (span - 1 - begin, end - side)
                for span, begin, end, side in zip(reach, self.first, last, call.x.shape[2:], strict=True)
            ),
        )
        self.weight = Tensor(self._arranged(kernel, call.groups))

    def _arranged(self, kernel: Node, groups: int) -> Node:
        """(C, O / groups, kernel) as (O × phases, C / groups, elements of a phase, backwards)."""
        inputs, outputs, *sizes = kernel.sig.shape
        count = len(sizes)
        full = [size * step for size, step in zip(self.sizes, self.stride, strict=True)]
        kernel = cropped_or_padded(
            kernel, tuple((0, wanted - size) for wanted, size in zip(full, sizes, strict=True))
        )
        split = [each for pair in zip(self.sizes, self.stride, strict=True) for each in pair]
        kernel = primitives.reshape(kernel, (groups, inputs // groups, outputs, *split))
        places = range(3, 3 + 2 * count)
        kernel = primitives.permute(kernel, (0, 2, *places[1::2], 1, *places[::2]))
        rows = groups * outputs * math.prod(self.stride)
        kernel = primitives.reshape(kernel, (rows, inputs // groups, *self.sizes))
        return primitives.flip(kernel, tuple(range(2, 2 + count)))

    def joined(self, parts: Tensor) -> Tensor:
        """(N, O × phases, places) as (N, O, outputs): the phases side by side, and cut."""
        count = len(self.sides)
        samples = parts.shape[0]
        outputs = parts.shape[1] // math.prod(self.stride)
        node = primitives.reshape(parts.node, (samples, outputs, *self.stride, *self.count))
        order = [each for at in range(2, 2 + count) for each in (at + count, at)]
        node = primitives.permute(node, (0, 1, *order))
        long = tuple(number * step for number, step in zip(self.count, self.stride, strict=True))
        node = primitives.reshape(node, (samples, outputs, *long))
        ranges = [(start, start + side, 1) for start, side in zip(self.start, self.sides, strict=True)]
        return Tensor(primitives.slice_(node, ((0, samples, 1), (0, outputs, 1), *ranges)))


def _spread(x: Node, axis: int, apart: int) -> Node:
    """Zeros between the elements of an axis."""
    shape = x.sig.shape
    x = primitives.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    x = primitives.pad(x, tuple((0, apart - 1 if at == axis + 1 else 0) for at in range(len(shape) + 1)))
    x = primitives.reshape(x, (*shape[:axis], shape[axis] * apart, *shape[axis + 1 :]))
    ranges = [(0, side, 1) for side in x.sig.shape]
    ranges[axis] = (0, (shape[axis] - 1) * apart + 1, 1)
    return primitives.slice_(x, tuple(ranges))


# The public functions


@in_half
def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of x (N, C, L) with a weight (O, C / groups, k), plus a bias (O,).

    >>> wg.conv1d(wg.asarray([[1.0, 2.0, 4.0]]), wg.asarray([[[1.0, -1.0]]])).tolist()
    [[-1.0, -2.0]]
    """
    return _convolution("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


@in_half
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of x (N, C, H, W) with a weight (O, C / groups, kh, kw), plus a bias (O,).

    >>> wg.conv2d(wg.ones((1, 2, 5, 5)), wg.ones((4, 2, 3, 3)), padding="same").shape
    (1, 4, 5, 5)
    """
    return _convolution("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


@in_half
def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of x (N, C, D, H, W) with a weight (O, C / groups, kd, kh, kw), plus a bias (O,).

    >>> wg.conv3d(wg.ones((1, 1, 4, 4, 4)), wg.ones((2, 1, 2, 2, 2)), stride=2).shape
    (1, 2, 2, 2, 2)
    """
    return _convolution("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


@in_half
def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Tensor:
    """The transposed convolution of x (N, C, L) with a weight (C, O / groups, k), plus a bias (O,).

    >>> wg.conv_transpose1d(wg.asarray([[1.0, 2.0]]), wg.asarray([[[1.0, 1.0, 1.0]]]), stride=2).tolist()
    [[1.0, 1.0, 3.0, 2.0, 2.0]]
    """
    return _transposed(
        "conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


@in_half
def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Tensor:
    """The transposed convolution of x (N, C, H, W) with a weight (C, O / groups, kh, kw), plus a bias (O,).

    >>> wg.conv_transpose2d(wg.ones((1, 2, 4, 4)), wg.ones((2, 3, 2, 2)), stride=2).shape
    (1, 3, 8, 8)
    """
    return _transposed(
        "conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


@in_half
def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Tensor:
    """The transposed convolution of x (N, C, D, H, W) with a weight (C, O / groups, kd, kh, kw), plus a bias.

    >>> wg.conv_transpose3d(wg.ones((1, 1, 2, 2, 2)), wg.ones((1, 1, 3, 3, 3)), stride=2, padding=1).shape
    (1, 1, 3, 3, 3)
    """
    return _transposed(
        "conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation
    )
