"""Activations against their formulas in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats
from tests.onnx.operators.single import run, run_one

X = np.array([-50.0, -3.5, -1.0, -0.25, 0.0, 0.25, 1.0, 3.5, 50.0], np.float32)
ERF = np.vectorize(math.erf)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def elu(x: Any, alpha: float) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


FORMULAS: list[tuple[str, dict[str, Any], Any]] = [
    ("Relu", {}, lambda x: np.maximum(x, 0)),
    ("LeakyRelu", {"alpha": 0.25}, lambda x: np.where(x > 0, x, 0.25 * x)),
    ("ThresholdedRelu", {"alpha": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
    ("Elu", {"alpha": 0.5}, lambda x: elu(x, 0.5)),
    ("Selu", {}, lambda x: 1.0507010221481323 * elu(x, 1.6732631921768188)),
    ("Selu", {"alpha": 2.0, "gamma": 3.0}, lambda x: 3 * elu(x, 2)),
    ("Celu", {"alpha": 2.0}, lambda x: np.maximum(x, 0) + np.minimum(2 * np.expm1(np.minimum(x, 0) / 2), 0)),
    ("Gelu", {}, lambda x: x * 0.5 * (1 + ERF(x / math.sqrt(2)))),
    (
        "Gelu",
        {"approximate": "tanh"},
        lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("Sigmoid", {}, sigmoid),
    ("HardSigmoid", {"alpha": 0.375, "beta": 0.25}, lambda x: np.clip(0.375 * x + 0.25, 0, 1)),
    ("HardSwish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("Softplus", {}, lambda x: np.logaddexp(x, 0)),
    ("Softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("Mish", {}, lambda x: x * np.tanh(np.logaddexp(x, 0))),
    ("Swish", {"opset": 24}, lambda x: x * sigmoid(x)),
    ("Swish", {"opset": 24, "alpha": 1.5}, lambda x: x * sigmoid(1.5 * x)),
    ("Shrink", {"lambd": 1.0, "bias": 0.5}, lambda x: np.where(x < -1, x + 0.5, np.where(x > 1, x - 0.5, 0))),
]


@pytest.mark.parametrize(("name", "settings", "formula"), FORMULAS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_activations(name: str, settings: dict[str, Any], formula: Any, dtype: str) -> None:
    x = X.astype(dtype)
    found = run_one(name, x, **settings)
    assert found.dtype == x.dtype
    rtol = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-9}[dtype]
    expected = formula(x.astype(np.float64))
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol, rtol * 1e-2)


def test_those_of_integers() -> None:
    x = np.array([-3, -1, 0, 1, 3], np.int32)
    assert run_one("Relu", x).tolist() == [0, 0, 0, 1, 3]
    assert run_one("PRelu", x, np.array([2], np.int32)).tolist() == [-6, -2, 0, 1, 3]
    found = run_one("Shrink", x, lambd=1.5, bias=1.0)
    assert found.dtype == np.int32
    assert found.tolist() == [-2, 0, 0, 0, 2]


def test_slopes_by_channel_and_by_element() -> None:
    x = -np.ones((1, 2, 3), np.float32)
    assert run_one("PRelu", x, floats([2], [3])).tolist() == [[[-2] * 3, [-3] * 3]]
    assert run_one("PRelu", x, floats(2, 3, 4)).tolist() == [[[-2, -3, -4]] * 2]
    assert run_one("PRelu", x, floats(2, 3), opset=6).tolist() == [[[-2] * 3, [-3] * 3]]


def test_swiglu() -> None:
    gate, x = floats(-1, 2), floats(3, 4)
    found = run_one("SwiGLU", gate, x, opset=27, alpha=2.0)
    np.testing.assert_allclose(found, gate * sigmoid(2 * gate) * x, 1e-6)


def softmax(x: Any, axes: Any) -> Any:
    powers = np.exp(x - x.max(axes, keepdims=True))
    return powers / powers.sum(axes, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_goes_over_one_axis_and_before_version_13_over_all_from_it_on(axis: int) -> None:
    x = np.random.default_rng(8).standard_normal((2, 3, 4), np.float32)
    for opset, axes in ((13, axis), (11, tuple(range(axis, 3)))):
        expected = softmax(x.astype(np.float64), axes)
        np.testing.assert_allclose(run_one("Softmax", x, axis=axis, opset=opset), expected, 1e-5)
        np.testing.assert_allclose(run_one("LogSoftmax", x, axis=axis, opset=opset), np.log(expected), 1e-4)
        hot = run_one("Hardmax", x, axis=axis, opset=opset)
        np.testing.assert_array_equal(hot, x == x.max(axes, keepdims=True))


def test_hardmax_takes_the_first_of_equal_ones() -> None:
    assert run_one("Hardmax", floats([1, 3, 3], [0, 0, 0])).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(("opset", "dtype"), [(7, np.float32), (10, np.bool_), (13, np.bool_)])
def test_dropout_that_is_not_trained_keeps_everything(opset: int, dtype: Any) -> None:
    y, mask = run("Dropout", X, outputs=2, opset=opset)
    assert y.tolist() == X.tolist()
    assert mask.dtype == dtype
    assert mask.all()


def test_dropout_in_training() -> None:
    x = np.ones((100, 100), np.float32)
    y, mask = run("Dropout", x, floats(0.25)[0], np.array(True), outputs=2)
    np.testing.assert_allclose(y, np.where(mask, np.float32(4 / 3), 0), 1e-6)
    assert 0.72 < mask.mean() < 0.78
    assert run_one("Dropout", X, floats(0.0)[0], np.array(True)).tolist() == X.tolist()
