"""com.microsoft's products of codes with float results, and of floats that are rounded to codes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from ..types import code_of, type_of
from .fused_attention import attention
from .integer_products import whole_matmul
from .quantised import codes_of, dynamic_quantize_linear
from .quantised_maps import MICROSOFT, real
from .recurrent import lstm
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


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(
    x: Any,
    weight: Any,
    hidden: Any,
    bias: Any = None,
    lengths: Any = None,
    first: Any = None,
    first_cell: Any = None,
    peepholes: Any = None,
    weight_scale: Any = None,
    weight_zero: Any = None,
    hidden_scale: Any = None,
    hidden_zero: Any = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
    call: Call,
) -> Any:
    """Inputs and states become codes before they are multiplied; weights lie the other way round."""
    weights = _of_directions(weight, weight_scale, weight_zero).mT
    states = _Rounding(_of_directions(hidden, hidden_scale, hidden_zero).mT, call)
    given = (bias, lengths, first, first_cell, peepholes)
    options = {"activation_alpha": activation_alpha, "activation_beta": activation_beta, "clip": clip}
    return lstm(
        *(_as_codes(x, call), weights, states, *given),
        activations=activations,
        direction=direction,
        hidden_size=hidden_size,
        input_forget=input_forget,
        **options,
    )


def _of_directions(codes: Any, scale: Any, zero: Any) -> Any:
    """Weights (directions, rows, columns), with a scale for each direction, or for each of its columns."""
    shape = (codes.shape[0], 1, -1)
    return (codes.astype(wg.float32) - zero.reshape(shape).astype(wg.float32)) * scale.reshape(shape)


def _as_codes(x: Any, call: Call) -> Any:
    """Numbers as those that their codes stand for."""
    return real(*dynamic_quantize_linear(x, call=call))


@dataclass(frozen=True, slots=True)
class _Rounding:
    """A matrix that rounds what is multiplied with it to codes."""

    matrix: Any
    call: Call

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.matrix.shape)

    @property
    def mT(self) -> _Rounding:
        return _Rounding(self.matrix.mT, self.call)

    def __getitem__(self, at: int) -> _Rounding:
        return _Rounding(self.matrix[at], self.call)

    def __rmatmul__(self, x: Any) -> Any:
        return _as_codes(x, self.call) @ self.matrix
