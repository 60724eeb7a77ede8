"""Counting against NumPy on every device: integers, even bins, edges, weights, NaN, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import Array, everywhere, place
from webgrad import dtypes
from webgrad.errors import ArgumentError, DTypeError, ShapeError
from webgrad.functions.array.histograms import bincount, histogram

NAN, INF = np.nan, np.inf


@everywhere
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint32, np.int64])
def test_whole_numbers(kind: str, dtype: type) -> None:
    x: Array = np.random.default_rng(1).integers(0, 100, 5000).astype(dtype)
    counts = bincount(place(kind, x))
    assert counts.dtype is dtypes.int32
    np.testing.assert_array_equal(counts.numpy(), np.bincount(x))
    np.testing.assert_array_equal(bincount(place(kind, x), minlength=200).numpy(), np.bincount(x, None, 200))
    np.testing.assert_array_equal(bincount(place(kind, x), length=7).numpy(), np.bincount(x)[:7])
    np.testing.assert_array_equal(bincount(place(kind, x), length=150).numpy(), np.bincount(x, None, 150))


@everywhere
def test_weights_and_what_is_outside(kind: str) -> None:
    x = np.random.default_rng(2).integers(-3, 40, 9000).astype(np.int32)
    weights = np.random.default_rng(3).integers(-9, 9, 9000).astype(np.float32)
    inside = (x >= 0) & (x < 30)
    expected = np.bincount(x[inside], weights[inside], 30)
    np.testing.assert_array_equal(bincount(place(kind, x), place(kind, weights), length=30).numpy(), expected)
    whole = bincount(place(kind, x), place(kind, weights.astype(np.int32)), length=30)
    assert whole.dtype is dtypes.int32
    np.testing.assert_array_equal(whole.numpy(), expected)


@everywhere
def test_no_numbers_and_truths(kind: str) -> None:
    empty = place(kind, np.zeros(0, np.int32))
    assert bincount(empty).shape == (0,)
    assert bincount(empty, minlength=2).tolist() == [0, 0]
    assert bincount(place(kind, np.array([True, False, True]))).tolist() == [1, 2]
    assert bincount(place(kind, np.full(300_000, 2, np.uint8))).tolist() == [0, 0, 300_000]


@everywhere
@pytest.mark.parametrize("bins", [1, 10, 37, 1000])
def test_bins_of_equal_width(kind: str, bins: int) -> None:
    x = np.random.default_rng(4).standard_normal((300, 101)).astype(np.float32)
    for span in ((-2.0, 2.0), (-1, 3), (0.25, 0.75)):
        counts, edges = histogram(place(kind, x), bins, range=span)
        np.testing.assert_allclose(edges.numpy(), np.histogram(x, bins, span)[1], rtol=1e-5, atol=1e-6)
        check_counts(x, counts.numpy(), edges.numpy())
    counts, edges = histogram(place(kind, x), bins)
    assert edges.numpy()[[0, -1]].tolist() == [x.min(), x.max()]
    assert counts.numpy().sum() == x.size
    check_counts(x, counts.numpy(), edges.numpy())


def check_counts(x: Array, counts: Array, edges: Array) -> None:
    """Exactly what lies between these very edges."""
    np.testing.assert_array_equal(counts, np.histogram(x, edges)[0])


@everywhere
def test_edges_nan_and_infinities(kind: str) -> None:
    x = np.array([NAN, -INF, INF, 0, 1, 2, 2.5, 3, 4, 5, 5.5, -1], np.float32)
    edges = [0.0, 1, 3, 3, 5]
    counts, same = histogram(place(kind, x), edges)
    assert same.tolist() == edges
    assert counts.tolist() == np.histogram(x[1:], edges)[0].tolist() == [1, 3, 0, 3]
    counts, same = histogram(place(kind, x), place(kind, np.array(edges, np.float32)))
    assert counts.tolist() == [1, 3, 0, 3]
    assert histogram(place(kind, x), 5, range=(0, 5))[0].tolist() == [1, 1, 2, 1, 2]
    counts, same = histogram(place(kind, np.array([NAN, 1, 3, 3, NAN], np.float32)), 2)
    assert (counts.tolist(), same.tolist()) == ([1, 2], [1.0, 2.0, 3.0])


@everywhere
def test_weights_densities_and_other_types(kind: str) -> None:
    generator = np.random.default_rng(5)
    x, weights = generator.integers(0, 50, (40, 50)), generator.random((40, 50)).astype(np.float32)
    for dtype in (np.int8, np.uint16, np.float16, np.int32):
        values = x.astype(dtype)
        assert histogram(place(kind, values), 7)[0].tolist() == np.histogram(x, 7)[0].tolist()
    sums = histogram(place(kind, x.astype(np.int32)), 7, weights=place(kind, weights))[0]
    np.testing.assert_allclose(sums.numpy(), np.histogram(x, 7, weights=weights)[0], rtol=1e-5)
    dense, edges = histogram(place(kind, x.astype(np.int32)), [0, 10, 15, 50], density=True)
    np.testing.assert_allclose(dense.numpy(), np.histogram(x, [0, 10, 15, 50], density=True)[0], rtol=1e-5)
    assert edges.dtype is dtypes.float32


@everywhere
def test_one_value_and_none(kind: str) -> None:
    counts, edges = histogram(place(kind, np.full(9, 3.0, np.float32)), 4)
    assert (counts.tolist(), edges.tolist()) == ([0, 0, 9, 0], [2.5, 2.75, 3.0, 3.25, 3.5])
    counts, edges = histogram(place(kind, np.zeros(0, np.float32)), 2)
    assert (counts.tolist(), edges.tolist()) == ([0, 0], [0.0, 0.5, 1.0])


def test_mistakes_are_named() -> None:
    x = place("cpu", np.array([1, -2], np.int32))
    with pytest.raises(ArgumentError, match="counts integers from 0 on, and x has -2; give a length"):
        bincount(x)
    with pytest.raises(DTypeError, match="bincount is not offered for float32"):
        bincount(x.astype("float32"))
    with pytest.raises(ShapeError, match="one dimension"):
        bincount(x.reshape(2, 1))
    with pytest.raises(ArgumentError, match=r"minlength is 0 or more, not -1"):
        bincount(x, minlength=-1)
    with pytest.raises(ArgumentError, match=r"length must be an integer, not 1.5"):
        bincount(x, length=1.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"weights of shape \(3,\) for elements of shape \(2,\)"):
        bincount(x, place("cpu", np.ones(3, np.float32)), length=3)
    with pytest.raises(ArgumentError, match="numbers below 2,147,483,648 are more than a tensor may have"):
        bincount(place("cpu", np.array([2**31 - 1], np.int32)))
    with pytest.raises(DTypeError, match="weights are numbers, not bool"):
        bincount(x, place("cpu", np.ones(2, bool)), length=3)
    with pytest.raises(ArgumentError, match="number of bins must be 1 or more"):
        histogram(x, 0)
    with pytest.raises(ArgumentError, match="two finite numbers in rising order"):
        histogram(x, 3, range=(1, 0))
    with pytest.raises(ArgumentError, match="edges must be two numbers or more, in rising order"):
        histogram(x, [1, 0])
    with pytest.raises(ShapeError, match="edges have one dimension"):
        histogram(x, x.reshape(1, 2))
    with pytest.raises(ShapeError, match="histogram: weights of shape"):
        histogram(x, 3, weights=place("cpu", np.ones(3, np.float32)))


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("density", [False, True])
def test_counts_in_boxes_are_numpys(device: str, density: bool) -> None:
    generator = np.random.default_rng(5)
    points, weights = generator.integers(-3, 4, (40, 2)) / 2, generator.integers(1, 4, 40)
    for bins, span in (
        (3, None),
        ([2, 4], [(-1.0, 1.0), (-1.5, 1.5)]),
        ([[-1.0, 0.0, 1.5], [0.0, 1.0]], None),
    ):
        for weight in (None, weights):
            wanted, edges = np.histogramdd(points, bins, span, density, weight)
            given = None if weight is None else wg.asarray(weight.astype(np.float32), device=device)
            x = wg.asarray(points.astype(np.float32), device=device)
            found, places = wg.histogramdd(x, bins, span, given, density)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
            for one, other in zip(places, edges, strict=True):
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)


def test_boxes_need_points_and_bins_for_each_axis() -> None:
    with pytest.raises(wg.ShapeError, match="points as rows"):
        wg.histogramdd(wg.zeros(3))
    with pytest.raises(wg.ArgumentError, match="for each of 2 axes, not 1"):
        wg.histogramdd(wg.zeros((3, 2)), [4])
