"""Running totals by NumPy in chunks: layouts, dtypes, short and long axes, accurate sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad import dtypes
from webgrad.cpu.scans import scan_of
from webgrad.graph.node import signature
from webgrad.ops.table import TABLE
from webgrad.runtime.device import open_device

Array = np.ndarray[Any, Any]
FOLDS: dict[str, np.ufunc] = {
    "cumulative_sum": np.add,
    "cumulative_prod": np.multiply,
    "cumulative_max": np.maximum,
    "cumulative_min": np.minimum,
}


def scanned(name: str, x: Array, axis: int) -> Array:
    dtype = dtypes.as_dtype(x.dtype)
    scan = scan_of(signature(TABLE[name], x.shape, dtype, open_device("cpu"), (axis,)), x.dtype)
    assert scan is not None
    before = x.copy()
    result = scan(x)
    assert result.dtype == x.dtype
    assert not np.shares_memory(result, x)
    np.testing.assert_array_equal(x, before)
    return result


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((5,), 0),
        ((300_001,), 0),
        ((3, 150_000), 1),
        ((900, 300), 1),
        ((900, 300), 0),
        ((2, 90_000, 3), 1),
        ((0, 4), 1),
    ],
    ids=str,
)
def test_integers(name: str, shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.int32)
    for layout in (x, np.asfortranarray(x), x[..., ::-1], np.broadcast_to(x[..., :1], shape)):
        expected = FOLDS[name].accumulate(layout, axis=axis, dtype=np.int32)
        np.testing.assert_array_equal(scanned(name, layout, axis), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axis"), [((300_001,), 0), ((3, 150_000), 1), ((20_000, 3), 0), ((20_000, 40), 0)]
)
def test_sums_of_floats_are_accurate(dtype: type, shape: tuple[int, ...], axis: int) -> None:
    x: Array = np.full(shape, 0.1, dtype)
    exact = np.cumsum(x.astype(np.longdouble), axis)
    error = np.abs(scanned("cumulative_sum", x, axis) / exact - 1).max()
    assert error < 100 * np.finfo(dtype).eps


def test_nan_and_infinities_go_on() -> None:
    x = np.ones(400_000, np.float32)
    x[100_000], x[300_000] = np.inf, np.nan
    for name, ufunc in FOLDS.items():
        with np.errstate(all="ignore"):
            result, expected = scanned(name, x, 0), ufunc.accumulate(x)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))


@pytest.mark.parametrize("columns", [1, 2, 3, 15, 16])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_numbers_are_exact_and_special_values_stay_in_their_column(columns: int, dtype: type) -> None:
    generator = np.random.default_rng(4)
    for length in (129, 160, 5_001, 150_000):
        x: Array = generator.integers(-9, 9, (2, length, columns)).astype(dtype)
        expected = np.cumsum(x, axis=1)
        np.testing.assert_array_equal(scanned("cumulative_sum", x, 1), expected)
        np.testing.assert_array_equal(scanned("cumulative_sum", x[:, ::-1], 1), np.cumsum(x[:, ::-1], axis=1))
        x[1, length // 2, 0], x[0, length - 1, -1] = np.inf, np.nan
        np.testing.assert_array_equal(scanned("cumulative_sum", x, 1), np.cumsum(x, axis=1))


def test_sums_that_overflow() -> None:
    x = np.full(150_000, 3e33, np.float32)
    x[75_000:] *= -1
    with np.errstate(all="ignore"):
        result = scanned("cumulative_sum", x, 0)
    assert np.isfinite(result[:100_000]).all()
    x *= 10
    with np.errstate(all="ignore"):
        result = scanned("cumulative_sum", x, 0)
    assert np.isfinite(result[:10_000]).all()
    assert np.isinf(result[11_400:75_000]).all()
