"""What the ops compute, in NumPy: the cpu device's results, and what the GPU's are compared with.

In: arrays of float32 or integers (narrower floats are widened by the caller) and scalars. Out: an array. The
invariant: limits are values, as on the GPU: gelu and silu are 0 at minus infinity, no columns no error.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..arrays import Array, np

__all__ = ["REFERENCE"]


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), x.dtype)


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _gated(x: Array, gate: Array) -> Array:
    return np.where(np.isneginf(x), np.zeros_like(x), x * gate)


def _softmax(x: Array) -> Array:
    if not x.size:
        return x
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


REFERENCE: dict[str, Callable[..., Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: _gated(x, 0.5 * (1 + _erf(x / np.float32(math.sqrt(2))))),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "silu": lambda x: _gated(x, _sigmoid(x)),
    "scale": lambda x, factor: x * factor,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "softmax": _softmax,
    "matmul": lambda a, b, transposed: a @ (b.T if transposed else b),
    "dot": lambda a, b: np.asarray(np.vdot(a, b)),
}
