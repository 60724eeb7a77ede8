"""What is measured: each workload's inputs, NumPy's answer, and the goal.

In: nothing. Out: `WORKLOADS`, by name. Only NumPy is needed: the peers read this file in environments of
their own. Inputs are the same in every run and for every peer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BLOCK", "BLOCK_LENGTH", "WORKLOADS", "Goal", "Workload", "packed_q4_0"]

Array = np.ndarray[Any, Any]
Inputs = dict[str, Array]

MEGA = 1 << 20
LENGTH, WIDTH, HEADS, INNER = 128, 512, 8, 2048  # of the transformer block
BLOCK = (LENGTH, WIDTH, HEADS, INNER)
HEAD = WIDTH // HEADS
KEYS = 2048  # of the single query
ROWS, COLUMNS = 2048, 8192  # of the matrix that a vector is multiplied by
BLOCK_LENGTH = 32  # of 4-bit weights that share a scale
TINY = 1000  # operations one after another


@dataclass(frozen=True)
class Goal:
    """On the software adapter: so many times as quick as the best WebGPU peer, or at most so many
    milliseconds, or at most so many times another workload's time. On the cpu: of torch's time at most.
    """

    ratio: float | None = None
    milliseconds: float | None = None
    against: tuple[str, float] | None = None
    cpu: float | None = None


@dataclass(frozen=True)
class Workload:
    """`flops` and `nbytes` are what one run computes and moves, at least; `per`: how many operations are one
    run.
    """

    title: str
    inputs: Callable[[], Inputs]
    answer: Callable[[Inputs], Array]
    goal: Goal = Goal()
    flops: float = 0
    nbytes: float = 0
    tolerance: float = 2e-4  # of the largest element
    per: int = 1
    environment: tuple[tuple[str, str], ...] = ()  # of our own process on WebGPU
    only: tuple[str, ...] = ()  # the runners that have it; none named: all


def _random(*shape: int, scale: float = 1.0, seed: int = 0) -> Array:
    generator = np.random.default_rng([seed, *shape])
    return (generator.random(shape, np.float32) - np.float32(0.5)) * np.float32(scale)


# NumPy's answers


def _gelu(x: Array) -> Array:
    return x / (1 + np.exp(-math.sqrt(8 / math.pi) * (x + np.float32(0.044715) * x * x * x)))


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
    return np.asarray(centred / spread * gain + bias)


def _convolution(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.asarray(np.einsum("nchwij,fcij->nfhw", windows, w, optimize=True))


def _attention(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
    scores = q @ k.swapaxes(-1, -2) * np.float32(HEAD**-0.5)
    if causal:
        scores = scores + np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1)
    return np.asarray(_softmax(scores) @ v)


def _block(i: Inputs) -> Array:
    x, gain, bias = i["x"], i["gain"], i["bias"]
    projected = (_layer_norm(x, gain, bias) @ i["wqkv"]).reshape(LENGTH, 3, HEADS, HEAD)
    q, k, v = projected.transpose(1, 2, 0, 3)
    attended = _attention(q, k, v, causal=True).transpose(1, 0, 2).reshape(1, LENGTH, WIDTH)
    x = attended @ i["wo"] + x
    return np.asarray(_gelu(_layer_norm(x, gain, bias) @ i["w1"]) @ i["w2"] + x)


def _four_bit() -> Inputs:
    generator = np.random.default_rng(4)
    codes = generator.integers(0, 16, (COLUMNS, ROWS), np.uint8)
    scales = (generator.random((COLUMNS, ROWS // BLOCK_LENGTH), np.float32) * 0.02 + 0.001).astype(np.float16)
    return {"x": _random(1, ROWS), "codes": codes, "scales": scales}


def _four_bit_answer(i: Inputs) -> Array:
    weights = (i["codes"].astype(np.float32) - 8) * np.repeat(i["scales"].astype(np.float32), BLOCK_LENGTH, 1)
    return np.asarray(i["x"] @ weights.T)


def packed_q4_0(codes: Array, scales: Array) -> bytes:
    """GGUF's Q4_0: for 32 weights a float16 scale, then 16 bytes, element j low and element j + 16 high."""
    blocks = codes.reshape(codes.shape[0], -1, 2, BLOCK_LENGTH // 2)
    nibbles = blocks[:, :, 0] | (blocks[:, :, 1] << 4)
    packed = np.empty((*nibbles.shape[:2], 2 + BLOCK_LENGTH // 2), np.uint8)
    packed[..., :2] = scales[..., None].view(np.uint8)
    packed[..., 2:] = nibbles
    return packed.tobytes()


def _chain(i: Inputs) -> Array:
    a, b = i["a"], i["b"]
    for at in range(TINY):
        a = a * b if at & 1 else a - b
    return a


# The table


def _product(size: int, most: float) -> Workload:
    return Workload(
        f"matmul {size}",
        lambda: {"a": _random(size, size), "b": _random(size, size, seed=1)},
        lambda i: i["a"] @ i["b"],
        Goal(ratio=5, cpu=most),
        flops=2.0 * size**3,
    )


def _vector(kind: str, ratio: float, dtype: type, tolerance: float) -> Workload:
    return Workload(
        f"matvec {ROWS}×{COLUMNS} {kind}",
        lambda: {"x": _random(1, ROWS).astype(dtype), "w": _random(ROWS, COLUMNS, seed=1).astype(dtype)},
        lambda i: i["x"].astype(np.float32) @ i["w"].astype(np.float32),
        Goal(ratio=ratio, cpu=1.5 if dtype is np.float32 else None),
        flops=2.0 * ROWS * COLUMNS,
        nbytes=ROWS * COLUMNS * np.dtype(dtype).itemsize,
        tolerance=tolerance,
    )


def _tiny(title: str, goal: Goal, only: tuple[str, ...] = ()) -> Workload:
    return Workload(
        title,
        lambda: {"a": _random(1024), "b": _random(1024, scale=0.1, seed=1) + np.float32(0.9)},
        _chain,
        goal,
        per=TINY,
        tolerance=1e-3,
        environment=(("WEBGRAD_FUSE", "0"),),
        only=only,
    )


def _attention_inputs(queries: int, keys: int) -> Inputs:
    shapes = {"q": queries, "k": keys, "v": keys}
    return {name: _random(1, HEADS, rows, HEAD, seed=ord(name)) for name, rows in shapes.items()}


WORKLOADS: dict[str, Workload] = {
    "matmul_256": _product(256, 1.5),
    "matmul_512": _product(512, 1.5),
    "matmul_1024": _product(1024, 1.5),
    "gelu": Workload(
        "gelu(a*b+c), 16 Mi",
        lambda: {name: _random(16 * MEGA, scale=4, seed=ord(name)) for name in "abc"},
        lambda i: _gelu(i["a"] * i["b"] + i["c"]),
        Goal(ratio=2.5, cpu=1.0),
        nbytes=16.0 * MEGA * 16,
    ),
    "softmax": Workload(
        "softmax 4096²",
        lambda: {"x": _random(4096, 4096, scale=4)},
        lambda i: _softmax(i["x"]),
        Goal(ratio=2, cpu=1.0),
        nbytes=4096.0**2 * 8,
    ),
    "layer_norm": Workload(
        "layer norm (4096, 1024)",
        lambda: {"x": _random(4096, 1024), "gain": _random(1024), "bias": _random(1024, seed=1)},
        lambda i: _layer_norm(i["x"], i["gain"], i["bias"]),
        Goal(ratio=3, cpu=1.5),
        nbytes=4096.0 * 1024 * 8,
    ),
    "sum": Workload(
        "sum of 16 Mi",
        lambda: {"x": _random(16 * MEGA) + np.float32(0.25)},
        lambda i: np.asarray(i["x"].sum(dtype=np.float64), np.float32),
        Goal(ratio=3, cpu=1.5),
        nbytes=16.0 * MEGA * 4,
    ),
    "conv": Workload(
        "conv 3×3, 64→64, 56²",
        lambda: {"x": _random(1, 64, 56, 56), "w": _random(64, 64, 3, 3)},
        lambda i: _convolution(i["x"], i["w"]),
        Goal(ratio=3, cpu=1.5),
        flops=2.0 * 64 * 64 * 9 * 56 * 56,
    ),
    "block": Workload(
        "transformer block, 128 × 512",
        lambda: {
            "x": _random(1, LENGTH, WIDTH),
            "wqkv": _random(WIDTH, 3 * WIDTH, scale=0.05),
            "wo": _random(WIDTH, WIDTH, scale=0.05),
            "w1": _random(WIDTH, INNER, scale=0.05),
            "w2": _random(INNER, WIDTH, scale=0.05),
            "gain": _random(WIDTH) + np.float32(1),
            "bias": _random(WIDTH, seed=1),
        },
        _block,
        Goal(ratio=4, cpu=1.5),
        flops=2.0 * LENGTH * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER) + 4.0 * LENGTH * LENGTH * WIDTH,
        tolerance=1e-3,
    ),
    "attention": Workload(
        "attention 8 × 128 × 64, causal",
        lambda: _attention_inputs(LENGTH, LENGTH),
        lambda i: _attention(i["q"], i["k"], i["v"], causal=True),
        flops=4.0 * HEADS * LENGTH * LENGTH * HEAD,
    ),
    "decode": Workload(
        "attention of one query, 8 × 2048 keys × 64",
        lambda: _attention_inputs(1, KEYS),
        lambda i: _attention(i["q"], i["k"], i["v"], causal=False),
        nbytes=2.0 * HEADS * KEYS * HEAD * 4,
    ),
    "matvec_f32": _vector("f32", 4, np.float32, 2e-4),
    "matvec_f16": _vector("f16", 2, np.float16, 2e-2),
    "matvec_4bit": Workload(
        f"matvec {ROWS}×{COLUMNS} 4-bit",
        _four_bit,
        _four_bit_answer,
        Goal(ratio=7),
        flops=2.0 * ROWS * COLUMNS,
        nbytes=ROWS * COLUMNS * (0.5 + 2 / BLOCK_LENGTH),
        tolerance=2e-2,  # a peer may round the vector to 8 bits
    ),
    "sort": Workload(
        "sort of 1 Mi",
        lambda: {"x": _random(MEGA)},
        lambda i: np.sort(i["x"]),
        Goal(milliseconds=45),
    ),
    "cumsum": Workload(
        "cumulative sum of 16 Mi",
        lambda: {"x": _random(16 * MEGA) + np.float32(0.25)},
        lambda i: np.cumsum(i["x"], dtype=np.float64).astype(np.float32),
        Goal(milliseconds=40),
        nbytes=16.0 * MEGA * 8,
        tolerance=1e-3,
    ),
    "tiny": _tiny("1,000 tiny ops, unfused", Goal(against=("tiny_raw", 1.1))),
    "tiny_raw": _tiny("the same, encoded raw", Goal(), only=("webgrad webgpu:0",)),
}
