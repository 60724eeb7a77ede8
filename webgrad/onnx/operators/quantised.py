"""Quantising and back: codes are whole numbers, a value is (code - zero point) × scale.

Codes that no tensor holds, of fewer than eight bits and floats of eight, are arrays on the host. What is
unpacked is not kept: the product that reads it unpacks it as it loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad as wg

from ...arrays import np
from ..types import ElementType, code_of, type_of
from .casts import cast
from .table import Call, operator
from .values import is_held

__all__ = ["bounds_of", "codes_of", "held", "spread", "to_codes"]

SHIFT = 1.5 * 2**23  # a float32 of this and a whole number ends in the bits of that
SHIFT_BITS = 0x4B400000
UINT8 = 2  # ONNX's number of the type that codes have where nothing says it


@operator("QuantizeLinear", 10, known="scale zero_point")
def quantize_linear(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
    call: Call,
) -> Any:
    element = type_of((output_dtype or UINT8) if zero_point is None else code_of(zero_point.dtype))
    step = spread(held(scale, call), x.shape, axis, block_size)
    wide = type_of(precision).webgrad if precision else step.dtype
    ratio = (x.astype(wide) / step.astype(wide)).astype(wg.float32)
    if element.name.startswith("float"):
        return cast(ratio, to=element.code, saturate=saturate, call=call)
    zero = None if zero_point is None else spread(held(zero_point, call), x.shape, axis, block_size)
    return codes_of(ratio, zero, element, call)


@operator("DequantizeLinear", 10, known="x scale zero_point")
def dequantize_linear(
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    call: Call,
) -> Any:
    codes, scale = held(x, call), held(scale, call)
    values = codes.astype(wg.float32)
    if zero_point is not None:
        zero = spread(held(zero_point, call), codes.shape, axis, block_size)
        values = values - zero.astype(wg.float32)
    values = values * spread(scale, codes.shape, axis, block_size).astype(wg.float32)
    return values.astype(type_of(output_dtype).webgrad if output_dtype else scale.dtype)


@operator("DynamicQuantizeLinear", 11)
def dynamic_quantize_linear(x: Any, *, call: Call) -> Any:
    return ranged_codes(x)


def ranged_codes(x: wg.Tensor, axes: tuple[int, ...] | None = None) -> tuple[wg.Tensor, wg.Tensor, wg.Tensor]:
    """Codes, scale and zero point of the range that all numbers have with 0, or those along `axes`, kept."""
    x = wg.where(wg.isnan(x), 0.0, x).astype(x.dtype)  # one 0 / 0 would make the scale NaN, and all with it
    is_kept = axes is not None
    largest = wg.clip(wg.max(x, axis=axes, keepdims=is_kept), 0, None)
    least = wg.clip(wg.min(x, axis=axes, keepdims=is_kept), None, 0)
    scale = (largest - least) / 255
    scale = wg.where(scale == 0, 1.0, scale).astype(x.dtype)
    zero = to_codes(-least / scale, None, type_of(UINT8))
    return to_codes(x / scale, zero, type_of(UINT8)), scale, zero


def codes_of(ratio: wg.Tensor, zero_point: Any, element: ElementType, call: Call) -> Any:
    """Numbers rounded to codes of a type; of fewer than eight bits as an array."""
    codes = to_codes(ratio, zero_point, element)
    return codes if element.webgrad is not None else call.host(codes).astype(element.numpy)


def to_codes(ratio: wg.Tensor, zero_point: Any, element: ElementType) -> wg.Tensor:
    """Numbers rounded, halves to even, and held within a type's bounds; small types as int8 or uint8."""
    rounded = wg.round(ratio)
    if zero_point is not None:
        rounded = rounded + zero_point.astype(ratio.dtype)
    kept = element.webgrad or wg.as_dtype(element.name.rstrip("24") + "8")
    return _as_integers(wg.clip(rounded, *bounds_of(element))).astype(kept)


def _as_integers(whole: wg.Tensor) -> wg.Tensor:
    """Whole numbers below 2^22 as int32, by their bits: a cast would look at each for what no int32 holds."""
    wide = whole.astype(wg.float32) + SHIFT
    return wg.bitcast(wide, wg.int32) - SHIFT_BITS


def bounds_of(element: ElementType) -> tuple[int, int]:
    """The least and the largest whole number of a type."""
    if element.name.startswith("u"):
        return 0, (1 << element.bits) - 1
    return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1


def held(value: Any, call: Call) -> wg.Tensor:
    """Codes or scales as a tensor: small integers as integers of eight bits, small floats as float32."""
    if not is_held(value):
        name = type_of(code_of(value.dtype)).name
        value = value.astype({"i": np.int8, "u": np.uint8}.get(name[0], np.float32))
    return call.tensor(value)


def spread(value: wg.Tensor, shape: Sequence[int], axis: int, block_size: int = 0) -> wg.Tensor:
    """Scales or zero points, one for all, for each place of an axis or for each block, to work on a shape."""
    if value.size == 1 and not block_size:
        return value.reshape(())
    axis %= len(shape)
    if not block_size:
        return value.reshape(tuple(-1 if at == axis else 1 for at in range(len(shape))))
    before, after = value.shape[: axis + 1], value.shape[axis + 1 :]
    blocks = value.reshape((*before, 1, *after))
    repeated = wg.broadcast_to(blocks, (*before, block_size, *after))
    whole = repeated.reshape((*before[:-1], before[-1] * block_size, *after))
    return whole[(slice(None),) * axis + (slice(shape[axis]),)]
