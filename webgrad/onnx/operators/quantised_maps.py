"""com.microsoft's operators that take codes and give codes: unpacked, computed in float32, rounded again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg

from ..types import code_of, type_of
from .integer_products import qlinear_conv
from .pooling import average_pool
from .quantised import codes_of, dequantize_linear, quantize_linear, spread
from .table import Call, operator

__all__ = ["real"]

MICROSOFT = "com.microsoft"


def real(codes: Any, scale: Any, zero_point: Any = None, axis: int = -1) -> Any:
    """The numbers that codes stand for."""
    values = codes.astype(wg.float32)
    if zero_point is not None:
        values = values - spread(zero_point, codes.shape, axis).astype(wg.float32)
    return values * spread(scale, codes.shape, axis).astype(wg.float32)


def _codes(values: Any, scale: Any, zero_point: Any, like: Any, call: Call) -> Any:
    """Numbers as codes, of the zero point's type, or without one of that of `like`."""
    element = type_of(code_of((like if zero_point is None else zero_point).dtype))
    return codes_of(values / scale.astype(wg.float32), zero_point, element, call)


@operator("QuantizeLinear", domain=MICROSOFT, known="scale zero_point")
def quantize_linear_of_microsoft(
    x: Any, scale: Any, zero_point: Any = None, *, axis: int = 1, call: Call
) -> Any:
    return quantize_linear(x, scale, zero_point, axis=axis, call=call)


@operator("DequantizeLinear", domain=MICROSOFT, known="x scale zero_point")
def dequantize_linear_of_microsoft(
    x: Any, scale: Any, zero_point: Any = None, *, axis: int = 1, call: Call
) -> Any:
    return dequantize_linear(x, scale, zero_point, axis=axis, call=call)


def _of_two(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A function of two numbers, for codes."""

    def apply(
        a: Any,
        a_scale: Any,
        a_zero: Any,
        b: Any,
        b_scale: Any,
        b_zero: Any,
        y_scale: Any,
        y_zero: Any = None,
        *,
        call: Call,
    ) -> Any:
        found = function(real(a, a_scale, a_zero), real(b, b_scale, b_zero))
        return _codes(found, y_scale, y_zero, a, call)

    return apply


operator("QLinearAdd", domain=MICROSOFT)(_of_two(wg.add))
operator("QLinearMul", domain=MICROSOFT)(_of_two(wg.multiply))


@operator("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(x: Any, scale: Any, zero: Any, y_scale: Any, y_zero: Any = None, *, call: Call) -> Any:
    return _codes(wg.sigmoid(real(x, scale, zero)), y_scale, y_zero, x, call)


@operator("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(
    x: Any, scale: Any, zero: Any, y_scale: Any, y_zero: Any = None, *, alpha: float = 0.01, call: Call
) -> Any:
    return _codes(wg.leaky_relu(real(x, scale, zero), alpha), y_scale, y_zero, x, call)


@operator("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(
    x: Any, scale: Any, zero: Any, y_scale: Any, y_zero: Any = None, *, axis: int = -1, opset: int, call: Call
) -> Any:
    values = real(x, scale, zero)
    if opset < 13:  # all axes from that one on are one
        values = values.reshape((*x.shape[: axis % x.ndim], -1))
    found = wg.softmax(values, axis=-1 if opset < 13 else axis)
    return _codes(found.reshape(x.shape), y_scale, y_zero, x, call)


@operator("QLinearWhere", domain=MICROSOFT)
def qlinear_where(
    condition: Any,
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    y_scale: Any,
    y_zero: Any,
    *,
    call: Call,
) -> Any:
    chosen = wg.where(condition, real(a, a_scale, a_zero), real(b, b_scale, b_zero))
    return _codes(chosen, y_scale, y_zero, a, call)


@operator("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(y_scale: Any, y_zero: Any, *inputs: Any, axis: int, call: Call) -> Any:
    parts = [real(*inputs[at : at + 3]) for at in range(0, len(inputs), 3)]
    return _codes(wg.concat(parts, axis=axis), y_scale, y_zero, inputs[0], call)


@operator("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(
    x: Any,
    scale: Any,
    zero: Any,
    y_scale: Any,
    y_zero: Any = None,
    *,
    axes: Sequence[int] = (),
    keepdims: int = 1,
    call: Call,
) -> Any:
    found = wg.mean(real(x, scale, zero), axis=tuple(axes) or None, keepdims=bool(keepdims))
    return _codes(found, y_scale, y_zero, x, call)


@operator("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    x: Any, scale: Any, zero: Any, y_scale: Any, y_zero: Any, *, channels_last: int = 0, call: Call
) -> Any:
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    return _codes(wg.mean(real(x, scale, zero), axis=axes, keepdims=True), y_scale, y_zero, x, call)


@operator("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(
    x: Any,
    scale: Any,
    zero: Any,
    y_scale: Any,
    y_zero: Any = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
    call: Call,
) -> Any:
    values = real(x, scale, zero)
    windows = {"kernel_shape": kernel_shape, "pads": pads, "strides": strides, "auto_pad": auto_pad}
    found = average_pool(
        wg.moveaxis(values, -1, 1) if channels_last else values,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        **windows,
    )
    return _codes(wg.moveaxis(found, 1, -1) if channels_last else found, y_scale, y_zero, x, call)


@operator("QLinearConv", domain=MICROSOFT, known="x_zero weight_zero")
def qlinear_conv_of_microsoft(
    x: Any,
    x_scale: Any,
    x_zero: Any,
    weight: Any,
    weight_scale: Any,
    weight_zero: Any,
    y_scale: Any,
    y_zero: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Any = (),
    group: int = 1,
    kernel_shape: Any = (),
    pads: Any = (),
    strides: Any = (),
    call: Call,
) -> Any:
    windows = {"dilations": dilations, "kernel_shape": kernel_shape, "pads": pads, "strides": strides}
    given = wg.moveaxis(x, -1, 1) if channels_last else x
    weights = weight, weight_scale, weight_zero, y_scale, y_zero, bias
    found = qlinear_conv(
        given, x_scale, x_zero, *weights, auto_pad=auto_pad, group=group, call=call, **windows
    )
    return wg.moveaxis(found, 1, -1) if channels_last else found


@operator("MulInteger", domain=MICROSOFT)
def mul_integer(a: Any, a_zero: Any, b: Any, b_zero: Any = None) -> Any:
    return _whole(a, a_zero) * _whole(b, b_zero)


@operator("ReduceSumInteger", domain=MICROSOFT)
def reduce_sum_integer(x: Any, *, axes: Sequence[int], keepdims: int) -> Any:
    return wg.sum(x.astype(wg.int32), axis=tuple(axes) or None, keepdims=bool(keepdims))


def _whole(codes: Any, zero_point: Any) -> Any:
    wide = codes.astype(wg.int32)
    return wide if zero_point is None else wide - zero_point.astype(wg.int32)
