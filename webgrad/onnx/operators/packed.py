"""com.microsoft's weights of few bits, several to a byte: packed until a product loads them.

A weight is (code - zero point) × scale of its block. Where a block of GGUF says exactly the same, a model's
weights become such blocks when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from .gathering import gather
from .quantised import held, spread
from .quantised_maps import MICROSOFT
from .table import Call, operator
from .values import is_held

__all__ = ["unpacked"]

BLOCK = 32  # weights of GGUF's simplest blocks

# the numbers that four bits stand for: floats of two bits each for exponent and fraction, and normal floats
_SMALL = (0.0, 0.0052083333, 0.6666666667, 1.0, 0.3333333333, 0.5, 0.1666666667, 0.25)
_TABLES = (
    (*_SMALL, *(-each for each in _SMALL)),
    (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
        *(0.7229568362236023, 1.0),
    ),
)


def _blocks_of_gguf(
    a: Any,
    packed: Any,
    scales: Any,
    zero_points: Any = None,
    g_idx: Any = None,
    *rest: Any,
    **attributes: Any,
) -> Mapping[int, Any]:
    """The weights of MatMulNBits as Q4_0 or Q8_0, if these are exactly the same."""
    bits, size, columns = attributes.get("bits", 4), attributes["block_size"], attributes["K"]
    if packed is None or scales is None or bits not in (4, 8) or size % BLOCK or columns % BLOCK:
        return {}
    rows = attributes["N"]
    scale = np.asarray(scales.numpy() if isinstance(scales, wg.Tensor) else scales).reshape(rows, -1)
    half = scale.astype(np.float16)
    if (half.astype(np.float32) != scale.astype(np.float32)).any() or g_idx is not None:
        return {}
    zeros = zero_points.numpy() if isinstance(zero_points, wg.Tensor) else zero_points
    middle = 1 << (bits - 1)
    if zeros is not None and (zeros != (0x88 if zeros.dtype == np.uint8 and bits == 4 else middle)).any():
        return {}
    data = packed.numpy() if isinstance(packed, wg.Tensor) else packed
    device = next((each.device for each in (packed, scales) if isinstance(each, wg.Tensor)), None)
    codes = _host_codes(data.reshape(rows, -1), bits)[:, :columns].reshape(rows, -1, BLOCK)
    halves = np.repeat(half, size // BLOCK, axis=1)[:, : codes.shape[1]]
    head = halves[..., None].view(np.uint8)
    body = codes ^ 128 if bits == 8 else codes[..., :16] | codes[..., 16:] << 4
    blocks = np.concatenate([head, body], axis=-1)
    made = wg.from_blocks(blocks, f"Q{bits}_0", (rows, columns), device=device)
    return {1: made} | {at: None for at, each in ((2, scales), (3, zero_points)) if each is not None}


@operator("MatMulNBits", domain=MICROSOFT, prepare=_blocks_of_gguf)
def matmul_n_bits(
    a: Any,
    packed: Any,
    scales: Any = None,
    zero_points: Any = None,
    g_idx: Any = None,
    bias: Any = None,
    *,
    N: int,
    K: int,
    block_size: int,
    bits: int = 4,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Any:
    if weight_prepacked:
        raise wg.ModelFileError(
            "MatMulNBits with weight_prepacked is for one runtime only: export it without"
        )
    if isinstance(packed, wg.QuantisedTensor):
        return wg.quantised_linear(a, packed, bias)
    blocks = -(-K // block_size)
    codes = unpacked(packed.reshape((N, blocks, -1)), bits).astype(wg.float32)
    zero: Any = float(1 << (bits - 1))
    if zero_points is not None:
        is_packed = zero_points.dtype.kind == "u"
        zero = unpacked(zero_points.reshape((N, -1)), bits)[:, :blocks] if is_packed else zero_points
        zero = zero.reshape((N, blocks)).astype(wg.float32)
    scale = scales.reshape((N, blocks)).astype(wg.float32)
    weight = _scaled_in_blocks(codes, scale, zero, g_idx, K)
    y = wg.linear(a.astype(wg.float32), weight, None if bias is None else bias.astype(wg.float32))
    return y.astype(a.dtype)


def _scaled_in_blocks(codes: Any, scale: Any, zero: Any, g_idx: Any, columns: int) -> Any:
    """Weights (rows, columns) of codes (rows, blocks, size)."""
    rows = codes.shape[0]
    if g_idx is None:
        zero = zero if isinstance(zero, float) else zero[..., None]
        return ((codes - zero) * scale[..., None]).reshape((rows, -1))[:, :columns]
    zero = zero if isinstance(zero, float) else wg.take(zero, g_idx[:columns], axis=1)
    return (codes.reshape((rows, -1))[:, :columns] - zero) * wg.take(scale, g_idx[:columns], axis=1)


@operator("MatMulBnb4", domain=MICROSOFT)
def matmul_bnb4(
    a: Any,
    packed: Any,
    largest: Any,
    *,
    N: int,
    K: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Any:
    """Codes that a table gives numbers to; the first of a byte is the higher one."""
    table = wg.asarray(_TABLES[quant_type], dtype=wg.float32, device=a.device)
    codes = wg.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)[: N * K]
    scale = spread(largest.astype(wg.float32), (N * K,), 0, block_size)
    weight = (wg.take(table, codes.astype(wg.int32)) * scale).reshape((N, K))
    return (a.astype(wg.float32) @ (weight.mT if transB else weight)).astype(a.dtype)


@operator("GatherBlockQuantized", domain=MICROSOFT, known="data zero_points")
def gather_block_quantized(
    data: Any,
    indices: Any,
    scales: Any,
    zero_points: Any = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
    call: Call,
) -> Any:
    """Only what is gathered is unpacked."""
    is_packed = is_held(data) and bits < 8
    gathered, blocks = gather_axis % data.ndim, quantize_axis % data.ndim
    middle = 1 << (bits - 1) if is_held(data) else 0
    zero: Any = None if zero_points is None else held(zero_points, call)
    taken, scale, zero = (
        each if each is None or each.shape[gathered] == 1 else gather(each, indices, axis=gathered)
        for each in (held(data, call), scales, zero)
    )
    axis = blocks + (indices.ndim - 1 if blocks > gathered else 0)
    if is_packed:
        taken = unpacked(taken, bits)
        zero = None if zero is None else unpacked(zero, bits)[..., : scale.shape[-1]]
    size = block_size or taken.shape[axis]
    values = taken.astype(wg.float32)
    values = values - (
        float(middle) if zero is None else spread(zero.astype(wg.float32), taken.shape, axis, size)
    )
    return (values * spread(scale.astype(wg.float32), taken.shape, axis, size)).astype(scales.dtype)


def unpacked(packed: Any, bits: int) -> Any:
    """The codes of bytes along the last axis, those of the lowest bits first."""
    if bits == 8:
        return packed
    parts = [packed >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return wg.stack(parts, axis=-1).reshape((*packed.shape[:-1], packed.shape[-1] * 8 // bits))


def _host_codes(packed: Array, bits: int) -> Array:
    """The same of an array."""
    if bits == 8:
        return packed
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed[..., None] >> shifts & ((1 << bits) - 1)).reshape(*packed.shape[:-1], -1)
