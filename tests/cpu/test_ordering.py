"""Orders and scatters by NumPy: pairs of 32-bit keys and places, threads, repeats, sums of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad.cpu.ordering import sorted_places
from webgrad.cpu.scattering import scatter

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0), (1,), (5, 1), (9,), (70_000,), (40, 3_000), (2, 3, 100)], ids=str
)
def test_orders_are_numpys(dtype: type, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(1)
    for most in (limits.max, 3):
        keys = np.asarray(generator.integers(0, most, shape, dtype, endpoint=True))
        places = sorted_places(keys)
        assert places.dtype == np.int32
        assert places.flags.owndata
        expected = np.argsort(keys, axis=-1, kind="stable") if keys.ndim else np.zeros((), int)
        np.testing.assert_array_equal(places, expected)


def test_keys_of_any_layout() -> None:
    keys = np.random.default_rng(2).integers(0, 2**32, (300, 400), np.uint32)
    for layout in (keys.T, keys[::2, ::-3], np.broadcast_to(keys[0], (3, 400))):
        np.testing.assert_array_equal(sorted_places(layout), np.argsort(layout, axis=-1, kind="stable"))


@pytest.mark.parametrize("how", ["set", "add", "max"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_scatters(how: str, columns: int, dtype: type) -> None:
    generator = np.random.default_rng(3)
    base: Array = generator.integers(0, 99, (50, columns)).astype(dtype)
    updates: Array = generator.integers(0, 99, (400, columns)).astype(dtype)
    index = generator.integers(-3, 53, 400).astype(np.int32)
    expected, before = base.copy(), base.copy()
    for row, update in zip(np.clip(index, 0, 49), updates, strict=True):
        old = expected[row]
        expected[row] = {"set": update, "add": old + update, "max": np.maximum(old, update)}[how]
    np.testing.assert_array_equal(scatter(how, base, index, updates), expected)
    np.testing.assert_array_equal(base, before)


def test_sums_of_single_floats_are_rounded_once() -> None:
    updates = np.full((10**6, 1), 0.1, np.float32)
    result = scatter("add", np.zeros((3, 1), np.float32), np.ones(10**6, np.int32), updates)
    assert result[1, 0] == np.float32(updates.astype(np.float64).sum())


def test_nothing_to_write_to() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert scatter("add", empty, np.zeros(2, np.int32), np.ones((2, 3), np.float32)).shape == (0, 3)
