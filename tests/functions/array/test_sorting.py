"""Sorting against NumPy: every dtype, NaN and signed zeros, stability, directions, top-k, searching."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad import dtypes
from webgrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.array.sorting import argsort, searchsorted, sort, topk
from webgrad.tensor import Tensor

INF, NAN = np.inf, np.nan
Array = np.ndarray[Any, Any]
SPECIAL = np.array(
    [NAN, INF, 1, -0.0, 0.0, -INF, -1, 1e-45, -1e-45, 3e38, -3e38, -NAN, 0.0, -0.0], np.float32
)


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def values_of(dtype: dtypes.DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    return generator.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)


def backwards(x: Array, axis: int) -> Array:
    """The stable order from the largest down, NaN first: that of the reversed array, reversed."""
    places = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return np.asarray(x.shape[axis] - 1 - places)


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda each: each.name)
def test_every_dtype(dtype: dtypes.DType) -> None:
    for shape, axis in [((50,), 0), ((4, 9), -1), ((9, 4), 0), ((3, 7, 2), 1)]:
        x = values_of(dtype, shape)
        expected = np.argsort(
            x.astype(np.float64) if dtype.name == "bfloat16" else x, axis=axis, kind="stable"
        )
        places = argsort(on_cpu(x), axis)
        assert places.dtype is dtypes.int32
        np.testing.assert_array_equal(places.numpy(), expected)
        result = sort(on_cpu(x), axis)
        assert result.dtype is dtype
        np.testing.assert_array_equal(result.numpy(), np.take_along_axis(x, expected, axis))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_is_last_and_zeros_are_equal(dtype: Any) -> None:
    x = SPECIAL.clip(-60000, 60000).astype(dtype)
    x[1], x[5] = INF, -INF
    np.testing.assert_array_equal(argsort(on_cpu(x)).numpy(), np.argsort(x, kind="stable"))
    assert sort(on_cpu(x)).numpy().tobytes() == np.sort(x, kind="stable").tobytes()


def test_every_order_of_the_smallest_and_largest_integers() -> None:
    for dtype in (np.int8, np.int32, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        x = np.array([0, limits.max, limits.min, 1, limits.max - 1, limits.min + 1, 0], dtype)
        np.testing.assert_array_equal(argsort(on_cpu(x)).numpy(), np.argsort(x, kind="stable"))


def test_descending_is_stable_and_has_nan_first() -> None:
    np.testing.assert_array_equal(argsort(on_cpu(SPECIAL), descending=True).numpy(), backwards(SPECIAL, 0))
    x = np.random.default_rng(1).integers(0, 4, (5, 30)).astype(np.int16)
    for axis in (0, 1):
        expected = backwards(x, axis)
        np.testing.assert_array_equal(argsort(on_cpu(x), axis, descending=True).numpy(), expected)
        values = sort(on_cpu(x), axis, descending=True).numpy()
        np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


@pytest.mark.property
@given(
    arrays.arrays(
        np.float32,
        arrays.array_shapes(max_dims=3, min_side=0),
        elements=st.floats(width=32),
        fill=st.nothing(),
    )
)
def test_any_floats(x: Array) -> None:
    np.testing.assert_array_equal(argsort(on_cpu(x)).numpy(), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(argsort(on_cpu(x), 0, descending=True).numpy(), backwards(x, 0))


@everywhere
@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda each: each.name)
def test_long_rows_of_every_dtype(kind: str, dtype: dtypes.DType) -> None:
    x = values_of(dtype, (2, 3000))
    x[1, ::7] = x[1, 0]
    exact = x.astype(np.float64) if dtype.name == "bfloat16" else x
    expected = np.argsort(exact, axis=1, kind="stable")
    np.testing.assert_array_equal(argsort(place(kind, x)).numpy(), expected)
    np.testing.assert_array_equal(argsort(place(kind, x), descending=True).numpy(), backwards(exact, 1))


@everywhere
def test_many_elements(kind: str) -> None:
    x = np.random.default_rng(2).standard_normal(300_003).astype(np.float32)
    x[::1000], x[1::1000], x[2::1000] = NAN, -0.0, INF
    np.testing.assert_array_equal(argsort(place(kind, x)).numpy(), np.argsort(x, kind="stable"))


@pytest.mark.gpu
@pytest.mark.long
def test_three_million_elements() -> None:
    x = np.random.default_rng(6).integers(0, 2**32, 3_000_001, np.uint32)
    places = argsort(place("software", x)).numpy()
    pairs = x[places].astype(np.uint64) << np.uint64(32) | places.astype(np.uint64)
    assert (pairs[1:] > pairs[:-1]).all()  # in order, equal ones by their places, each once
    np.testing.assert_array_equal(topk(place("software", x), 9)[1].numpy(), places[::-1][:9])


@everywhere
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_few_of_many(kind: str, largest: bool) -> None:
    generator = np.random.default_rng(3)
    floats = generator.standard_normal((3, 40_001)).astype(np.float32)
    floats[0, ::5000], floats[1, ::3000] = NAN, INF
    ties = generator.integers(0, 3, (2, 50_000)).astype(np.int8)
    equal = np.full((1, 30_000), -7, np.int32)
    for x in (floats, ties, equal.astype(np.float16)):
        order = backwards(x, 1) if largest else np.argsort(x, axis=1, kind="stable")
        for count in (1, 100):
            values, places = topk(place(kind, x), count, largest=largest)
            np.testing.assert_array_equal(places.numpy(), order[:, :count])
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order[:, :count], 1))


@everywhere
def test_ties_stay_in_order_though_the_smallest_of_all_comes_late(kind: str) -> None:
    x = np.full(20_000, 9, np.int32)
    x[[16_000, 16_001, 300]] = 0, 1, 1
    assert topk(place(kind, x), 3, largest=False)[1].tolist() == [16_000, 300, 16_001]
    assert topk(place(kind, -x), 2)[1].tolist() == [16_000, 300]


@everywhere
def test_the_first_few_of_very_many_and_along_other_axes(kind: str) -> None:
    x = np.random.default_rng(4).standard_normal(600_000).astype(np.float32)
    assert topk(place(kind, x), 50)[1].tolist() == backwards(x, 0)[:50].tolist()
    columns = x.reshape(20_000, 30)
    values, places = topk(place(kind, columns), 3, axis=0, largest=False)
    expected = np.argsort(columns, axis=0, kind="stable")[:3]
    np.testing.assert_array_equal(places.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(columns, expected, 0))
    assert topk(place(kind, x), 0)[0].shape == (0,)
    wide = np.random.default_rng(5).integers(-(2**62), 2**62, 20_000)
    assert topk(place(kind, wide), 5)[1].tolist() == backwards(wide, 0)[:5].tolist()


def test_empty_and_single() -> None:
    for shape, axis in [((0,), 0), ((3, 0), 1), ((0, 3), 1), ((1,), 0), ((2, 1), 1)]:
        x = np.ones(shape, np.float32)
        assert sort(on_cpu(x), axis).shape == argsort(on_cpu(x), axis).shape == shape
    assert argsort(on_cpu([[5.0], [4.0]])).tolist() == [[0], [0]]


def test_methods() -> None:
    x = on_cpu([[3, 1], [0, 2]])
    assert x.sort(axis=0).tolist() == [[0, 1], [3, 2]]
    assert x.argsort(descending=True).tolist() == [[0, 1], [1, 0]]
    assert [each.tolist() for each in x.topk(1)] == [[[3], [2]], [[0], [1]]]


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("largest", [True, False])
def test_top_k(axis: int, largest: bool) -> None:
    x = np.random.default_rng(3).integers(0, 9, (6, 8)).astype(np.float32)
    order = backwards(x, axis) if largest else np.argsort(x, axis=axis, kind="stable")
    for k in (0, 1, 4, 6):
        places = np.take(order, np.arange(k), axis)
        values, found = topk(on_cpu(x), k, axis, largest)
        np.testing.assert_array_equal(found.numpy(), places)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, places, axis))
        assert found.dtype is dtypes.int32


def test_top_k_takes_nan_for_the_largest() -> None:
    x = on_cpu([1.0, NAN, 5.0, -INF])
    values, places = topk(x, 2)
    assert places.tolist() == [1, 2]
    np.testing.assert_array_equal(values.numpy(), [NAN, 5])
    assert topk(x, 3, largest=False)[1].tolist() == [3, 0, 2]


@everywhere
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 100, 1000])
def test_searching(kind: str, side: Any, length: int) -> None:
    generator = np.random.default_rng(length)
    line = np.sort(generator.integers(0, 50, length).astype(np.int32))
    values = generator.integers(-5, 55, (4, 5)).astype(np.int32)
    result = searchsorted(place(kind, line), place(kind, values), side)
    assert result.dtype is dtypes.int32
    np.testing.assert_array_equal(result.numpy(), np.searchsorted(line, values, side))


@everywhere
@pytest.mark.parametrize("side", ["left", "right"])
def test_searching_special_floats_and_mixed_types(kind: str, side: Any) -> None:
    line = np.sort(SPECIAL)
    np.testing.assert_array_equal(
        searchsorted(place(kind, line), place(kind, SPECIAL), side).numpy(),
        np.searchsorted(line, SPECIAL, side),
    )
    whole = place(kind, np.array([1, 2, 3], np.int8))
    halves = place(kind, np.array([2.5, 2.0], np.float32))
    assert searchsorted(whole, halves, side).tolist() == [2, 1 if side == "left" else 2]
    assert searchsorted(whole, place(kind, 9), side).item() == 3


def test_searching_with_a_sorter() -> None:
    x = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    order = argsort(on_cpu(x))
    values = np.linspace(-3, 3, 13).astype(np.float32)
    expected = np.searchsorted(x, values, sorter=np.argsort(x))
    np.testing.assert_array_equal(searchsorted(on_cpu(x), on_cpu(values), sorter=order).numpy(), expected)


def test_mistakes_are_named() -> None:
    x = on_cpu([[1, 2, 3]])
    with pytest.raises(AxisError, match=r"sort.*5"):
        sort(x, 5)
    with pytest.raises(AxisError, match="argsort"):
        argsort(on_cpu(1.0), axis=1)
    with pytest.raises(DTypeError, match="sort takes a webgrad tensor, not a ndarray"):
        sort(np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(
        ShapeError, match=r"topk: k must be from 0 to 3, the size of axis 1 of \(1, 3\), not 4"
    ):
        topk(x, 4)
    with pytest.raises(ArgumentError, match=r"topk: k must be an integer, not 1.5"):
        topk(x, 1.5)  # type: ignore[arg-type]
    with pytest.raises(
        ShapeError, match=r"searchsorted takes a sorted tensor of one dimension, or .*\(1, 3\) and \(2,\)"
    ):
        searchsorted(x, on_cpu([1, 2]))
    line = on_cpu([1, 2])
    with pytest.raises(ArgumentError, match="side is 'left' or 'right', not 'middle'"):
        searchsorted(line, line, "middle")
    with pytest.raises(DTypeError, match=r"sorter must be argsort\(x1\), .* not float32 of shape \(2,\)"):
        searchsorted(line, line, sorter=on_cpu([1.0, 0.0]))


def test_searchsorted_takes_a_number() -> None:
    x = on_cpu([1, 3, 5], dtypes.uint8)
    assert searchsorted(x, 3).item() == 1
    assert searchsorted(x, 4.5, side="right").tolist() == 2


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_of_lines_searches_each(device: str, side: Any) -> None:
    generator = np.random.default_rng(3)
    lines = np.sort(generator.integers(0, 6, (2, 3, 7)).astype(np.float32), -1)
    lines[0, 0, -2:] = np.nan
    values = generator.integers(-1, 7, (2, 3, 5)).astype(np.float32)
    values[0, 0, 0] = np.nan
    wanted = [
        np.searchsorted(line, each, side)
        for line, each in zip(lines.reshape(-1, 7), values.reshape(-1, 5), strict=True)
    ]
    found = searchsorted(wg.asarray(lines, device=device), wg.asarray(values, device=device), side)
    np.testing.assert_array_equal(found.numpy(), np.reshape(wanted, values.shape))
    order = wg.argsort(wg.asarray(-lines, device=device))
    again = searchsorted(wg.asarray(-lines, device=device), wg.asarray(values, device=device), side, order)
    turned = [
        np.searchsorted(np.sort(-line), each, side)
        for line, each in zip(lines.reshape(-1, 7), values.reshape(-1, 5), strict=True)
    ]
    np.testing.assert_array_equal(again.numpy(), np.reshape(turned, values.shape))
