"""What is computed between two transposes: NumPy keeps the order of its inputs, and results are in C's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg

Array = np.ndarray[Any, Any]
Function = Callable[[Any], Any]
RNG = np.random.default_rng(5)
SQUARE = RNG.integers(1, 6, (3, 3)).astype(np.float32)
CUBE = RNG.standard_normal((4, 4, 4)).astype(np.float32)
IMAGES = RNG.standard_normal((2, 5, 5, 5)).astype(np.float32)
NUMBERS = (RNG.standard_normal((4, 4)) + 1j * RNG.standard_normal((4, 4))).astype(np.complex64)


def softmax_of(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


PROGRAMS: dict[str, tuple[Array, Function, Function]] = {
    "a sum": (SQUARE, lambda x: (x.T + 1).T, lambda x: x + 1),
    "a quotient by sums": (SQUARE, lambda x: (x.T / x.sum(1)).T, lambda x: (x.T / x.sum(1)).T),
    "softmax": (SQUARE, lambda x: wg.softmax(x.T, -1).T, lambda x: softmax_of(x.T).T),
    "channels last and back": (
        IMAGES,
        lambda x: wg.tanh(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2),
        lambda x: np.tanh(x),
    ),
    "a cube turned round": (
        CUBE,
        lambda x: (x.permute(1, 2, 0) * 2).permute(2, 0, 1),
        lambda x: x * 2,
    ),
    "products of complex numbers": (
        NUMBERS,
        lambda x: wg.cumprod(x, axis=0),
        lambda x: np.cumprod(x, axis=0),
    ),
    "half precision": (
        SQUARE.astype(np.float16),
        lambda x: (x.T * 2).T,
        lambda x: x * 2,
    ),
    "rows added in half precision": (
        SQUARE.astype(np.float16),
        lambda x: wg.index_add(x, wg.asarray([0, 0, 1]), x, axis=1),
        lambda x: x + np.stack([x[:, 0] + x[:, 1], x[:, 2], 0 * x[:, 2]], 1),
    ),
}


@pytest.mark.parametrize("captured", [False, True], ids=["plain", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_not_transposed(name: str, captured: bool) -> None:
    values, function, numpy = PROGRAMS[name]
    run = wg.jit(function) if captured else function
    for _ in range(3):  # recorded, captured, run again
        found = run(wg.asarray(values, device="cpu")).numpy()
        np.testing.assert_allclose(found, numpy(values), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_are_not_transposed(axis: int) -> None:
    values, other = CUBE[0], CUBE[1]
    x = wg.asarray(values, device="cpu").requires_grad_()
    wg.linalg.vecdot(x, wg.asarray(other, device="cpu"), axis=axis).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), other, rtol=1e-6)
    y = wg.asarray(values, device="cpu").requires_grad_()
    wg.linalg.matrix_norm(y).backward()
    assert y.grad is not None
    np.testing.assert_allclose(y.grad.numpy(), values / np.linalg.norm(values), rtol=1e-5)
