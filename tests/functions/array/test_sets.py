"""Distinct elements and membership against NumPy, on every kind of device; NaN, signed zeros, no elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import Array, everywhere, place
from webgrad.errors import CaptureError, DTypeError
from webgrad.functions.array import masks

SPECIAL = np.array([3.0, -0.0, np.nan, 0.0, 3.0, np.nan, -np.inf, 1e-30, 3.0], np.float32)


def expected(values: Array) -> tuple[Array, Array, Array, Array]:
    return np.unique(values, True, True, True, equal_nan=False)


def values_of(dtype: Any, shape: tuple[int, ...]) -> Array:
    generator = np.random.default_rng(7)
    whole = generator.integers(0, 5, shape)
    if np.dtype(dtype).kind == "c":
        return (whole + 1j * generator.integers(0, 3, shape)).astype(dtype)
    return whole.astype(dtype)


@everywhere
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32", "complex64"])
def test_unique(kind: str, dtype: str) -> None:
    array = values_of(dtype, (4, 9))
    found = wg.unique_all(place(kind, array))
    for each, wanted in zip(found, expected(array), strict=True):
        np.testing.assert_array_equal(each.numpy().reshape(wanted.shape), wanted)
    assert found.inverse_indices.shape == array.shape
    assert [each.dtype.name for each in found] == [dtype, "int32", "int32", "int32"]


@everywhere
def test_nan_is_distinct_and_zeros_are_one(kind: str) -> None:
    found = wg.unique_all(place(kind, SPECIAL))
    for each, wanted in zip(found, expected(SPECIAL), strict=True):
        np.testing.assert_array_equal(each.numpy(), wanted)
    assert found.counts.tolist() == [1, 2, 1, 3, 1, 1]


@everywhere
def test_complex_nan_is_distinct(kind: str) -> None:
    nan = complex(1, np.nan)
    found = wg.unique_counts(place(kind, np.array([nan, 2j, nan, 2j, complex(-0.0, 2.0)], np.complex64)))
    assert found.counts.tolist() == [3, 1, 1]


@everywhere
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0)])
def test_small_ones(kind: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.float32)
    found = wg.unique_all(place(kind, array))
    for each, wanted in zip(found, expected(array), strict=True):
        np.testing.assert_array_equal(each.numpy().ravel(), wanted.ravel())
    assert found.inverse_indices.shape == shape


@pytest.mark.parametrize(
    "array", [SPECIAL, -SPECIAL, *(values_of(each, (400,)) for each in ("bool", "int8", "float16"))]
)
def test_the_parts_agree(array: Any) -> None:
    x = wg.asarray(array, device="cpu")
    whole = wg.unique_all(x)
    # bit by bit: the first of -0.0 and 0.0 is given by both
    assert wg.unique_values(x).numpy().tobytes() == whole.values.numpy().tobytes()
    assert wg.unique_counts(x).counts.tolist() == whole.counts.tolist()
    assert wg.unique_inverse(x).inverse_indices.tolist() == whole.inverse_indices.tolist()


@pytest.mark.gpu
def test_only_the_count_is_read() -> None:
    x = wg.asarray(np.arange(2 * masks.MAX_READ_FLAGS) % 1000, wg.int32, device="webgpu:0")
    wg.eval(x)
    device = wg.open_device("webgpu:0")
    before = device.stats()["bytes_downloaded"]
    values = wg.unique_values(x)
    assert device.stats()["bytes_downloaded"] - before <= 16
    np.testing.assert_array_equal(values.numpy(), np.arange(1000))


def test_it_cannot_be_captured() -> None:
    with pytest.raises(CaptureError):
        wg.jit(wg.unique_values)(wg.asarray([1.0], device="cpu"))


@everywhere
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_isin(kind: str, count: int) -> None:
    generator = np.random.default_rng(count)
    array, among = generator.integers(-60, 60, (5, 8), np.int16), generator.integers(-60, 60, count, np.int32)
    found = wg.isin(place(kind, array), place(kind, among))
    np.testing.assert_array_equal(found.numpy(), np.isin(array, among))
    other = wg.isin(place(kind, array), place(kind, among), assume_unique=False, invert=True)
    np.testing.assert_array_equal(other.numpy(), np.isin(array, among, invert=True))


@everywhere
def test_isin_goes_by_equality(kind: str) -> None:
    nan = float("nan")
    among = place(kind, np.array([nan, 0.0, *range(2, 12)], np.float32))
    assert wg.isin(place(kind, [nan, -0.0, 3.0, 1.0, 99.0]), among).tolist() == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert wg.isin(place(kind, [1j, 2.0]), place(kind, [2.0, 1j])).tolist() == [True, True]


def test_isin_takes_a_number() -> None:
    x = wg.asarray([[1, 2], [3, 1]], device="cpu")
    assert wg.isin(x, 1).tolist() == [[True, False], [False, True]]
    single = wg.isin(3, x, invert=True)
    assert single.shape == ()
    assert single.item() is False
    with pytest.raises(DTypeError):
        wg.isin(1, 2)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_distinct_slices_are_numpys(axis: int | None) -> None:
    values = np.random.default_rng(3).integers(0, 2, (6, 2, 3)).astype(np.int32)
    ours = wg.unique(wg.asarray(values), True, True, True, axis)
    theirs: Any = np.unique(values, True, True, True, axis)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.numpy().reshape(other.shape), other)
    np.testing.assert_array_equal(wg.unique(wg.asarray(values), axis=axis).numpy(), theirs[0])


def test_of_no_slices_none_is_distinct() -> None:
    assert tuple(wg.unique(wg.zeros((0, 3)), axis=0).shape) == (0, 3)
    assert tuple(wg.unique(wg.zeros((2, 0)), axis=0).shape) == (1, 0)


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_equal_neighbours_are_one(device: str) -> None:
    x = wg.asarray([[2, 2, 1], [1, 2, 2]], device=device)
    values, inverse, counts = wg.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [2, 1, 2]
    assert inverse.tolist() == [[0, 0, 1], [1, 2, 2]]
    assert counts.tolist() == [2, 2, 2]
    rows = wg.asarray([[1, 5], [1, 5], [0, 5], [1, 5]], device=device)
    values, counts = wg.unique_consecutive(rows, return_counts=True, axis=0)
    assert (values.tolist(), counts.tolist()) == ([[1, 5], [0, 5], [1, 5]], [2, 1, 1])
    assert wg.unique_consecutive(rows, axis=1).tolist() == rows.tolist()
    assert wg.unique_consecutive(wg.asarray([], device=device)).tolist() == []
