"""What GGUF's blocks mean, weight by weight: written for the tests alone, from the formats' description.

In: one block as bytes. Out: its weights as float32. Slow and plain; nothing is shared with webgrad.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["BYTES", "WEIGHTS", "dequantise", "random_blocks"]

Array = np.ndarray[Any, Any]
F = np.float32
BYTES = {
    "Q4_0": 18,
    "Q4_1": 20,
    "Q5_0": 22,
    "Q5_1": 24,
    "Q8_0": 34,
    "Q2_K": 84,
    "Q3_K": 110,
    "Q4_K": 144,
    "Q5_K": 176,
    "Q6_K": 210,
}
WEIGHTS = {name: 256 if name.endswith("K") else 32 for name in BYTES}
# where a block's float16 numbers are
HALVES = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
}


def half(block: bytes, at: int) -> Any:
    return F(struct.unpack_from("<e", block, at)[0])


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def q4_0(b: bytes) -> list[Any]:
    d, qs = half(b, 0), b[2:]
    return [F((qs[j] & 15) - 8) * d for j in range(16)] + [F((qs[j] >> 4) - 8) * d for j in range(16)]


def q4_1(b: bytes) -> list[Any]:
    d, m, qs = half(b, 0), half(b, 2), b[4:]
    return [F(qs[j] & 15) * d + m for j in range(16)] + [F(qs[j] >> 4) * d + m for j in range(16)]


def five(qh: int, qs: bytes) -> list[int]:
    low = [(qs[j] & 15) | (qh >> j & 1) << 4 for j in range(16)]
    return low + [(qs[j] >> 4) | (qh >> (j + 16) & 1) << 4 for j in range(16)]


def q5_0(b: bytes) -> list[Any]:
    (qh,) = struct.unpack_from("<I", b, 2)
    return [F(q - 16) * half(b, 0) for q in five(qh, b[6:])]


def q5_1(b: bytes) -> list[Any]:
    (qh,) = struct.unpack_from("<I", b, 4)
    return [F(q) * half(b, 0) + half(b, 2) for q in five(qh, b[8:])]


def q8_0(b: bytes) -> list[Any]:
    return [F(signed(q)) * half(b, 0) for q in b[2:]]


def q2_k(b: bytes) -> list[Any]:
    scales, qs, d, least = b[:16], b[16:80], half(b, 80), half(b, 82)
    result = []
    for n in range(2):
        for j in range(4):
            for k in range(32):
                scale = scales[8 * n + 2 * j + k // 16]
                q = qs[32 * n + k] >> (2 * j) & 3
                result.append(d * F(scale & 15) * F(q) - least * F(scale >> 4))
    return result


def q3_k(b: bytes) -> list[Any]:
    mask, qs, packed, d = b[:32], b[32:96], b[96:108], half(b, 108)
    scales = []
    for i in range(16):
        low = packed[i] & 15 if i < 8 else packed[i - 8] >> 4
        high = packed[8 + i % 4] >> (2 * (i // 4)) & 3
        scales.append((low | high << 4) - 32)
    result = []
    for n in range(2):
        for j in range(4):
            for k in range(32):
                q = (qs[32 * n + k] >> (2 * j) & 3) - (0 if mask[k] >> (4 * n + j) & 1 else 4)
                result.append(d * F(scales[8 * n + 2 * j + k // 16]) * F(q))
    return result


def six_bits(packed: bytes) -> list[tuple[int, int]]:
    """The eight (scale, minimum) of Q4_K and Q5_K."""
    pairs = []
    for j in range(8):
        if j < 4:
            pairs.append((packed[j] & 63, packed[j + 4] & 63))
        else:
            scale = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4
            pairs.append((scale, packed[j + 4] >> 4 | packed[j] >> 6 << 4))
    return pairs


def q4_k(b: bytes) -> list[Any]:
    d, least, pairs, qs = half(b, 0), half(b, 2), six_bits(b[4:16]), b[16:]
    result = []
    for j in range(8):
        scale, minimum = pairs[j]
        for k in range(32):
            q = qs[32 * (j // 2) + k] >> (4 * (j % 2)) & 15
            result.append(d * F(scale) * F(q) - least * F(minimum))
    return result


def q5_k(b: bytes) -> list[Any]:
    d, least, pairs, qh, qs = half(b, 0), half(b, 2), six_bits(b[4:16]), b[16:48], b[48:]
    result = []
    for j in range(8):
        scale, minimum = pairs[j]
        for k in range(32):
            q = (qs[32 * (j // 2) + k] >> (4 * (j % 2)) & 15) + 16 * (qh[k] >> j & 1)
            result.append(d * F(scale) * F(q) - least * F(minimum))
    return result


def q6_k(b: bytes) -> list[Any]:
    ql, qh, scales, d = b[:128], b[128:192], b[192:208], half(b, 208)
    result = []
    for n in range(2):
        for j in range(4):
            for k in range(32):
                low = ql[64 * n + 32 * (j % 2) + k] >> (4 * (j // 2)) & 15
                q = (low | (qh[32 * n + k] >> (2 * j) & 3) << 4) - 32
                result.append(d * F(signed(scales[8 * n + 2 * j + k // 16])) * F(q))
    return result


_MEANING: dict[str, Callable[[bytes], list[Any]]] = {
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q5_0": q5_0,
    "Q5_1": q5_1,
    "Q8_0": q8_0,
    "Q2_K": q2_k,
    "Q3_K": q3_k,
    "Q4_K": q4_k,
    "Q5_K": q5_k,
    "Q6_K": q6_k,
}


def dequantise(data: Array, name: str, shape: tuple[int, ...]) -> Array:
    """The weights of a tensor of blocks."""
    raw, size = data.tobytes(), BYTES[name]
    meaning = _MEANING[name]
    weights = [meaning(raw[at : at + size]) for at in range(0, len(raw), size)]
    return np.array(weights, np.float32).reshape(shape)


def random_blocks(name: str, shape: tuple[int, ...], seed: int = 0, *, scale: float | None = None) -> Array:
    """Blocks of any bits; scales are any finite float16, zeros of both signs and subnormals among them.

    With `scale` they are all about that size, for products.
    """
    generator = np.random.default_rng(seed)
    count = int(np.prod(shape)) // WEIGHTS[name]
    blocks = generator.integers(0, 256, (count, BYTES[name]), np.uint8)
    for at in HALVES[name]:
        if scale is None:
            bits = generator.integers(0, 0x7C00, count).astype(np.uint16)
            bits |= generator.integers(0, 2, count).astype(np.uint16) << 15
            bits[::5] = generator.choice(np.array([0, 0x8000, 1, 0x8001, 0x3FF, 0x400], np.uint16))
            blocks[:, at : at + 2] = bits.view(np.uint8).reshape(count, 2)
        else:
            halves = (generator.uniform(0.5, 1, count) * scale).astype(np.float16)
            blocks[:, at : at + 2] = halves.view(np.uint8).reshape(count, 2)
    return blocks.reshape(-1)
