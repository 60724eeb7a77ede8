"""Orders: ties, both ends, what is known on the host alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats, loaded, model, node
from tests.onnx.operators.single import run, run_one

X = np.array([[3, 1, 3, 2], [5, 5, 0, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize(
    ("largest", "values", "places"),
    [
        (1, [[3, 3, 2], [5, 5, 0]], [[0, 2, 3], [0, 1, 2]]),
        (0, [[1, 2, 3], [0, 0, 5]], [[1, 3, 0], [2, 3, 0]]),
    ],
)
def test_of_equal_ones_the_first_comes_first(dtype: Any, largest: int, values: Any, places: Any) -> None:
    found = run("TopK", X.astype(dtype), np.array([3]), outputs=2, largest=largest)
    assert [each.dtype for each in found] == [dtype, np.int64]
    assert [each.tolist() for each in found] == [values, places]


def test_top_of_an_axis_and_by_attribute() -> None:
    values, places = run("TopK", X.astype(np.float32), np.array([1]), outputs=2, axis=0)
    assert (values.tolist(), places.tolist()) == ([[5, 5, 3, 2]], [[1, 1, 0, 0]])
    values, places = run("TopK", X.astype(np.float32), outputs=2, opset=9, k=2)
    assert (values.tolist(), places.tolist()) == ([[3, 3], [5, 5]], [[0, 2], [0, 1]])


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (floats([1, 0], [0, 3]), [[0, 1], [0, 1]]),
        (np.array([True, False, True]), [[0, 2]]),
        (np.array(3.0, np.float32), [[0]]),
        (np.zeros((0, 2), np.float32), [[], []]),
    ],
)
def test_places_of_what_is_not_zero(x: Any, expected: Any) -> None:
    found = run_one("NonZero", x)
    assert found.dtype == np.int64
    assert found.tolist() == expected


def test_what_is_computed_is_waited_for_and_what_is_known_is_not(tmp_path: Any) -> None:
    nodes = [node("Relu", "x", "r"), node("NonZero", "r", "y", called="places")]
    m = loaded(tmp_path, model(nodes, {"x": [3]}, {"y": None}))
    assert m(floats(1, -1, 2))["y"].tolist() == [[0, 2]]
    assert m(floats(-1, 7, -2))["y"].tolist() == [[1]]
    assert m.waits == ("places",)
    known = loaded(
        tmp_path,
        model(
            [node("NonZero", "w", "p"), node("Add", "x p", "y")],
            {"x": ("int64", [1, 2])},
            {"y": None},
            {"w": floats(0, 1, 1)},
        ),
    )
    assert known(np.array([[10, 10]]))["y"].tolist() == [[11, 12]]
    assert known.waits == ()


@pytest.mark.parametrize(
    ("is_sorted", "expected"),
    [
        (1, [[1, 2, 9], [1, 0, 4], [1, 0, 0, 1, 2], [2, 2, 1]]),
        (0, [[2, 1, 9], [0, 1, 4], [0, 1, 1, 0, 2], [2, 2, 1]]),
    ],
)
def test_distinct_elements(is_sorted: int, expected: Any) -> None:
    found = run("Unique", np.array([2, 1, 1, 2, 9]), outputs=4, sorted=is_sorted)
    assert [each.tolist() for each in found] == expected


@pytest.mark.parametrize("is_sorted", [0, 1])
def test_distinct_slices(is_sorted: int) -> None:
    x = floats([2, 1], [0, 9], [2, 1])
    found, first, which, counts = run("Unique", x, outputs=4, axis=0, sorted=is_sorted)
    np.testing.assert_array_equal(found[which], x)
    np.testing.assert_array_equal(x[first], found)
    assert found.tolist() == ([[0, 9], [2, 1]] if is_sorted else [[2, 1], [0, 9]])
    assert counts.tolist() == ([1, 2] if is_sorted else [2, 1])
