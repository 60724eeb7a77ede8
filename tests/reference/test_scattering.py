"""Rows written to computed places: against a plain loop, in place or not, sums of floats, turned arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad.reference.scattering import SERIAL, WIDE, scatter, set_turned

Array = np.ndarray[Any, Any]


def expected(how: str, base: Array, index: Array, updates: Array) -> Array:
    result = base.copy()
    for row, update in zip(np.clip(index.astype(np.int64), 0, len(base) - 1), updates, strict=True):
        old = result[row]
        result[row] = {"set": update, "add": old + update, "max": np.maximum(old, update)}[how]
    return result


@pytest.mark.parametrize("how", ["set", "add", "max"])
@pytest.mark.parametrize("columns", [1, 3, WIDE])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_scatters(how: str, columns: int, dtype: type) -> None:
    generator = np.random.default_rng(3)
    base: Array = generator.integers(0, 99, (50, columns)).astype(dtype)
    updates: Array = generator.integers(0, 99, (400, columns)).astype(dtype)
    for kind in (np.int32, np.int64, np.int8):
        index = generator.integers(-3, 53, 400).astype(kind)
        wanted, before = expected(how, base, index, updates), base.copy()
        np.testing.assert_array_equal(scatter(how, base, index, updates), wanted)
        np.testing.assert_array_equal(base, before)
        written = base.copy()
        assert scatter(how, written, index, updates, reuse=True) is written
        np.testing.assert_array_equal(written, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.int64])
@pytest.mark.parametrize("rows", [7, 100_000])
@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_many_updates(dtype: type, rows: int, kind: type) -> None:
    generator = np.random.default_rng(4)
    count = 5 * SERIAL
    index: Array = generator.integers(0, min(rows, 200), count).astype(kind)
    base: Array = generator.integers(0, 9, (rows, 1)).astype(dtype)
    for updates in (
        generator.integers(0, 5, (count, 1)).astype(dtype),
        np.broadcast_to(dtype(3), (count, 1)),
    ):
        np.testing.assert_array_equal(
            scatter("add", base, index, updates), expected("add", base, index, updates)
        )


@pytest.mark.parametrize("rows", [3, 10**7])
def test_sums_of_single_floats_are_rounded_once(rows: int) -> None:
    updates = np.full((10**6, 1), 0.1, np.float32)
    total = np.float32(updates.astype(np.float64).sum())
    for given in (updates, np.broadcast_to(updates[0], updates.shape)):
        result = scatter("add", np.zeros((rows, 1), np.float32), np.ones(10**6, np.int32), given)
        assert result[1, 0] == pytest.approx(total, rel=1e-7)
        assert result[0, 0] == 0


def test_a_constant_base_may_be_negative_zero() -> None:
    base = np.broadcast_to(np.float32(-0.0), (4, 2))
    result = scatter("set", base, np.array([1]), np.ones((1, 2), np.float32))
    assert np.signbit(result).tolist() == [[True] * 2, [False] * 2, [True] * 2, [True] * 2]


def test_nothing_to_write_to() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert scatter("add", empty, np.zeros(2, np.int32), np.ones((2, 3), np.float32)).shape == (0, 3)
    base = np.ones((2, 3), np.float32)
    assert scatter("set", base, np.zeros(0, np.int32), base[:0]).tolist() == base.tolist()
    assert set_turned((1, 0), 1, base, np.zeros(0, np.int32), base[:0, :2]).tolist() == base.tolist()


@pytest.mark.parametrize(("order", "axes"), [((2, 0, 1), 1), ((2, 1, 0), 2), ((1, 0, 2), 1)])
def test_turned_arrays(order: tuple[int, ...], axes: int) -> None:
    generator = np.random.default_rng(5)
    base = generator.standard_normal((4, 5, 6)).astype(np.float32)
    turned = base.transpose(order)
    rows = int(np.prod(turned.shape[:axes]))
    index = generator.integers(-2, rows + 2, 9).astype(np.int32)
    updates = generator.standard_normal((9, base.size // rows)).astype(np.float32)
    wanted = expected("set", turned.reshape(rows, -1), index, updates).reshape(turned.shape)
    before = base.copy()
    np.testing.assert_array_equal(set_turned(order, axes, base, index, updates).transpose(order), wanted)
    np.testing.assert_array_equal(base, before)
    assert set_turned(order, axes, base, index, updates, reuse=True) is base
    np.testing.assert_array_equal(base.transpose(order), wanted)


@pytest.mark.parametrize("index", [0, 3, 4, 100, -1, -100])
def test_one_row_is_set_where_many_would_be(index: int) -> None:
    base, updates = np.zeros((5, 2), np.float32), np.ones((2, 2), np.float32)
    one = scatter("set", base, np.array([index], np.int32), updates[:1])
    two = scatter("set", base, np.array([index, index], np.int32), updates)
    np.testing.assert_array_equal(one, two)
    assert not base.any()
