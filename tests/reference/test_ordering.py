"""Order by NumPy against its stable argsort: dtypes, descending, the first few, NaN, zeros, threads."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from webgrad.reference import ordering
from webgrad.reference.ordering import (
    LONG,
    SEARCHED,
    binned_places,
    counts_between,
    searched_places,
    sorted_places,
    sorted_values,
)

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(1)
SHAPES = [(), (0,), (3, 0), (1,), (5, 1), (9,), (70_000,), (40, 3_000), (2, 3, 100), (LONG + 5,)]


def expected_order(x: Array, descending: bool) -> Array:
    """Stable, and NaN the largest; backwards by reversing what was reversed."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    order: Array = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return order


def check(x: Array, descending: bool, count: int | None = None) -> None:
    """Places and values, the latter bit by bit."""
    order = expected_order(x, descending)
    places = sorted_places(x, descending, count)
    assert places.dtype == np.int32
    np.testing.assert_array_equal(places, order[..., :count])
    values = np.take_along_axis(x, order, -1)
    assert sorted_values(x, descending).tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integers(dtype: type, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    for low, high in ((limits.min, limits.max), (0, 3)):
        x = np.asarray(RNG.integers(low, high, shape, dtype, endpoint=True))
        if not shape:
            assert sorted_places(x).tolist() == 0
            assert sorted_values(x) == x
            continue
        for descending in (False, True):
            check(x, descending)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (500,), (3, 9_000), (50, 3_000), (LONG + 7,)], ids=str)
def test_floats_keep_zeros_and_nans_in_order(dtype: type, shape: tuple[int, ...]) -> None:
    x: Array = RNG.standard_normal(shape).astype(dtype)
    for share in (0.0, 0.01, 0.4):
        drawn = RNG.random(shape)
        special: Array = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], dtype)
        mixed: Array = np.where(drawn < share, RNG.choice(special, shape), x).astype(dtype)
        for descending in (False, True):
            check(mixed, descending)


def test_bools_and_layouts() -> None:
    check(RNG.random((30, 400)) < 0.5, True)
    x = RNG.standard_normal((300, 400)).astype(np.float32)
    for layout in (x.T, x[::2, ::-3], np.broadcast_to(x[0], (3, 400))):
        check(layout, False)


@pytest.mark.parametrize(
    "shape", [(7,), (2, 40), (SEARCHED,), (2, 20_000), (LONG + 999,), (60, 300)], ids=str
)
@pytest.mark.parametrize("count", [0, 1, 40, 5_000])
@pytest.mark.parametrize("descending", [False, True])
def test_the_first_few(shape: tuple[int, ...], count: int, descending: bool) -> None:
    count = min(count, shape[-1])
    length = shape[-1]
    normal = RNG.standard_normal(shape).astype(np.float32)
    rising = np.broadcast_to(np.arange(length, dtype=np.int64), shape)
    few = RNG.integers(0, 3, shape).astype(np.int32)
    unknown = np.where(RNG.random(shape) < 0.999, np.nan, normal).astype(np.float32)
    spread = np.where(np.arange(length) % 997 == 0, np.nan, normal).astype(np.float32)
    for x in (normal, normal.astype(np.float64), rising, -rising, few, few * 0, unknown, unknown * 0, spread):
        order = expected_order(x, descending)[..., :count]
        np.testing.assert_array_equal(sorted_places(x, descending, count), order)


def test_many_cores_sort_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "cores", lambda: 5)
    x = RNG.standard_normal(2 * LONG + 1).astype(np.float32)
    before = x.copy()
    check(x, False)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searches(dtype: type, side: Literal["left", "right"]) -> None:
    line: Array = np.sort(RNG.integers(0, 50, 300)).astype(dtype)
    x: Array = RNG.integers(-5, 60, (70, 1_000)).astype(dtype)
    found = searched_places(line, x.T, side)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.searchsorted(line, x.T, side))


def test_bins_of_elements() -> None:
    edges = np.array([-1.0, 0.0, 0.0, 2.0], np.float32)
    x = np.array([-1.5, -1.0, -0.0, 1.0, 2.0, 2.5, np.nan, np.inf, -np.inf], np.float32)
    assert binned_places(x, edges).tolist() == [3, 0, 2, 2, 2, 3, 3, 3, 3]
    many = np.random.default_rng(1).standard_normal(200_000).astype(np.float32)
    found = np.bincount(binned_places(many, edges), minlength=4)
    assert found[:3].tolist() == counts_between(many, edges).tolist()
    assert binned_places(x, np.full(3, np.nan, np.float32)).tolist() == [2] * 9


def test_counts_between_edges() -> None:
    x = RNG.standard_normal(200_000).astype(np.float32)
    x[::1000] = np.nan
    edges = np.array([-1, -0.5, 0, 0, 0.25, 3], np.float32)
    x[:5] = [3, -1, 0, 0.25, 5]
    known = x[~np.isnan(x)]
    counts = counts_between(x, edges)
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts, np.histogram(known, edges)[0])
    assert counts_between(x[:0], edges).tolist() == [0] * 5
    assert counts_between(x, np.full(3, np.nan, np.float32)).tolist() == [0, 0]
