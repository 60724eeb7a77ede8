"""Quantised blocks by NumPy: chunks, pieces, results that are there already, and plans around them."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from tests.ops.block_reference import dequantise, random_blocks
from webgrad.cpu import panels, quantised
from webgrad.cpu.quantised import decode, matmul_blocks
from webgrad.ops.blocks import FORMATS, to_words

SHAPE = (11, 96)
DATA = random_blocks("Q5_1", SHAPE, scale=0.1)
WORDS, WEIGHTS = to_words(DATA, FORMATS["Q5_1"]), dequantise(DATA, "Q5_1", SHAPE)


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize("size", [1, 96, 300, 1 << 20])
def test_weights_and_products_in_any_pieces(
    size: int, native: str, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setenv("WEBGRAD_NATIVE", native)
    clean_environment.setattr(panels, "PANEL", 2 * size)
    clean_environment.setattr(quantised, "PLAIN_PIECE", size)
    np.testing.assert_array_equal(decode(WORDS, "Q5_1", SHAPE), WEIGHTS)
    x = np.random.default_rng(0).standard_normal((4, 3, 96)).astype(np.float32)
    got = matmul_blocks(x, WORDS, "Q5_1", SHAPE)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, x @ WEIGHTS.T, rtol=1e-4, atol=1e-4)
    out = np.empty((4, 3, 11), np.float32)
    assert matmul_blocks(x, WORDS, "Q5_1", SHAPE, out) is out
    np.testing.assert_array_equal(out, got)


def test_operands_that_are_turned() -> None:
    x = np.random.default_rng(1).standard_normal((96, 4)).astype(np.float32).T
    np.testing.assert_allclose(matmul_blocks(x, WORDS, "Q5_1", SHAPE), x @ WEIGHTS.T, rtol=1e-4, atol=1e-4)


def test_a_plan_with_everything_around() -> None:
    """Large enough for loops over blocks: before the product, after it, and in another shape."""
    data = random_blocks("Q8_0", (300, 256), scale=0.01)
    q, weights = wg.from_blocks(data, "Q8_0", (300, 256), device="cpu"), dequantise(data, "Q8_0", (300, 256))
    x = np.random.default_rng(2).standard_normal((400, 256)).astype(np.float32)
    made = wg.relu((wg.asarray(x, device="cpu") * 2) @ q.T + 1).reshape(200, 600)
    want = np.maximum(2 * x @ weights.T + 1, 0).reshape(200, 600)
    np.testing.assert_allclose(made.numpy(), want, rtol=1e-4, atol=1e-4)
    plain = (wg.asarray(x, device="cpu") @ q.T).reshape(4, -1)
    np.testing.assert_allclose(plain.numpy(), (x @ weights.T).reshape(4, -1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose((q.dequantise() * 3).sum().item(), 3 * weights.sum(), rtol=1e-3)
