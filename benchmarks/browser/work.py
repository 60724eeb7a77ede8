"""What is measured in a browser: inputs, and NumPy's answers, or the cpu's.

In: a workload's name. Out: arrays by name, which every candidate gets from files, and the result to compare
with. `WEIGHTS` may be kept in a model; the other arrays are its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import webgrad as wg
from scripts.onnx_inputs import source_of

__all__ = ["FILES", "HEAD", "HEADS", "LENGTH", "SIDE", "WEIGHTS", "WIDTH", "WORK", "Work", "file_of"]

Array = NDArray[Any]
Arrays = dict[str, Array]
SIDE = 1024  # of the matrices
LENGTH, WIDTH, HEADS, INNER = 128, 256, 4, 1024  # of the transformer block
HEAD = WIDTH // HEADS
FILES = {"lcnet": (1, 3, 224, 224), "pp-ocr-cls": (1, 3, 48, 192)}  # published ONNX models, and their only x
WEIGHTS = ("wqkv", "wo", "w1", "w2", "gain", "bias")


@dataclass(frozen=True)
class Work:
    """A workload: what it is called in tables, its inputs, and its answer."""

    title: str
    inputs: Callable[[], Arrays]
    answer: Callable[[Arrays], Array]


def file_of(name: str) -> Path:
    """A published model's file, which is pulled once."""
    return Path(wg.models.locate(source_of(name)))


def _published(name: str) -> Work:
    """A published model; its answer is webgrad's on the cpu, which scripts/onnx_models.py compares."""
    return Work(
        f"{name}, {' × '.join(map(str, FILES[name]))}",
        lambda: {"x": _random(10, *FILES[name], scale=2.0)},
        lambda i: np.asarray(wg.onnx.load(file_of(name), device="cpu")(**i)[0].numpy()),
    )


def _random(seed: int, *shape: int, scale: float = 1.0) -> Array:
    generator = np.random.default_rng([seed, *shape])
    return (generator.random(shape, np.float32) - np.float32(0.5)) * np.float32(scale)


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
    return np.asarray(centred / spread * gain + bias)


def _gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _block_inputs() -> Arrays:
    return {
        "x": _random(1, LENGTH, WIDTH, scale=2.0),
        "wqkv": _random(2, WIDTH, 3 * WIDTH, scale=0.2),
        "wo": _random(3, WIDTH, WIDTH, scale=0.2),
        "w1": _random(4, WIDTH, INNER, scale=0.2),
        "w2": _random(5, INNER, WIDTH, scale=0.2),
        "gain": 1 + _random(6, WIDTH, scale=0.2),
        "bias": _random(7, WIDTH, scale=0.2),
    }


def _block(i: Arrays) -> Array:
    x, gain, bias = i["x"], i["gain"], i["bias"]
    q, k, v = (_layer_norm(x, gain, bias) @ i["wqkv"]).reshape(LENGTH, 3, HEADS, HEAD).transpose(1, 2, 0, 3)
    scores = q @ k.swapaxes(-1, -2) * np.float32(HEAD**-0.5)
    shares = _softmax(scores + np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1))
    x = (shares @ v).transpose(1, 0, 2).reshape(LENGTH, WIDTH) @ i["wo"] + x
    return np.asarray(_gelu(_layer_norm(x, gain, bias) @ i["w1"]) @ i["w2"] + x)


WORK = {
    "matmul": Work(
        f"matmul {SIDE}",
        lambda: {"a": _random(8, SIDE, SIDE), "b": _random(9, SIDE, SIDE)},
        lambda i: np.asarray(i["a"] @ i["b"]),
    ),
    "block": Work(f"transformer block, {LENGTH} × {WIDTH}", _block_inputs, _block),
    **{name: _published(name) for name in FILES},
}
