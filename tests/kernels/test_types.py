"""Storage of small types: every bit pattern is read and written exactly, and rounding is to nearest even."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.harness import DTYPES, NATIVE_F16, PROFILES, Array, run
from webgrad.kernels.choose import binary, unary

SOFTWARE = PROFILES["software"]


def _patterns(dtype: str) -> Array:
    bits = np.arange(0x10000, dtype=np.uint16)
    return np.asarray(bits[np.isfinite(bits.view(DTYPES[dtype]).astype(np.float32))])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_all_finite_16_bit_floats(dtype: str) -> None:
    bits = _patterns(dtype)
    actual = run(unary(SOFTWARE, "neg", dtype, bits.size), [bits], np.uint16, bits.size)
    np.testing.assert_array_equal(actual, bits ^ 0x8000)


@pytest.mark.gpu
def test_all_native_float16() -> None:
    bits = _patterns("f16")
    actual = run(unary(NATIVE_F16, "neg", "f16", bits.size), [bits], np.uint16, bits.size)
    np.testing.assert_array_equal(actual, bits ^ 0x8000)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_rounding_is_to_nearest_even(dtype: str) -> None:
    bits = _patterns(dtype)
    values = bits.view(DTYPES[dtype])
    factor = np.float32(1.001953125)
    with np.errstate(over="ignore"):
        expected = (values.astype(np.float32) * factor).astype(values.dtype)
    actual = run(unary(SOFTWARE, "scale", dtype, bits.size, float(factor)), [bits], np.uint16, bits.size)
    normal = np.abs(values.astype(np.float32)) > 2e-38  # smaller ones may be flushed on the way
    np.testing.assert_array_equal(actual[normal], expected.view(np.uint16)[normal])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_nan_and_infinities_survive(dtype: str) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 1.0], DTYPES[dtype])
    actual = run(unary(SOFTWARE, "scale", dtype, 5, 2.0), [x], x.dtype, 5).astype(np.float32)
    np.testing.assert_array_equal(actual, np.array([np.nan, np.nan, np.inf, -np.inf, 2], np.float32))


@pytest.mark.gpu
def test_bfloat16_keeps_a_nan_that_arithmetic_makes() -> None:
    x = np.array([np.inf, -np.inf, 0, 1], ml_dtypes.bfloat16)
    y = np.array([0, 0, 0, 1], ml_dtypes.bfloat16)
    actual = run(binary(SOFTWARE, "mul", "bf16", 4), [x, y], x.dtype, 4).astype(np.float32)
    np.testing.assert_array_equal(actual, np.array([np.nan, np.nan, 0, 1], np.float32))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16"])
def test_small_integers_wrap(dtype: str) -> None:
    limits = np.iinfo(DTYPES[dtype])
    a = np.array([limits.max, limits.min, limits.max, 3, 5], DTYPES[dtype])
    b = np.array([1, 1, limits.max, 7, 0], DTYPES[dtype])
    for op, reference in (("add", a + b), ("sub", a - b), ("mul", a * b)):
        np.testing.assert_array_equal(run(binary(SOFTWARE, op, dtype, 5), [a, b], a.dtype, 5), reference)
