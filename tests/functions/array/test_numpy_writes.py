"""NumPy's functions that write, those that only rename, gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad.functions.array import numpy_names

INTS = np.array([[5, 0, -7, 2], [3, 3, 0, 1], [-2, 8, 6, 0]], np.int32)
WRITES: list[Callable[[Any, Any], None]] = [
    lambda xp, x: xp.put(x, [0, 5, -1], [9, 8]),
    lambda xp, x: xp.put(x, 3, 7),
    lambda xp, x: xp.put_along_axis(x, (x * 0 + 1)[:, :2], 9, axis=1),
    lambda xp, x: xp.put_along_axis(x, (x * 0)[:1] + 2, x[:1] * 10, axis=0),
    lambda xp, x: xp.putmask(x, x > 2, -x),
    lambda xp, x: xp.putmask(x, x > 2, [10, 20]),
    lambda xp, x: xp.copyto(x, x[0]),
    lambda xp, x: xp.copyto(x, 4, where=x < 1),
    lambda xp, x: xp.fill_diagonal(x, 9),
]


@everywhere
@pytest.mark.parametrize("row", range(len(WRITES)))
def test_writes_are_numpys(row: int, kind: str) -> None:
    expected, x = INTS.copy(), place(kind, INTS)
    below = x[1:]
    WRITES[row](np, expected)
    WRITES[row](wg, x)
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(below.numpy(), expected[1:])  # a view is written to as well


def test_names_are_numpys() -> None:
    names = wg._NAMES["functions.array.numpy_names"].split()
    assert [name for name in names if not hasattr(np, name)] == []
    x = wg.asarray([0.25, 0.5], device="cpu")
    for name in ("absolute", "arcsin", "arctan", "degrees", "radians", "fix", "rint", "ravel", "copy"):
        np.testing.assert_allclose(getattr(wg, name)(x).numpy(), getattr(np, name)(x.numpy()), rtol=1e-6)
    assert wg.concatenate is wg.concat
    assert numpy_names.arctan2 is wg.atan2
    assert wg.array([1, 2], device="cpu").tolist() == [1, 2]
    assert wg.array_equiv(x, x[None])
    assert not wg.array_equiv(x, wg.ones(3, device="cpu"))
    assert wg.partition(wg.asarray([3, 1, 2], device="cpu"), 1).tolist() == [1, 2, 3]
    assert wg.argpartition(wg.asarray([[3], [1]], device="cpu"), 1, axis=None).tolist() == [1, 0]
    y = wg.copy(x)
    y[0] = 9.0
    assert x.tolist() == [0.25, 0.5]


def test_a_polynomial_is_fitted() -> None:
    x = np.linspace(-1, 2, 20)
    y = np.stack([2 * x**2 - x + 3, np.sin(x)], axis=1)
    weights = np.linspace(1, 3, 20)
    tensors = [wg.asarray(each, dtype=wg.float32, device="cpu") for each in (x, y, weights)]
    for columns in (slice(None), 0):
        found = wg.polyfit(tensors[0], tensors[1][:, columns], 2).numpy()
        np.testing.assert_allclose(found, np.polyfit(x, y[:, columns], 2), rtol=1e-3, atol=1e-4)
        found = wg.polyfit(tensors[0], tensors[1][:, columns], 2, w=tensors[2]).numpy()
        np.testing.assert_allclose(found, np.polyfit(x, y[:, columns], 2, w=weights), rtol=1e-3, atol=1e-4)


GRADIENTS: list[Callable[[wg.Tensor], wg.Tensor]] = [
    lambda x: wg.nanmean(x, axis=0),
    lambda x: wg.nanstd(x),
    lambda x: wg.nanmax(x, axis=1),
    lambda x: wg.average(x, axis=1, weights=wg.asarray([1.0, 2.0, 3.0], device="cpu")),
    lambda x: wg.percentile(x, 40, axis=1),
    lambda x: wg.insert(x, 1, 7.0, axis=1),
    lambda x: wg.delete(x, 1, axis=0),
    lambda x: wg.array_split(x, 2, axis=1)[0],
    lambda x: wg.trace(x),
    lambda x: wg.select([x > 2], [x * x], 0.0),
    lambda x: wg.convolve(x[0], x[1]),
    lambda x: wg.unwrap(x * 2, axis=1),
    lambda x: wg.polyval(x[0], x[1]),
    lambda x: wg.interp(x[0], wg.asarray([0.0, 1.6, 9.0], device="cpu"), x[1]),
    lambda x: wg.cbrt(x),
    lambda x: wg.apply_along_axis(lambda line: line.sum() * line, 1, x),
]


@pytest.mark.parametrize("row", range(len(GRADIENTS)))
def test_gradients_are_those_of_differences(row: int) -> None:
    start = np.array([[1.1, 2.7, 0.4], [3.2, -1.3, 2.2]])

    def value(x: wg.Tensor) -> wg.Tensor:
        found = GRADIENTS[row](x)
        scale = wg.arange(found.size, dtype=found.dtype, device="cpu").reshape(found.shape) + 1
        return (found * scale).sum()

    def at(array: Any) -> float:
        return float(value(wg.asarray(array, device="cpu")))

    found = wg.grad(value)(wg.asarray(start, device="cpu")).numpy()
    step = 1e-6
    expected = np.zeros_like(start)
    for place_of in np.ndindex(start.shape):
        moved = np.zeros_like(start)
        moved[place_of] = step
        expected[place_of] = (at(start + moved) - at(start - moved)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: wg.percentile(x, 101), wg.ArgumentError, "percentile: q must be from 0 to 100"),
        (lambda x: wg.average(x, weights=x[0]), wg.ShapeError, "average: weights of shape"),
        (
            lambda x: wg.insert(x, 9, 1, axis=1),
            wg.IndexingError,
            "insert: there is no index 9 in an axis of 4",
        ),
        (lambda x: wg.delete(x, [True], axis=1), wg.IndexingError, "a mask of 1 elements for an axis of 4"),
        (lambda x: wg.delete(x, 4, axis=1), wg.IndexingError, "delete: there is no index 4"),
        (lambda x: wg.array_split(x, 0), wg.ArgumentError, "array_split into 0 parts"),
        (lambda x: wg.dsplit(x, 2), wg.ShapeError, "dsplit needs 3 dimensions"),
        (lambda x: wg.trim_zeros(x), wg.ShapeError, "trim_zeros takes a tensor of one dimension"),
        (lambda x: wg.trim_zeros(x[0], "x"), wg.ArgumentError, "trim is made of 'f' and 'b'"),
        (lambda x: wg.select([], []), wg.ArgumentError, "select: 0 conditions for 0 choices"),
        (lambda x: wg.select([x], [x]), wg.DTypeError, "conditions are bools, not int32"),
        (lambda x: wg.choose(x, [x], mode="raise"), wg.ArgumentError, "choose: mode is 'clip' or 'wrap'"),
        (lambda x: wg.choose(x * 1.5, [x]), wg.DTypeError, "choose"),
        (lambda x: wg.convolve(x[0], x), wg.ShapeError, "convolve takes tensors of one dimension"),
        (lambda x: wg.convolve(x[0], x[0], "all"), wg.ArgumentError, "convolve: mode is one of"),
        (lambda x: wg.convolve(x[0], x[0, :0]), wg.ShapeError, "neither may be empty"),
        (lambda x: wg.interp(x, x[0], x[0, :2]), wg.ShapeError, "as many of both"),
        (lambda x: wg.geomspace(-1, 1), wg.ArgumentError, "both are above zero, or both below"),
        (lambda x: wg.fill_diagonal(x[0], 1), wg.ShapeError, "fill_diagonal takes a matrix"),
        (lambda x: wg.packbits(x, bitorder="middle"), wg.ArgumentError, "in the order 'big' or 'little'"),
        (lambda x: wg.polyfit(x[0], x[0], -1), wg.ArgumentError, "a degree is 0 or more"),
        (lambda x: wg.polyfit(x[0], x, 1), wg.ShapeError, "as many of both"),
        (lambda x: wg.ix_(x), wg.ShapeError, "ix_ takes tensors of one dimension"),
        (lambda x: wg.ravel_multi_index((x,), (2, 3)), wg.ShapeError, "1 indices for 2 axes"),
        (lambda x: wg.apply_along_axis(wg.sum, 0, x[:, :0]), wg.ShapeError, "there are no lines"),
    ],
)
def test_mistakes_are_named(call: Callable[..., Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(wg.asarray(INTS, device="cpu"))


def test_what_is_only_nan_has_no_place() -> None:
    x = wg.asarray([[np.nan, np.nan], [-np.inf, np.nan]], device="cpu")
    assert wg.nanargmax(x, axis=1).tolist() == wg.nanargmin(x, axis=1).tolist() == [-1, 0]
