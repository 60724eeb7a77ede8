"""Convolution and transposed convolution over one, two or three axes, as PyTorch does them.

In: x (N, C, …) or (C, …), a weight, and how the kernel goes over x, all checked here. Out: a tensor made of
one matrix product: the weight (outputs, elements of a window × channels) by patches (elements of a window ×
channels, windows), which are x moved and not copied. 16-bit floats are multiplied and summed in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ...errors import ArgumentError, ShapeError
from ...gradients.convolution import Geometry, convolved, transposed
from ...ops import primitives
from ...ops.shapes import check_kind
from ...tensor import Tensor
from ..array.creation import as_tensor, zeros_like
from ..array.reshaping import whole
from ..complex.parts import complex as complex_of
from ..complex.parts import imag, real
from ..learning.autocast import in_half
from ..pure import pure
from .windows import PerAxis, Sizes, Widths, batched, check_inside, per_axis, spans, unbatched

Padding = PerAxis | str
Function = TypeVar("Function", bound=Callable[..., Tensor])


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of a convolution, checked: x (N, C, …), and its weight as the user gave it."""

    op: str
    x: Tensor
    weight: Tensor
    bias: Tensor | None
    stride: Sizes
    dilation: Sizes
    groups: int
    was_batched: bool

    @property
    def kernel(self) -> Sizes:
        """The sizes of the kernel."""
        return self.weight.shape[2:]

    def how(self, widths: Widths, sizes: Sizes) -> Geometry:
        """How the kernel goes over images of some sizes, which are padded."""
        return Geometry(self.kernel, self.stride, self.dilation, widths, sizes, self.groups)

    @property
    def given(self) -> Sizes:
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


def _check_channels(call: _Call, channels: int, weight: str) -> None:
    """Refuse an x, or groups, that the weight is not for; `weight` names its axes."""
    found, first = call.x.shape[1], call.weight.shape[0]
    if found == channels and first % call.groups == 0:
        return
    given = f"with weight {call.weight.shape} and groups={call.groups}: the weight is ({weight})"
    if found != channels:
        raise ShapeError(
            f"{call.op} of x {call.given} {given}, so x must have {channels} channels, not {found}"
        )
    raise ShapeError(
        f"{call.op} {given}, and its first size must be a multiple of groups, which {first} is not"
    )


def _check_bias(call: _Call, outputs: int) -> None:
    if call.bias is not None and call.bias.shape != (outputs,):
        raise ShapeError(
            f"{call.op}: the bias is one number for each of {outputs} output channels, not {call.bias.shape}"
        )


def _finished(call: _Call, result: Tensor) -> Tensor:
    """With the bias, and without a batch where x had none."""
    if call.bias is not None:
        sizes = (call.bias.size, *[1] * (result.ndim - 2))
        result = result + Tensor(primitives.reshape(call.bias.node, sizes))
    return unbatched(result, call.was_batched)


# Convolution


def _convolution(call: _Call, padding: Any) -> Tensor:
    outputs, inputs = call.weight.shape[:2]
    _check_channels(call, inputs * call.groups, "O, C / groups, …")
    _check_bias(call, outputs)
    widths = _widths(call, padding)
    sizes = tuple(size + sum(each) for size, each in zip(call.x.shape[2:], widths, strict=True))
    check_inside(call.op, call.x, sizes, call.kernel, call.dilation)
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


def _transposed(call: _Call, padding: Any, output_padding: Any) -> Tensor:
    """The gradient of a convolution by its x, as an operation of its own."""
    op, count = call.op, len(call.kernel)
    inputs, each_outputs = call.weight.shape[:2]
    outputs = each_outputs * call.groups
    _check_channels(call, inputs, "C, O / groups, …")
    _check_bias(call, outputs)
    cut = per_axis(op, "padding", padding, count, least=0)
    more = per_axis(op, "output_padding", output_padding, count, least=0)
    if any(extra >= max(each) for extra, *each in zip(more, call.stride, call.dilation, strict=True)):
        raise ArgumentError(
            f"{op}: output_padding {more} must be smaller than the stride {call.stride} or the dilation "
            f"{call.dilation}"
        )
    reach = spans(call.kernel, call.dilation)
    sizes = tuple(
        (size - 1) * step - 2 * less + span + extra
        for size, step, less, span, extra in zip(call.x.shape[2:], call.stride, cut, reach, more, strict=True)
    )
    if min(sizes) < 1:
        raise ShapeError(f"{op} of {call.given}: with padding {cut} nothing is left: sizes {sizes}")
    after = (
        (number - 1) * step + span - size - less
        for number, step, span, size, less in zip(
            call.x.shape[2:], call.stride, reach, sizes, cut, strict=True
        )
    )
    how = call.how(tuple(zip(cut, after, strict=True)), sizes)
    return _finished(call, transposed(call.x, call.weight, how))


# Complex numbers


def of_parts(function: Function) -> Function:
    """The convolution, which of complex numbers is that of their parts."""

    @functools.wraps(function)
    def convolve(x: Any, weight: Any, bias: Any = None, *options: Any, **named: Any) -> Any:
        given = (x, weight, bias)
        if not any(isinstance(each, Tensor) and each.dtype.kind == "c" for each in given):
            return function(x, weight, bias, *options, **named)
        (a, b), (c, d), (e, f) = (_parts(each) for each in given)
        re = function(a, c, e, *options, **named) - function(b, d, None, *options, **named)
        im = function(a, d, f, *options, **named) + function(b, c, None, *options, **named)
        return complex_of(re, im)

    return cast(Function, convolve)


def _parts(x: Any) -> tuple[Any, Any]:
    """The real and the imaginary part."""
    if x is None:
        return None, None
    return (real(x), imag(x)) if x.dtype.kind == "c" else (x, zeros_like(x))


# The public functions


@pure
@of_parts
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
    return _convolution(_called("conv1d", 1, x, weight, bias, stride, dilation, groups), padding)


@pure
@of_parts
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
    return _convolution(_called("conv2d", 2, x, weight, bias, stride, dilation, groups), padding)


@pure
@of_parts
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
    return _convolution(_called("conv3d", 3, x, weight, bias, stride, dilation, groups), padding)


@pure
@of_parts
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
    call = _called("conv_transpose1d", 1, x, weight, bias, stride, dilation, groups)
    return _transposed(call, padding, output_padding)


@pure
@of_parts
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
    call = _called("conv_transpose2d", 2, x, weight, bias, stride, dilation, groups)
    return _transposed(call, padding, output_padding)


@pure
@of_parts
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
    call = _called("conv_transpose3d", 3, x, weight, bias, stride, dilation, groups)
    return _transposed(call, padding, output_padding)
