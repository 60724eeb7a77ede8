"""Constants, ranges, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats, loaded, model, node
from tests.onnx.operators.single import run_one
from webgrad.onnx.types import code_of

FLOAT16, INT64, INT32 = (code_of(np.dtype(name)) for name in ("float16", "int64", "int32"))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"value": floats([1, 2])}, floats([1, 2])),
        ({"value_float": 1.5}, np.array(1.5, np.float32)),
        ({"value_floats": [1.5, 2.0]}, floats(1.5, 2)),
        ({"value_int": 3}, np.array(3)),
        ({"value_ints": [3, 4]}, np.array([3, 4])),
        ({"value_string": "a"}, np.array("a", object)),
        ({"value_strings": ["a", "b"]}, np.array(["a", "b"], object)),
    ],
)
def test_constants(settings: dict[str, Any], expected: Any) -> None:
    found = run_one("Constant", **settings)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_a_constant_with_two_values() -> None:
    with pytest.raises(wg.ModelFileError, match="Constant has one value, not 2"):
        run_one("Constant", value_int=1, value_float=1.0)


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2), (40, 50)])
def test_constants_of_a_shape(shape: tuple[int, ...]) -> None:
    sizes = np.array(shape, np.int64)
    np.testing.assert_array_equal(run_one("ConstantOfShape", sizes), np.zeros(shape, np.float32))
    found = run_one("ConstantOfShape", sizes, value=np.array([7], np.int32))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.full(shape, 7))


@pytest.mark.parametrize(
    ("numbers", "expected"), [((0, 10, 3), [0, 3, 6, 9]), ((10, 0, -3), [10, 7, 4, 1]), ((5, 0, 1), [])]
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_ranges(numbers: Any, expected: Any, dtype: Any) -> None:
    found = run_one("Range", *(np.array(each, dtype) for each in numbers))
    assert found.dtype == dtype
    assert found.tolist() == expected


def test_ranges_by_fractions() -> None:
    assert run_one("Range", *(floats(0, 1, 0.25))).tolist() == [0, 0.25, 0.5, 0.75]


def test_ranges_of_halves_do_not_lose_steps() -> None:
    start, limit, step = (np.array(each, np.float16) for each in (2048, 2056, 1))
    expected = np.arange(2048, 2056).astype(np.float16)
    np.testing.assert_array_equal(run_one("Range", start, limit, step, opset=27), expected)
    with pytest.raises(wg.ArgumentError, match="Range has steps of 0"):
        run_one("Range", start, limit, step * 0, opset=27)


@pytest.mark.parametrize("k", [0, 1, -2, 9])
def test_matrices_with_a_diagonal(k: int) -> None:
    x = np.zeros((3, 4), np.float32)
    np.testing.assert_array_equal(run_one("EyeLike", x, k=k), np.eye(3, 4, k))
    assert run_one("EyeLike", x, dtype=INT64).dtype == np.int64
    with pytest.raises(wg.ShapeError, match="EyeLike takes a matrix"):
        run_one("EyeLike", x[0])


@pytest.mark.parametrize(
    ("kind", "numbers", "low", "high"),
    [("Uniform", {"low": 3.0, "high": 5.0}, 3, 5), ("Normal", {"mean": 100.0, "scale": 0.5}, 96, 104)],
)
def test_random_numbers(tmp_path: Any, kind: str, numbers: Any, low: float, high: float) -> None:
    nodes = [
        node(f"Random{kind}", "", "a", shape=[400], **numbers),
        node(f"Random{kind}Like", "x", "b", dtype=FLOAT16, **numbers),
    ]
    m = loaded(tmp_path, model(nodes, {"x": [3, 2]}, {"a": None, "b": None}))
    first, second = (m(np.zeros((3, 2), np.float32)) for _ in range(2))
    assert first["b"].shape == (3, 2)
    assert first["b"].numpy().dtype == np.float16
    a = first["a"].numpy()
    assert low <= a.min() < a.mean() < a.max() <= high
    assert (a != second["a"].numpy()).any()


def test_a_seed_gives_the_same_numbers_in_each_loaded_model(tmp_path: Any) -> None:
    data = model([node("RandomUniform", "", "y", shape=[8], seed=4.0)], {}, {"y": None})
    one, other = (loaded(tmp_path, data)()["y"].tolist() for _ in range(2))
    assert one == other
    assert len(set(one)) > 4


def test_chances_of_one_and_none() -> None:
    found = run_one("Bernoulli", floats(0, 1, 0, 1), dtype=INT32)
    assert found.dtype == np.int32
    assert found.tolist() == [0, 1, 0, 1]
    rows = floats([-1e9, 0, -1e9], [0, -1e9, -1e9])
    drawn = run_one("Multinomial", rows, sample_size=4, dtype=INT64)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == [[1] * 4, [0] * 4]
