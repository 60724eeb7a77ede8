"""Products with half-width weights by native code."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from webgrad.native.calls import multiply_rows, widen_rows

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(5, 1), (4, 16), (7, 33), (301, 257)])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 31])
def test_a_product(dtype: Any, shape: tuple[int, int], count: int) -> None:
    weights = RNG.standard_normal(shape).astype(dtype)
    x = RNG.standard_normal((count, shape[1])).astype(np.float32)
    out = np.full((count, shape[0]), np.nan, np.float32)
    assert multiply_rows(x, weights, out)
    want = x.astype(np.float64) @ weights.astype(np.float64).T
    size = np.abs(x).astype(np.float64) @ np.abs(weights.astype(np.float64)).T
    assert (np.abs(out - want) <= 1e-6 * size).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_number_is_widened_exactly(dtype: Any) -> None:
    """Subnormal ones, infinities and NaN too: one times each."""
    weights = np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(-1, 1)
    for columns in (1, 16):  # by the loop of single numbers, and by that of vectors
        padded = np.zeros((1 << 16, columns), dtype)
        padded[:, -1:] = weights
        out = np.empty((1, 1 << 16), np.float32)
        assert multiply_rows(np.ones((1, columns), np.float32), padded, out)
        np.testing.assert_array_equal(out[0], weights[:, 0].astype(np.float32))
        wide = np.empty(padded.shape, np.float32)
        assert widen_rows(padded, wide)
        np.testing.assert_array_equal(wide, padded.astype(np.float32))


def test_what_does_not_fit_is_left_to_numpy() -> None:
    weights, x, out = np.ones((4, 16), np.float16), np.ones((1, 16), np.float32), np.empty((1, 4), np.float32)
    assert multiply_rows(x, weights, out)
    assert not multiply_rows(x, weights.astype(np.float32), out)
    assert not multiply_rows(x, np.ones((16, 4), np.float16).T, out)
    assert not multiply_rows(x[:, :8], weights, out)
    assert not multiply_rows(x, weights, out[:, :2])
    assert not widen_rows(weights, np.empty((4, 15), np.float32))
    assert not widen_rows(weights, np.empty((4, 16), np.float64))
    assert not widen_rows(weights.T, np.empty((16, 4), np.float32))
