"""Products with quantised blocks, and their weights, by native code: against NumPy's weights and sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ops.block_reference import random_blocks
from webgrad.cpu.quantised import matmul_blocks
from webgrad.native import calls, helpers
from webgrad.native.blocks import MOST_ROWS
from webgrad.native.calls import decoder, multiplier
from webgrad.ops.blocks import FORMATS, to_words
from webgrad.ops.packed import decoded_rows

Array = np.ndarray[Any, Any]
ALL = sorted(FORMATS)
RNG = np.random.default_rng(5)


def made(name: str, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Words, and their weights by NumPy."""
    words = to_words(random_blocks(name, shape, scale=0.1), FORMATS[name])
    return words, decoded_rows(words, name, shape, slice(0, shape[0]))


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def product(name: str, shape: tuple[int, int], x: Array, words: Array) -> Array:
    out = np.full((len(x), shape[0]), np.nan, np.float32)
    assert multiplier(name, shape)(x, words, out)
    return out


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("blocks", [1, 5])
def test_a_product_of_any_few_rows(name: str, blocks: int) -> None:
    """So many blocks in a row that the scales of more than one stretch are taken, or of less than LANES."""
    shape = (7, blocks * 256)
    words, weights = made(name, shape)
    for count in (*range(1, 9), 9, 10, 11, 16, MOST_ROWS):
        x = floats(count, shape[1])
        want = x.astype(np.float64) @ weights.astype(np.float64).T
        size = np.abs(x).astype(np.float64) @ np.abs(weights).astype(np.float64).T
        assert (np.abs(product(name, shape, x, words) - want) <= 1e-6 * size).all()


@pytest.mark.parametrize("name", ["Q4_1", "Q8_0", "Q5_0"])
@pytest.mark.parametrize("columns", [32, 15 * 32, 17 * 32, 65 * 32])
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_a_product_with_rows_of_any_length(name: str, columns: int, rows: int) -> None:
    words, weights = made(name, (rows, columns))
    x = floats(1, columns)
    want = x.astype(np.float64) @ weights.astype(np.float64).T
    np.testing.assert_allclose(product(name, (rows, columns), x, words), want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ALL)
def test_weights_are_those_of_numpy_to_the_bit(name: str) -> None:
    words, weights = made(name, (11, 512))
    out = np.empty((5, 512), np.float32)
    assert decoder(name, (11, 512))(words, 3, out)
    np.testing.assert_array_equal(out, weights[3:8])


@pytest.mark.parametrize("name", ["Q4_1", "Q6_K"])
def test_neither_threads_nor_batches_change_a_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (1001, 1536)
    words, _ = made(name, shape)
    x = floats(6, shape[1])
    shared = [product(name, shape, x, words) for _ in range(20)]
    monkeypatch.setattr(helpers, "_slots", [])
    monkeypatch.setattr(helpers, "cores", lambda: 1)
    alone = product(name, shape, x, words)
    for each in shared:
        np.testing.assert_array_equal(each, alone)
    for row in range(len(x)):
        np.testing.assert_array_equal(product(name, shape, x[row : row + 1], words)[0], alone[row])


@pytest.mark.parametrize("place", ["x", "scale"])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_comes_out_as_numpy_has_it(
    place: str, number: float, switch_off: Callable[[], None]
) -> None:
    shape = (9, 96)
    data = random_blocks("Q4_1", shape, scale=0.1)
    x = floats(2, 96)
    if place == "x":
        x[1, 40] = number
    else:
        data.reshape(-1, 20)[4, :2] = np.array([number], np.float16).view(np.uint8)
    words = to_words(data, FORMATS["Q4_1"])
    with np.errstate(all="ignore"):  # as plans run
        got = matmul_blocks(x, words, "Q4_1", shape)
        switch_off()
        want = matmul_blocks(x, words, "Q4_1", shape)
    assert not np.isfinite(got).all()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_switched_off_it_is_the_same_within_rounding(switch_off: Callable[[], None]) -> None:
    words, _ = made("Q4_K", (20, 512))
    x = floats(2, 3, 512)
    got = matmul_blocks(x, words, "Q4_K", (20, 512))
    assert got.shape == (2, 3, 20)
    switch_off()
    np.testing.assert_allclose(got, matmul_blocks(x, words, "Q4_K", (20, 512)), rtol=1e-4, atol=1e-3)


def test_what_does_not_fit_is_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (8, 64)
    words, _ = made("Q4_1", shape)
    multiply, decode = multiplier("Q4_1", shape), decoder("Q4_1", shape)
    x, out = floats(1, 64), np.empty((1, 8), np.float32)
    assert multiply(x, words, out)
    assert not multiply(x.astype(np.float64), words, out)
    assert not multiply(x, words, out.astype(np.float64))
    assert not multiply(x, words[:-1], out)
    assert not multiply(x, words.astype(np.uint64), out)
    assert not multiply(x, words, np.empty((1, 9), np.float32))
    assert not multiply(floats(1, 128)[:, ::2], words, out)
    assert not multiply(floats(MOST_ROWS + 1, 64), words, np.empty((MOST_ROWS + 1, 8), np.float32))
    assert not multiply(floats(0, 64), words, np.empty((0, 8), np.float32))
    assert not decode(words, 5, np.empty((4, 64), np.float32))
    assert not decode(words, -1, np.empty((2, 64), np.float32))
    monkeypatch.setattr(calls, "MOST_SUMS", 8)
    assert not multiply(x, words, out)


def test_words_that_may_not_be_written_to() -> None:
    shape = (8, 64)
    words, weights = made("Q4_1", shape)
    words.flags.writeable = False
    x = floats(1, 64)
    np.testing.assert_allclose(product("Q4_1", shape, x, words), x @ weights.T, rtol=1e-4, atol=1e-5)
