"""Shapes, movements and padding, against NumPy or written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats, loaded, model, node
from tests.onnx.operators.single import run, run_one

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
EVERY = (1, 2, 3, 4)  # places of inputs that are known


def ints(*values: Any) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, [2, 3, 4]), ({"start": 1}, [3, 4]), ({"end": -1}, [2, 3]), ({"start": -9, "end": 9}, [2, 3, 4])],
)
def test_shape(settings: dict[str, int], expected: list[int]) -> None:
    assert run_one("Shape", X, **settings).tolist() == expected
    assert run_one("Size", X).tolist() == 24


def test_shape_arithmetic_runs_on_the_host(tmp_path: Any) -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s first", "b", axis=0),
        node("Concat", "b rest", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    weights = {"first": ints(0), "rest": ints(-1)}
    m = loaded(tmp_path, model(nodes, {"x": ["n", 3, 4]}, {"y": None}, weights))
    assert m(X)["y"].shape == (2, 12)
    assert m(X[:1])["y"].shape == (1, 12)
    assert m.waits == ()


@pytest.mark.parametrize(
    ("x", "shape", "settings", "expected"),
    [
        (X, ints(0, -1), {}, (2, 12)),
        (X, ints(4, -1), {}, (4, 6)),
        (X, ints(2, 0, 4), {}, (2, 3, 4)),
        (np.zeros((0, 3), np.float32), ints(0, -1), {}, (0, 3)),
        (np.zeros((0, 3), np.float32), ints(3, 0), {"allowzero": 1}, (3, 0)),
        (floats(5), ints(), {}, ()),
    ],
)
def test_reshape(x: Any, shape: Any, settings: dict[str, int], expected: tuple[int, ...]) -> None:
    found = run_one("Reshape", x, shape, **settings)
    assert found.shape == expected
    assert found.reshape(-1).tolist() == x.reshape(-1).tolist()


def test_reshape_that_leaves_a_size_open() -> None:
    with pytest.raises(wg.ShapeError, match="leaves nothing to find -1 from"):
        run_one("Reshape", np.zeros((0, 3), np.float32), ints(0, -1), allowzero=1)


@pytest.mark.parametrize(("axis", "expected"), [(0, (1, 24)), (1, (2, 12)), (3, (24, 1)), (-1, (6, 4))])
def test_flatten(axis: int, expected: tuple[int, int]) -> None:
    assert run_one("Flatten", X, axis=axis).shape == expected


def test_axes_of_size_one_go_and_come() -> None:
    x = np.ones((1, 3, 1), np.float32)
    assert run_one("Squeeze", x).shape == (3,)
    assert run_one("Squeeze", x, ints(-1)).shape == (1, 3)
    assert run_one("Squeeze", x, opset=11, axes=[0]).shape == (3, 1)
    assert run_one("Unsqueeze", x, ints(0, -1)).shape == (1, 1, 3, 1, 1)
    assert run_one("Unsqueeze", floats(2).reshape(()), ints(0)).shape == (1,)
    with pytest.raises(wg.ShapeError, match="Squeeze takes away axes of size 1"):
        run_one("Squeeze", x, ints(1))
    with pytest.raises(wg.AxisError, match="an axis twice"):
        run_one("Unsqueeze", x, ints(1, -4))


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "expected"),
    [
        ([0], [2], [1], [1], X[:, 0:2]),
        ([-1], [-5], [2], [-1], X[:, :, ::-1]),
        ([3], [-100], [2], [-2], X[:, :, 3::-2]),
        ([100], [-100], [2], [-1], X[:, :, ::-1]),
        ([1], [np.iinfo(np.int64).max], [-1], [2], X[:, :, 1::2]),
        ([3], [np.iinfo(np.int64).min], [2], [-1], X[:, :, ::-1]),
        ([2], [1], [2], [1], X[:, :, 2:1]),
        ([0, 1], [1, 3], [0, 2], [1, 1], X[0:1, :, 1:3]),
    ],
)
def test_slice(starts: Any, ends: Any, axes: Any, steps: Any, expected: Any) -> None:
    found = run_one("Slice", X, ints(*starts), ints(*ends), ints(*axes), ints(*steps), known=EVERY)
    np.testing.assert_array_equal(found, expected)


def test_slice_of_the_first_axes() -> None:
    np.testing.assert_array_equal(run_one("Slice", X, ints(0, 1), ints(1, 9)), X[0:1, 1:])
    np.testing.assert_array_equal(run_one("Slice", X, opset=9, starts=[1], ends=[9], axes=[1]), X[:, 1:])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("widths", [(1, 0, 2, 0), (2, 2, 2, 2)])
def test_pad(mode: Any, widths: tuple[int, ...]) -> None:
    x = X[0]
    expected = np.pad(x, [widths[::2], widths[1::2]], mode=mode)
    np.testing.assert_array_equal(run_one("Pad", x, ints(*widths), mode=mode), expected)


def test_pad_takes_away_too_and_knows_axes_and_values() -> None:
    x = floats(1, 2, 3, 4)
    assert run_one("Pad", x, ints(-1, 1), np.array(9, np.float32)).tolist() == [2, 3, 4, 9]
    found = run_one("Pad", X, ints(1, 0), None, ints(-1))
    np.testing.assert_array_equal(found, np.pad(X, [(0, 0), (0, 0), (1, 0)]))
    assert (
        run_one("Pad", floats(1, 2, 3), ints(5, 4), mode="wrap").tolist()
        == np.pad([1, 2, 3], (5, 4), mode="wrap").tolist()
    )
    assert run_one("Pad", np.array([True]), ints(1, 1), np.array(True)).tolist() == [True] * 3
    assert run_one("Pad", floats(1), opset=2, pads=[1, 0], value=5.0).tolist() == [5, 1]


def test_split() -> None:
    x = np.arange(7, dtype=np.float32)
    assert [each.size for each in run("Split", x, outputs=3, num_outputs=3)] == [3, 3, 1]
    assert [each.size for each in run("Split", x, ints(0, 7), outputs=2)] == [0, 7]
    assert [each.shape for each in run("Split", X, outputs=2, axis=-1, opset=13)] == [(2, 3, 2)] * 2
    with pytest.raises(wg.ShapeError, match="are not the 7 of axis 0"):
        run("Split", x, ints(3, 3), outputs=2)


def test_tile_expand_transpose_concat() -> None:
    assert run_one("Tile", floats([1, 2]), ints(2, 2)).tolist() == [[1, 2, 1, 2]] * 2
    assert run_one("Tile", floats([1, 2]), ints(1, 0)).shape == (1, 0)
    assert run_one("Expand", floats([1], [2]), ints(3)).tolist() == [[1, 1, 1], [2, 2, 2]]
    assert run_one("Expand", floats([1, 2]), ints(1, 1)).tolist() == [[1, 2]]
    np.testing.assert_array_equal(run_one("Transpose", X), X.T)
    np.testing.assert_array_equal(run_one("Transpose", X, perm=[1, 2, 0]), X.transpose(1, 2, 0))
    assert run_one("Concat", floats(1), np.zeros(0, np.float32), floats(2), axis=-1).tolist() == [1, 2]


@pytest.mark.parametrize("k", [1, -2, 100])
def test_triangles(k: int) -> None:
    np.testing.assert_array_equal(run_one("Trilu", X, ints(k)), np.triu(X, k))
    np.testing.assert_array_equal(run_one("Trilu", X, np.array(k), upper=0), np.tril(X, k))


def test_reshape_finds_one_size_only() -> None:
    with pytest.raises(wg.ShapeError, match="only one size may be left to find"):
        run_one("Reshape", np.ones(4, np.float32), np.array([-1, -1]), known=[1])
