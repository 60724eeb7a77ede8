"""com.microsoft's products of codes with float results, and of floats that are rounded to codes first."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..types import code_of, type_of
from .fused_attention import attention
from .integer_products import whole_matmul
from .quantised import codes_of, dynamic_quantize_linear
from .quantised_maps import MICROSOFT, real
from .table import Call, operator

__all__: list[str] = []


@operator("MatMulIntegerToFloat", domain=MICROSOFT, known="a_zero b_zero")
def matmul_integer_to_float(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    a_zero: Any = None,
    b_zero: Any = None,
    bias: Any = None,
    *,
    call: Call,
) -> Any:
    scale = a_scale.astype(wg.float32) * b_scale.astype(wg.float32)
    y = whole_matmul(a, b, a_zero, b_zero, call).astype(wg.float32) * scale
    return (y if bias is None else y + bias.astype(wg.float32)).astype(a_scale.dtype)


@operator("DynamicQuantizeMatMul", domain=MICROSOFT, known="b_zero")
def dynamic_quantize_matmul(
    a: Any, b: Any, b_scale: Any, b_zero: Any = None, bias: Any = None, *, call: Call
) -> Any:
    """The floats of `a` as codes first."""
    codes, scale, zero = dynamic_quantize_linear(a, call=call)
    return matmul_integer_to_float(codes, b, scale, b_scale, zero, b_zero, bias, call=call)


@operator("QGemm", domain=MICROSOFT, known="a_zero b_zero")
def qgemm(
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    c: Any = None,
    y_scale: Any = None,
    y_zero: Any = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    call: Call,
) -> Any:
    sums = whole_matmul(a.mT if transA else a, b.mT if transB else b, a_zero, b_zero, call)
    values = (sums if c is None else sums + c).astype(wg.float32) * (a_scale * b_scale * alpha)
    if y_scale is None:
        return values
    return codes_of(values / y_scale, y_zero, type_of(code_of(y_zero.dtype)), call)


@operator("QAttention", domain=MICROSOFT)
def qattention(
    x: Any,
    weight: Any,
    bias: Any,
    x_scale: Any,
    weight_scale: Any,
    mask: Any = None,
    x_zero: Any = None,
    weight_zero: Any = None,
    past: Any = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
    call: Call,
) -> Any:
    if past_present_share_buffer:
        raise wg.ModelFileError("QAttention with past_present_share_buffer=1 is not there")
    options = {"do_rotary": do_rotary, "scale": scale, "unidirectional": unidirectional}
    given, weights = real(x, x_scale, x_zero), real(weight, weight_scale, weight_zero)
    return attention(
        *(given, weights, bias, mask, past),
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        call=call,
        **options,
    )
