"""Writing to computed places against NumPy: slices, elements, every axis, many, repeats, mistakes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad import dtypes
from webgrad.errors import AxisError, DTypeError, IndexingError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.array.scatters import (
    index_add,
    index_max,
    index_min,
    index_set,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_set,
)
from webgrad.tensor import Tensor

NAN = np.nan
Array = np.ndarray[Any, Any]
BY_SLICES = {"set": index_set, "add": index_add, "max": index_max, "min": index_min}
BY_ELEMENTS = {"set": scatter_set, "add": scatter_add, "max": scatter_max, "min": scatter_min}


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


CHANGES: dict[str, Any] = {
    "set": lambda old, update: update,
    "add": lambda old, update: old + update,
    "max": np.maximum,
    "min": np.minimum,
}


def change(how: str, old: Any, update: Any) -> Any:
    with np.errstate(over="ignore"):
        return CHANGES[how](old, update)


def slices_changed(how: str, x: Array, index: Array, updates: Array, axis: int) -> Array:
    result = np.moveaxis(x.copy(), axis, 0)
    for at, update in zip(index, np.moveaxis(updates, axis, 0), strict=True):
        result[at] = change(how, result[at], update)
    return np.moveaxis(result, 0, axis)


def elements_changed(how: str, x: Array, index: Array, updates: Array, axis: int) -> Array:
    result = x.copy()
    for at in np.ndindex(*updates.shape):
        place = list(at)
        place[axis] = index[at]
        result[tuple(place)] = change(how, result[tuple(place)], updates[at])
    return result


@pytest.mark.parametrize("how", BY_SLICES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_slices(how: str, axis: int) -> None:
    generator = np.random.default_rng(axis + 9)
    x = generator.integers(-99, 99, (4, 5, 6)).astype(np.int32)
    index = generator.integers(-x.shape[axis], x.shape[axis], 9)
    shape = list(x.shape)
    shape[axis] = 9
    updates = generator.integers(-99, 99, shape).astype(np.int32)
    expected = slices_changed(how, x, index, updates, axis)
    for given in (index, index.tolist(), on_cpu(index), on_cpu(index.astype(np.int8))):
        result = BY_SLICES[how](on_cpu(x), given, on_cpu(updates), axis)
        assert result.dtype is dtypes.int32
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("how", BY_ELEMENTS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements(how: str, axis: int) -> None:
    generator = np.random.default_rng(axis + 9)
    x = generator.integers(-99, 99, (4, 5, 6)).astype(np.int16)
    shape = list(x.shape)
    shape[axis] = 9
    index = generator.integers(-x.shape[axis], x.shape[axis], shape)
    updates = generator.integers(-99, 99, shape).astype(np.int16)
    expected = elements_changed(how, x, index, updates, axis)
    for given in (index, index.tolist(), on_cpu(index)):
        result = BY_ELEMENTS[how](on_cpu(x), given, on_cpu(updates), axis)
        assert result.dtype is dtypes.int16
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda each: each.name)
def test_every_dtype(dtype: dtypes.DType) -> None:
    x = np.array([[1, 0, 1], [0, 1, 0]], dtype.numpy)
    updates = np.array([[1, 1, 0], [0, 0, 1]], dtype.numpy)
    for how in ("set", "max", "min") if dtype.kind == "b" else BY_SLICES:
        result = BY_SLICES[how](on_cpu(x), [1, 1], on_cpu(updates))
        assert result.dtype is dtype
        np.testing.assert_array_equal(
            result.numpy(), slices_changed(how, x, np.array([1, 1]), updates, 0).astype(dtype.numpy)
        )


def whole(how: str, x: Array, index: Array, updates: Array) -> Array:
    """All updates, as NumPy applies them."""
    result = x.copy()
    if how == "set":
        result[index] = updates
    else:
        {"add": np.add, "max": np.maximum, "min": np.minimum}[how].at(result, index, updates)
    return result


@everywhere
@pytest.mark.parametrize("how", BY_SLICES)
def test_many_updates(kind: str, how: str) -> None:
    generator = np.random.default_rng(3)
    for rows, columns, count in [(50, 1, 20_000), (30_000, 1, 20_000), (500, 3, 3_000), (2_000, 8, 3_000)]:
        x, updates = (generator.integers(-99, 99, (size, columns)) for size in (rows, count))
        index = generator.integers(0, rows, count).astype(np.int32)
        for dtype in (np.int32, np.float32):
            base, given = x.astype(dtype), updates.astype(dtype)  # integers: floats are exact too
            result = BY_SLICES[how](place(kind, base), place(kind, index), place(kind, given))
            np.testing.assert_array_equal(result.numpy(), whole(how, base, index, given))


@everywhere
@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda each: each.name)
def test_many_updates_of_every_dtype(kind: str, dtype: dtypes.DType) -> None:
    generator = np.random.default_rng(4)
    index = generator.integers(0, 300, 2_000).astype(np.int32)
    x, updates = (generator.integers(0, 2, (size, 3)).astype(dtype.numpy) for size in (300, 2_000))
    for how in ("set", "max") if dtype.kind == "b" else ("set", "add", "max"):
        result = BY_SLICES[how](place(kind, x), place(kind, index), place(kind, updates))
        exact = x.astype(np.int64), index, updates.astype(np.int64)
        assert result.dtype is dtype
        np.testing.assert_array_equal(result.numpy().astype(np.int64), whole(how, *exact))


@everywhere
def test_all_updates_to_one_row(kind: str) -> None:
    updates = np.full(200_000, 0.1, np.float32)
    index = np.full(200_000, 7, np.int32)
    for rows in (10, 90_000):
        result = index_add(place(kind, np.ones(rows, np.float32)), place(kind, index), place(kind, updates))
        expected = 1 + updates.astype(np.float64).sum()
        assert abs(result.numpy()[7] / expected - 1) < 1e-4
        assert (np.delete(result.numpy(), 7) == 1).all()
        last = index_set(
            place(kind, np.zeros(rows, np.int32)),
            place(kind, index),
            place(kind, np.arange(200_000, dtype=np.int32)),
        )
        assert last.numpy().sum() == 199_999


@pytest.mark.gpu
@pytest.mark.long
def test_three_million_updates() -> None:
    index = np.random.default_rng(7).integers(0, 2_000_000, 3_000_001).astype(np.int32)
    counts = np.bincount(index, minlength=2_000_000)
    base = place("software", np.zeros(2_000_000, np.float32))
    np.testing.assert_array_equal(index_add(base, place("software", index), 1.0).numpy(), counts)
    base = place("software", np.full(2_000_000, -1, np.int32))
    last = index_set(base, place("software", index), place("software", np.arange(3_000_001, dtype=np.int32)))
    expected = np.full(2_000_000, -1)
    expected[index] = np.arange(3_000_001)
    np.testing.assert_array_equal(last.numpy(), expected)


@everywhere
def test_many_sums_are_the_same_in_every_run(kind: str) -> None:
    generator = np.random.default_rng(5)
    index = place(kind, generator.integers(0, 3_000, 9_000).astype(np.int32))
    updates = place(kind, generator.standard_normal(9_000).astype(np.float32))
    base = place(kind, np.zeros(3_000, np.float32))
    first = index_add(base, index, updates).numpy()
    np.testing.assert_array_equal(index_add(base, index, updates).numpy(), first)
    np.testing.assert_allclose(
        first, whole("add", np.zeros(3_000), index.numpy(), updates.numpy()), atol=1e-5
    )


@everywhere
def test_many_single_elements(kind: str) -> None:
    generator = np.random.default_rng(6)
    x = generator.integers(-9, 9, (4, 700)).astype(np.int16)
    index = generator.integers(0, 700, (4, 900))
    updates = generator.integers(-9, 9, (4, 900)).astype(np.int16)
    for how, function in BY_ELEMENTS.items():
        expected = np.stack([whole(how, *each) for each in zip(x, index, updates, strict=True)])
        result = function(place(kind, x), place(kind, index.astype(np.int32)), place(kind, updates))
        np.testing.assert_array_equal(result.numpy(), expected)


def test_updates_broadcast_and_may_be_numbers() -> None:
    x = on_cpu(np.zeros((3, 4), np.float32))
    assert index_add(x, [0, 0], 1).numpy().sum(1).tolist() == [8, 0, 0]
    row = on_cpu([1.0, 2.0, 3.0, 4.0])
    assert index_set(x, [2, 1], row).numpy()[1:].tolist() == [[1, 2, 3, 4]] * 2
    assert scatter_add(x, [[0]], 2.0, axis=0).numpy()[0].tolist() == [2, 2, 2, 2]
    assert scatter(x, [[3], [1], [0]], 1).numpy().tolist() == np.eye(4)[[3, 1, 0]].tolist()
    assert index_set(x, 1, 5.0).numpy()[1].tolist() == [5.0] * 4
    halves = index_add(x, [0], on_cpu(np.ones(4, np.int8)))
    assert halves.dtype is dtypes.float32


def test_the_last_of_several_stays() -> None:
    assert index_set(on_cpu(np.zeros(2, np.int32)), [0, 1, 0, 0], on_cpu([1, 2, 3, 4])).tolist() == [4, 2]


def test_places_in_tensors_are_moved_inside() -> None:
    x = on_cpu(np.zeros(4, np.int32))
    for index in (
        np.array([9, -9, -1], np.int32),
        np.array([2**40 + 1, 2 - 2**40, -1], np.int64),
    ):
        assert index_add(x, on_cpu(index), 1).tolist() == [1, 0, 0, 2]
        assert scatter_add(x, on_cpu(index), 1).tolist() == [1, 0, 0, 2]
    for large in (np.array([2**32 - 1, 0], np.uint32), np.array([2**63 + 1, 0], np.uint64)):
        assert index_add(x, on_cpu(large), 1).tolist() == [1, 0, 0, 1]
    rows = on_cpu(np.zeros((2, 3), np.int32))
    outside = on_cpu(np.array([[7], [-7]], np.int32))
    assert scatter_set(rows, outside, 1).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_nan_stays_in_maxima() -> None:
    x = on_cpu([1.0, NAN, 2.0])
    np.testing.assert_array_equal(index_max(x, [0, 1, 2], on_cpu([NAN, 5.0, -np.inf])).numpy(), [NAN, NAN, 2])
    np.testing.assert_array_equal(index_min(x, [0, 1, 2], on_cpu([NAN, 5.0, np.inf])).numpy(), [NAN, NAN, 2])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bit_floats_are_added_in_float32(dtype: Any) -> None:
    x = on_cpu(np.zeros((1, 2), dtype))
    updates = np.full((5000, 2), 0.25, dtype)
    result = index_add(x, np.zeros(5000, np.int32), on_cpu(updates))
    assert result.dtype.numpy == dtype
    assert result.numpy().astype(np.float32).tolist() == [[1248.0 if dtype is not np.float16 else 1250.0] * 2]


def test_empty_ones() -> None:
    x = on_cpu(np.ones((2, 3), np.float32))
    assert index_add(x, [], 1.0).tolist() == x.tolist()
    assert scatter_add(x, np.zeros((2, 0), np.int32), 1.0).tolist() == x.tolist()
    nothing = on_cpu(np.ones((0, 3), np.float32))
    assert index_add(nothing, on_cpu(np.zeros(2, np.int32)), 1.0).shape == (0, 3)
    assert index_set(on_cpu(np.ones((3, 0), np.float32)), [1], 5.0).shape == (3, 0)


def test_the_tensor_itself_does_not_change() -> None:
    x = on_cpu(np.zeros(3, np.float32))
    index_add(x, [0], 1.0).numpy()
    assert x.tolist() == [0, 0, 0]


def test_mistakes_are_named() -> None:
    x = on_cpu(np.zeros((2, 3), np.int32))
    with pytest.raises(IndexingError, match="index_add: index 2 is out of range for axis 0 with size 2"):
        index_add(x, [0, 2], 1)
    with pytest.raises(IndexingError, match="scatter_set: index -4 is out of range for axis 1 with size 3"):
        scatter_set(x, [[-4]], 1)
    with pytest.raises(IndexingError, match="indices must be integers, not float64"):
        index_set(x, [0.5], 1)
    with pytest.raises(IndexingError, match="different lengths"):
        scatter(x, [[0], [1, 2]], 1)
    with pytest.raises(DTypeError, match="indices must be integers, not bool; for a mask use where"):
        index_set(x, on_cpu([True, False]), 1)
    with pytest.raises(ShapeError, match=r"the index must have one dimension, not the shape \(1, 1\)"):
        index_set(x, [[0]], 1)
    with pytest.raises(ShapeError, match=r"x \(2, 3\) and the index \(1,\) must have the same number of dim"):
        scatter_add(x, [0], 1)
    with pytest.raises(ShapeError, match="scatter_add"):
        scatter_add(x, [[0], [0], [0]], 1)
    with pytest.raises(
        ShapeError, match=r"index_add: updates of shape \(1, 1, 3\) do not broadcast to \(1, 3\)"
    ):
        index_add(x, [0], on_cpu(np.ones((1, 1, 3), np.int32)))
    with pytest.raises(ShapeError, match="index_add"):
        index_add(x, [0], on_cpu(np.ones(4, np.int32)))
    with pytest.raises(DTypeError, match="int32 does not hold updates of float32"):
        index_add(x, [0], on_cpu([1.0]))
    with pytest.raises(DTypeError, match=r"index_set: int32 does not hold 1.5"):
        index_set(x, [0], 1.5)
    with pytest.raises(DTypeError, match="index_add is not offered for bool"):
        index_add(on_cpu([True]), [0], True)
    with pytest.raises(AxisError, match=r"index_max.*4"):
        index_max(x, [0], 1, 4)
    with pytest.raises(DTypeError, match="index_max takes a webgrad tensor"):
        index_max([1], [0], 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_products_at_indices_are_numpys(device: str) -> None:
    x = np.asarray([2.0, -1.0, 3.0, 0.5], np.float32)
    index, factors = np.asarray([2, 0, 2, 2, 3]), np.asarray([2.0, 4.0, 0.0, 5.0, -1.0], np.float32)
    wanted = x.copy()
    np.multiply.at(wanted, index, factors)
    given: list[Any] = [wg.asarray(each, device=device).requires_grad_() for each in (x, factors)]
    found = wg.index_multiply(given[0], wg.asarray(index.astype(np.int32), device=device), given[1])
    np.testing.assert_array_equal(found.numpy(), wanted)
    found.sum().backward()
    assert given[0].grad.tolist() == [4.0, 1.0, 0.0, -1.0]
    assert given[1].grad.tolist() == [0.0, 2.0, 30.0, 0.0, 0.5]
    rows = wg.asarray([[1, 2], [3, 4]], device=device)
    changed = wg.scatter_multiply(rows, wg.asarray([[0, 0], [1, 1]], device=device), rows, 1)
    assert changed.tolist() == [[2, 2], [3, 48]]
    with pytest.raises(wg.DTypeError, match="index_multiply is not offered for bool"):
        wg.index_multiply(wg.ones(2, wg.bool, device=device), [0], True)
