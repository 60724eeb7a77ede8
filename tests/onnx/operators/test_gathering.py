"""Reading and writing at computed places: indices from the end, ties, duplicates, known and computed ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats, loaded, model, node
from tests.onnx.operators.single import run_one

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
KNOWN = pytest.mark.parametrize("known", [(), (1,)])


def ints(*values: Any) -> Any:
    return np.array(values, np.int64)


@KNOWN
@pytest.mark.parametrize(
    "indices", [np.array(1), np.array(-1, np.int32), ints(0, -1), ints([0, 2], [1, -3]), ints()]
)
def test_gather(indices: Any, known: Any) -> None:
    found = run_one("Gather", X, indices, axis=1, known=known)
    np.testing.assert_array_equal(found, X.take(indices, 1))


@pytest.mark.parametrize(
    ("kind", "indices"),
    [
        ("Gather", np.array(3)),
        ("Gather", ints(0, -4)),
        ("GatherElements", ints([[3]])),
        ("GatherND", ints([0, 3])),
        ("GatherND", ints([0, -4])),
    ],
)
def test_known_indices_that_are_not_there(kind: str, indices: Any) -> None:
    settings = {} if kind == "GatherND" else {"axis": 1}
    with pytest.raises(wg.IndexingError, match=r"3|-4"):
        run_one(kind, X, indices, known=(1,), **settings)


def test_computed_indices_that_are_not_there_are_clamped() -> None:
    far = 1 << 40
    found = run_one("GatherND", X, ints([1, far, 0], [-far, 2, 3]))
    np.testing.assert_array_equal(found, [X[1, 2, 0], X[0, 2, 3]])
    written = run_one("ScatterElements", floats(1, 2, 3), ints(far), floats(9))
    assert written.tolist() == [1, 2, 9]


def test_a_known_index_is_a_slice_with_a_gradient(tmp_path: Any) -> None:
    nodes = [node("Gather", "x at", "y", axis=1), node("ReduceSum", "y", "z", keepdims=0)]
    m = loaded(tmp_path, model(nodes, {"x": [2, 3, 4]}, {"z": None}, {"at": np.array(-1)}))
    x = wg.asarray(X).requires_grad_()
    m(x)["z"].backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy()[:, :, 0], [[0, 0, 1]] * 2)


@KNOWN
def test_gather_elements(known: Any) -> None:
    indices = ints([0, -1], [1, 2])
    found = run_one("GatherElements", X[0], indices, axis=0, known=known)
    np.testing.assert_array_equal(found, [[X[0, 0, 0], X[0, 2, 1]], [X[0, 1, 0], X[0, 2, 1]]])


@KNOWN
@pytest.mark.parametrize(
    ("indices", "batch", "expected"),
    [
        (ints([0, 1], [1, -1]), 0, X[[0, 1], [1, -1]]),
        (ints([1], [-2]), 0, X[[1, 0]]),
        (ints(1, 2, 3), 0, X[1, 2, 3]),
        (ints([[0, 1]], [[2, 3]]), 1, X[[[0], [1]], [[0], [2]], [[1], [3]]]),
        (ints([[1], [0], [3]], [[0], [-1], [2]]), 2, [[1, 4, 11], [12, 19, 22]]),
    ],
)
def test_gather_slices(indices: Any, batch: int, expected: Any, known: Any) -> None:
    found = run_one("GatherND", X, indices, batch_dims=batch, known=known)
    np.testing.assert_array_equal(found, expected)


@KNOWN
@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("add", [16, 9, 12]), ("mul", [120, 18, 27]), ("max", [8, 6, 9]), ("min", [3, 3, 3])],
)
def test_scatter_elements_with_an_index_twice(reduction: str, expected: list[float], known: Any) -> None:
    given = floats(3, 3, 3), ints(0, 1, -1, 0), floats(5, 6, 9, 8)
    found = run_one("ScatterElements", *given, opset=18, reduction=reduction, known=known)
    assert found.tolist() == expected


def test_scatter_along_an_axis_reads_a_smaller_index() -> None:
    found = run_one("ScatterElements", X[0], ints([1, 2]), floats([-1, -2]), axis=0)
    expected = X[0].copy()
    expected[1, 0], expected[2, 1] = -1, -2
    np.testing.assert_array_equal(found, expected)


@KNOWN
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_slices(reduction: str, known: Any) -> None:
    x, rows = np.full((3, 2), 3, np.int32), np.array([[5, 1], [2, 7]], np.int32)
    rule: Any = {
        "none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    }[reduction]  # fmt: skip
    expected = x.copy()
    expected[0], expected[-1] = rule(x[0], rows[0]), rule(x[-1], rows[1])
    found = run_one("ScatterND", x, ints([0], [-1]), rows, opset=18, reduction=reduction, known=known)
    np.testing.assert_array_equal(found, expected)


def test_scatter_of_nothing_and_of_texts() -> None:
    empty = run_one("ScatterND", X, np.zeros((0, 1), np.int64), np.zeros((0, 3, 4), np.float32))
    np.testing.assert_array_equal(empty, X)
    texts = np.array(["a", "b", "c"], object), ints(-1), np.array(["z"], object)
    assert run_one("ScatterElements", *texts).tolist() == ["a", "b", "z"]


@pytest.mark.parametrize(("mode", "place"), [("linear", 1), ("circular", 3)])
def test_a_cache_is_written_from_a_start_on(mode: str, place: int) -> None:
    past, new = np.zeros((2, 1, 4, 1), np.float32), floats(1, 2, 3, 4).reshape(2, 1, 2, 1)
    found = run_one("TensorScatter", past, new, ints(0, place), opset=24, mode=mode)
    expected = {1: [0, 3, 4, 0], 3: [4, 0, 0, 3]}[place]
    assert found.reshape(2, 4).tolist() == [[1, 2, 0, 0], expected]
    without = run_one("TensorScatter", past, new, opset=24)
    assert without.reshape(2, 4).tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]


@pytest.mark.parametrize("axis", [-1, 0, 1, -3])
def test_one_hot(axis: int) -> None:
    indices = ints([0, -1, 3], [7, 2, -5])
    found = run_one("OneHot", indices, np.array(4), floats(2, 5), axis=axis)
    wrapped = np.where(indices < 0, indices + 4, indices)
    expected = np.where(wrapped[..., None] == np.arange(4), 5, 2)
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, axis))


@KNOWN
def test_compress(known: Any) -> None:
    condition = np.array([False, True])
    np.testing.assert_array_equal(run_one("Compress", X, condition, axis=2, known=known), X[:, :, 1:2])
    np.testing.assert_array_equal(run_one("Compress", X, condition, known=known), [1])


@pytest.mark.parametrize("lengths", [ints(4, 2, 1), ints(0, 1, 3)])
def test_sequences_are_reversed_up_to_their_lengths(lengths: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = x.copy()
    for at, length in enumerate(lengths):
        expected[:length, at] = x[:length, at][::-1]
    np.testing.assert_array_equal(run_one("ReverseSequence", x, lengths), expected)
    turned = run_one("ReverseSequence", x.T, lengths, batch_axis=0, time_axis=1)
    np.testing.assert_array_equal(turned, expected.T)


@pytest.mark.parametrize(("dtype", "index"), [("uint8", 5), ("int8", -1), ("float16", 2048.0)])
def test_one_hot_of_narrow_indices_is_deeper_than_they_count(dtype: str, index: float) -> None:
    values = np.array([0, 1], np.float32)
    hot = run_one("OneHot", np.array([index], dtype), np.array(2060), values, known=[1])
    assert np.flatnonzero(hot).tolist() == [index % 2060]
