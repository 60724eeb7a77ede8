"""Folds of axes: axes as attribute and input, nothing to fold, types of integers, ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats
from tests.onnx.operators.single import run_one

X = np.random.default_rng(1).integers(1, 6, (2, 3, 4)).astype(np.float32)
FOLDS: dict[str, Any] = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceL1": lambda x, **to: np.sum(np.abs(x), **to),
    "ReduceL2": lambda x, **to: np.sqrt(np.sum(x * x, **to)),
    "ReduceSumSquare": lambda x, **to: np.sum(x * x, **to),
    "ReduceLogSum": lambda x, **to: np.log(np.sum(x, **to)),
    "ReduceLogSumExp": lambda x, **to: np.log(np.sum(np.exp(x), **to)),
}
EVERY = pytest.mark.parametrize("kind", FOLDS)


def ints(*values: Any) -> Any:
    return np.array(values, np.int64)


@EVERY
@pytest.mark.parametrize(("axes", "keepdims"), [((1,), 1), ((-1, 0), 0), (None, 0)])
def test_axes_as_input_and_as_attribute(kind: str, axes: Any, keepdims: int) -> None:
    expected = FOLDS[kind](-X if kind == "ReduceL1" else X, axis=axes, keepdims=bool(keepdims))
    x = -X if kind == "ReduceL1" else X
    given = [] if axes is None else [ints(*axes)]
    found = run_one(kind, x, *given, keepdims=keepdims, opset=20)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    attribute = {} if axes is None else {"axes": list(axes)}
    old = run_one(kind, x, keepdims=keepdims, opset=11, **attribute)
    np.testing.assert_array_equal(old, found)


def test_a_single_axis_that_is_no_list() -> None:
    np.testing.assert_array_equal(run_one("ReduceSum", X, opset=11, axes=1, keepdims=0), X.sum(axis=1))


@EVERY
def test_no_axes_are_all_axes_or_none(kind: str) -> None:
    np.testing.assert_allclose(run_one(kind, X, ints(), opset=20), FOLDS[kind](X, keepdims=True), rtol=1e-6)
    alone = FOLDS[kind](X[..., None], axis=-1)
    np.testing.assert_allclose(
        run_one(kind, X, ints(), opset=20, noop_with_empty_axes=1), alone, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [
        ("ReduceSum", np.float32, 0),
        ("ReduceProd", np.float32, 1),
        ("ReduceMax", np.float32, -np.inf),
        ("ReduceMin", np.float32, np.inf),
        ("ReduceMax", np.int8, -128),
        ("ReduceMin", np.uint16, 65535),
        ("ReduceMax", np.bool_, False),
        ("ReduceMin", np.bool_, True),
        ("ReduceLogSumExp", np.float32, -np.inf),
        ("ReduceLogSum", np.float32, -np.inf),
        ("ReduceL2", np.float32, 0),
    ],
)
def test_nothing_to_fold(kind: str, dtype: Any, expected: Any) -> None:
    found = run_one(kind, np.zeros((2, 0, 3), dtype), ints(1), opset=20)
    assert found.dtype == dtype
    assert found.tolist() == [[[expected] * 3]] * 2


@EVERY
def test_integers_stay_integers(kind: str) -> None:
    x = np.array([[1, 2, 4], [3, 3, 5]], np.int32)
    found = run_one(kind, x, ints(1), opset=18, keepdims=0)
    assert found.dtype == np.int32
    assert found.tolist() == np.trunc(FOLDS[kind](x, axis=1) + 1e-6).tolist()


def test_means_of_integers_go_toward_zero() -> None:
    assert run_one("ReduceMean", np.array([-7, 2], np.int32), keepdims=0).tolist() == -2


def test_logarithms_of_sums_of_large_and_of_no_numbers() -> None:
    x = floats([1000, 1000], [-np.inf, -np.inf])
    found = run_one("ReduceLogSumExp", x, ints(1), keepdims=0)
    np.testing.assert_allclose(found, [1000 + np.log(2), -np.inf])


@pytest.mark.parametrize(
    ("kind", "last", "expected"),
    [("ArgMax", 0, [1, 2]), ("ArgMax", 1, [3, 2]), ("ArgMin", 0, [0, 0]), ("ArgMin", 1, [2, 1])],
)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_the_first_or_last_of_equal_ones(kind: str, last: int, expected: Any, dtype: Any) -> None:
    x = np.array([[1, 5, 1, 5], [0, 0, 7, 3]], dtype)
    found = run_one(kind, x, axis=-1, keepdims=0, select_last_index=last, opset=13)
    assert found.dtype == np.int64
    assert found.tolist() == expected


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("kind", ["CumSum", "CumProd"])
def test_running_sums_and_products(kind: str, exclusive: int, reverse: int) -> None:
    x = np.array([[2, 3, 4], [1, 5, 2]], np.int32)
    line = x[:, ::-1] if reverse else x
    start = np.full((2, 1), kind == "CumProd", np.int32)
    line = np.concatenate([start, line[:, :-1]], axis=1) if exclusive else line
    expected = (np.cumprod if kind == "CumProd" else np.cumsum)(line, axis=1)
    found = run_one(kind, x, np.array(-1), opset=26, exclusive=exclusive, reverse=reverse)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected[:, ::-1] if reverse else expected)


def test_determinants_of_many() -> None:
    x = floats([[2, 0], [0, 3]], [[0, 1], [1, 0]])
    np.testing.assert_allclose(run_one("Det", x), [6, -1])


def test_one_at_the_first_of_the_largest() -> None:
    x = floats([3, 1, 3], [5, 5, 0])
    assert run_one("Hardmax", x).tolist() == [[1, 0, 0], [1, 0, 0]]
    assert run_one("Hardmax", x, axis=0).tolist() == [[0, 0, 1], [1, 1, 0]]
    old = run_one("Hardmax", np.stack([x, -x]), opset=11, axis=1)
    assert old.reshape(2, -1).argmax(axis=1).tolist() == [3, 5]
    assert old.sum() == 2


@pytest.mark.parametrize("kind", ["CumSum", "CumProd"])
def test_running_results_of_nothing_are_nothing(kind: str) -> None:
    found = run_one(kind, np.zeros((2, 0), np.float32), np.array(1), known=[1], opset=26, exclusive=1)
    assert found.shape == (2, 0)
