"""Products of codes: exact, in int32, and rounded to codes again.

Whole numbers are multiplied as float32, in parts so short that no sum passes 2^24: each of them is exact.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from ...arrays import np
from ..types import code_of, type_of
from .convolution import conv
from .quantised import bounds_of, codes_of
from .table import Call, operator

__all__ = ["whole_matmul"]

EXACT = 1 << 24  # whole numbers up to this are float32's


@operator("MatMulInteger", 10, known="a_zero b_zero")
def matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None, *, call: Call) -> Any:
    return whole_matmul(a, b, a_zero, b_zero, call)


@operator("QLinearMatMul", 10, known="a_zero b_zero")
def qlinear_matmul(
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
    scale = _rows(a_scale.astype(wg.float32), a) * b_scale.astype(wg.float32) / y_scale.astype(wg.float32)
    return _requantised(whole_matmul(a, b, a_zero, b_zero, call), scale, y_zero, call)


@operator("ConvInteger", 10, known="x_zero weight_zero")
def conv_integer(
    x: Any,
    weight: Any,
    x_zero: Any = None,
    weight_zero: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = (),
    group: int = 1,
    kernel_shape: Any = (),
    pads: Any = (),
    strides: Any = (),
    call: Call,
) -> Any:
    windows = {"auto_pad": auto_pad, "dilations": dilations, "kernel_shape": kernel_shape}
    return _whole_conv(x, weight, x_zero, weight_zero, group, call, pads=pads, strides=strides, **windows)


@operator("QLinearConv", 10, known="x_zero weight_zero")
def qlinear_conv(
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
    dilations: Any = (),
    group: int = 1,
    kernel_shape: Any = (),
    pads: Any = (),
    strides: Any = (),
    call: Call,
) -> Any:
    windows = {"auto_pad": auto_pad, "dilations": dilations, "kernel_shape": kernel_shape}
    sums = _whole_conv(x, weight, x_zero, weight_zero, group, call, pads=pads, strides=strides, **windows)
    per_channel = (-1, *[1] * (x.ndim - 2))
    if bias is not None:
        sums = sums + bias.reshape(per_channel)
    scale = (x_scale * weight_scale / y_scale).reshape(per_channel)
    return _requantised(sums, scale, y_zero, call)


def whole_matmul(a: Any, b: Any, a_zero: Any, b_zero: Any, call: Call) -> Any:
    """The product of codes less their zero points: exact, int32."""
    step = EXACT // (_magnitude(a, a_zero) * _magnitude(b, b_zero))
    a_zero = None if a_zero is None else _rows(call.tensor(a_zero), a)
    a, b = _centred(a, a_zero), _centred(b, None if b_zero is None else call.tensor(b_zero))
    side = (slice(None),) * max(b.ndim - 2, 0)
    products = [(a[..., part] @ b[(*side, part)]).astype(wg.int32) for part in _parts(a.shape[-1], step)]
    return sum(products[1:], products[0])


def _whole_conv(
    x: Any, weight: Any, x_zero: Any, weight_zero: Any, group: int, call: Call, **windows: Any
) -> Any:
    """The convolution of codes less their zero points: exact, int32."""
    taps = math.prod(weight.shape[2:])
    step = EXACT // (_magnitude(x, x_zero) * _magnitude(weight, weight_zero)) // taps
    if weight_zero is not None:
        weight_zero = call.tensor(weight_zero).reshape((-1, *[1] * (weight.ndim - 1)))
    x = _centred(x, None if x_zero is None else call.tensor(x_zero))
    weight = _centred(weight, weight_zero)
    channels = weight.shape[1]
    if channels <= step:
        return conv(x, weight, group=group, **windows).astype(wg.int32)
    if group > 1 or not step:
        return conv(x.astype(wg.int32), weight.astype(wg.int32), group=group, **windows)
    sums = [conv(x[:, part], weight[:, part], **windows).astype(wg.int32) for part in _parts(channels, step)]
    return sum(sums[1:], sums[0])


def _centred(x: Any, zero_point: Any) -> Any:
    """Codes less their zero point, whole numbers as float32."""
    wide = x.astype(wg.float32)
    return wide if zero_point is None else wide - zero_point.astype(wg.float32)


def _magnitude(x: Any, zero_point: Any) -> int:
    """How large a code less its zero point can be."""
    least, largest = bounds_of(type_of(code_of(x.dtype)))
    if zero_point is None:
        return max(-least, largest)
    if isinstance(zero_point, np.ndarray):
        return max(largest - int(zero_point.min()), int(zero_point.max()) - least)
    return largest - least


def _rows(value: wg.Tensor, a: Any) -> wg.Tensor:
    """What there is one of for each row of a matrix, as a column."""
    return value.reshape((-1, 1)) if value.ndim == 1 and value.size > 1 and a.ndim > 1 else value


def _parts(size: int, most: int) -> list[slice]:
    """An axis in parts of about equal length, none longer than `most`."""
    count = max(-(-size // most), 1)
    ends = [size * at // count for at in range(count + 1)]
    return list(map(slice, ends, ends[1:]))


def _requantised(sums: wg.Tensor, scale: Any, zero_point: Any, call: Call) -> Any:
    ratio = sums.astype(wg.float32) * scale.astype(wg.float32)
    return codes_of(ratio, zero_point, type_of(code_of(zero_point.dtype)), call)
