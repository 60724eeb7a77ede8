"""Small types on a GPU: every bit pattern is read and written exactly, and rounding is to nearest even."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webgrad as wg

pytestmark = pytest.mark.gpu
HALVES = [np.float16, ml_dtypes.bfloat16]
Array = np.ndarray[Any, Any]


def on_gpu(array: Array) -> wg.Tensor:
    return wg.asarray(array, device="webgpu")


def patterns(dtype: Any) -> Array:
    """All finite numbers of 16 bits."""
    every = np.arange(0x10000, dtype=np.uint16).view(dtype)
    return np.asarray(every[np.isfinite(every.astype(np.float32))])


@pytest.mark.parametrize("dtype", HALVES)
def test_all_finite_16_bit_floats(dtype: Any) -> None:
    values = patterns(dtype)
    found = (-on_gpu(values)).numpy()
    np.testing.assert_array_equal(found.view(np.uint16), values.view(np.uint16) ^ 0x8000)


@pytest.mark.parametrize("dtype", HALVES)
def test_rounding_is_to_nearest_even(dtype: Any) -> None:
    values, factor = patterns(dtype), np.float32(1.001953125)
    with np.errstate(over="ignore"):
        expected = (values.astype(np.float32) * factor).astype(dtype)
    found = (on_gpu(values) * float(factor)).numpy()
    normal = np.abs(values.astype(np.float32)) > 2e-38  # smaller ones may be flushed on the way
    np.testing.assert_array_equal(found.view(np.uint16)[normal], expected.view(np.uint16)[normal])


@pytest.mark.parametrize("dtype", HALVES)
def test_nan_and_infinities_survive(dtype: Any) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 1.0], dtype)
    found = (on_gpu(x) * 2.0).numpy().astype(np.float32)
    np.testing.assert_array_equal(found, np.array([np.nan, np.nan, np.inf, -np.inf, 2], np.float32))


def test_bfloat16_keeps_a_nan_that_arithmetic_makes() -> None:
    x, y = (np.array(each, ml_dtypes.bfloat16) for each in ([np.inf, -np.inf, 0, 1], [0, 0, 0, 1]))
    found = (on_gpu(x) * on_gpu(y)).numpy().astype(np.float32)
    np.testing.assert_array_equal(found, np.array([np.nan, np.nan, 0, 1], np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_small_integers_wrap(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.max, limits.min, limits.max, 3, 5], dtype)
    b = np.array([1, 1, limits.max, 7, 0], dtype)
    x, y = on_gpu(a), on_gpu(b)
    for found, expected in ((x + y, a + b), (x - y, a - b), (x * y, a * b)):
        np.testing.assert_array_equal(found.numpy(), expected)
