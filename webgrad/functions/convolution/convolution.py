"""Convolution and transposed convolution over one, two or three axes, as PyTorch does them.

In: x (N, C, …) or (C, …), a weight, and how the kernel goes over x, all checked here. Out: a tensor made of
one matrix product: the weight (outputs, elements of a window × channels) by patches (elements of a window ×
channels, windows), which are x moved and not copied. 16-bit floats are multiplied and summed in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, ShapeError
from ...gradients.convolution import Geometry, convolved, transposed
from ...ops import primitives
from ...ops.shapes import check_kind
from ...tensor import Tensor
from ..array.creation import as_tensor
from ..array.reshaping import whole
from ..learning.autocast import in_half
from .windows import PerAxis, Sides, Widths, batched, check_inside, per_axis, spans, unbatched

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

    def how(self, widths: Widths, sides: Sides) -> Geometry:
        """How the kernel goes over images of some sides, which are padded."""
        return Geometry(self.kernel, self.stride, self.dilation, widths, sides, self.groups)

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
    sides = tuple(side + sum(each) for side, each in zip(call.x.shape[2:], widths, strict=True))
    check_inside(op, call.x, sides, call.kernel, call.dilation)
    return _finished(call, convolved(call.x, call.weight, call.how(widths, call.x.shape[2:])))


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
    """The gradient of a convolution by its x, as an operation of its own."""
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
    after = (
        (number - 1) * step + span - side - less
        for number, step, span, side, less in zip(
            call.x.shape[2:], call.stride, reach, sides, cut, strict=True
        )
    )
    how = call.how(tuple(zip(cut, after, strict=True)), sides)
    return _finished(call, transposed(call.x, call.weight, how))


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
