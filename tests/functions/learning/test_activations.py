"""Activations against their formulas, PyTorch's results at NaN and infinity, dtypes, and mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scripts.reference_page import names_of
from tests.graph.helpers import nodes_under
from webgrad import dtypes
from webgrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.learning import activations
from webgrad.tensor import Tensor

INF, NAN = np.inf, np.nan
Array = np.ndarray[Any, Any]
Function = Callable[[Array], Array]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def softmax(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def relu6(x: Array) -> Array:
    return np.clip(x, 0, 6)


erf = np.vectorize(math.erf, otypes=[float])
FORMULAS: dict[str, Function] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": relu6,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "hardsigmoid": lambda x: relu6(x + 3) / 6,
    "hardswish": lambda x: x * relu6(x + 3) / 6,
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanhshrink": lambda x: x - np.tanh(x),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "softmin": lambda x: softmax(-x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softmax": softmax,
    "log_softmax": lambda x: np.log(softmax(x)),
}


SHAPES: list[tuple[int, ...]] = [(7, 33), (1,), (0, 3), (3, 0), ()]
# NumPy has no maximum of nothing; test_softmax_of_nothing has.
CASES = [
    (name, shape) for name in FORMULAS for shape in SHAPES if "soft" not in name or all(shape[-1:] or [0])
]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_formulas(name: str, shape: tuple[int, ...]) -> None:
    values = np.asarray(np.random.default_rng(0).normal(size=shape) * 3, np.float32)
    result = getattr(activations, name)(on_cpu(values))
    assert result.dtype is dtypes.float32
    assert result.shape == shape
    np.testing.assert_allclose(
        result.numpy(), FORMULAS[name](values.astype(np.float64)), rtol=2e-6, atol=1e-6
    )


# x = -inf, inf, NaN, 100, -200; as torch 2.13 gives them
SPECIAL = np.array([-INF, INF, NAN, 100, -200], np.float32)
AT_SPECIAL = {
    "relu": [0, INF, NAN, 100, 0],
    "relu6": [0, 6, NAN, 6, 0],
    "leaky_relu": [-INF, INF, NAN, 100, -2],
    "elu": [-1, INF, NAN, 100, -1],
    "selu": [-1.7580993, INF, NAN, 105.0701, -1.7580993],
    "silu": [NAN, INF, NAN, 100, 0],
    "mish": [NAN, INF, NAN, 100, 0],
    "softplus": [0, INF, NAN, 100, 0],
    "hardsigmoid": [0, 1, NAN, 1, 0],
    "hardswish": [NAN, INF, NAN, 100, 0],
    "hardtanh": [-1, 1, NAN, 1, -1],
    "celu": [-1, INF, NAN, 100, -1],
    "logsigmoid": [-INF, 0, NAN, 0, -200],
    "softsign": [NAN, NAN, NAN, 100 / 101, -200 / 201],
    "tanhshrink": [-INF, INF, NAN, 99, -199],
    "softshrink": [-INF, INF, NAN, 99.5, -199.5],
    "hardshrink": [-INF, INF, NAN, 100, -200],
    "sigmoid": [0, 1, NAN, 1, 0],
    "tanh": [-1, 1, NAN, 1, -1],
}


@pytest.mark.parametrize("name", AT_SPECIAL)
def test_special_values(name: str) -> None:
    found = getattr(activations, name)(on_cpu(SPECIAL)).numpy()
    np.testing.assert_allclose(found, np.array(AT_SPECIAL[name], np.float32), rtol=1e-6, atol=1e-40)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64])
@pytest.mark.parametrize("name", FORMULAS)
def test_every_float_keeps_its_dtype_and_is_rounded_once(name: str, dtype: dtypes.DType) -> None:
    values = (np.random.default_rng(1).normal(size=(4, 50)) * 3).astype(dtype.numpy)
    result = getattr(activations, name)(on_cpu(values))
    assert result.dtype is dtype
    expected = FORMULAS[name](values.astype(np.float64))
    half_step = {dtypes.float16: 2**-11, dtypes.bfloat16: 2**-8, dtypes.float64: 1e-12}[dtype]
    np.testing.assert_allclose(result.numpy().astype(np.float64), expected, rtol=half_step * 1.02, atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(FORMULAS) - {"relu", "relu6", "hardtanh", "sigmoid", "tanh"}))
def test_integers_are_refused(name: str) -> None:
    with pytest.raises(DTypeError, match=r"is not offered for int32.*astype\(webgrad.float32\)"):
        getattr(activations, name)(on_cpu([1, 2]))


def test_what_integers_may() -> None:
    x = on_cpu([-3, 2, 9])
    assert activations.relu(x).tolist() == [0, 2, 9]
    assert activations.relu6(x).tolist() == [0, 2, 6]
    assert activations.relu(x).dtype is dtypes.int32


@pytest.mark.parametrize("name", sorted(set(names_of(activations)) - {"prelu", "threshold"}))
def test_what_is_no_tensor_is_refused(name: str) -> None:
    with pytest.raises(DTypeError, match=r"takes a webgrad tensor, not a list.*asarray"):
        getattr(activations, name)([1.0])


def test_options() -> None:
    x = np.linspace(-8, 8, 101)
    on = on_cpu(x, dtypes.float32)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    for result, expected in (
        (activations.leaky_relu(on, 0.3), np.where(x > 0, x, 0.3 * x)),
        (activations.elu(on, 2.0), np.where(x > 0, x, 2 * np.expm1(x))),
        (activations.hardtanh(on, -2, 3), np.clip(x, -2, 3)),
        (activations.gelu(on, "tanh"), 0.5 * x * (1 + np.tanh(inner))),
    ):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match='approximate must be one of "none", "tanh", not \'erf\''):
        activations.gelu(on, "erf")
    with pytest.raises(ArgumentError, match="min_val 1 is above max_val 0"):
        activations.hardtanh(on, 1, 0)


def test_options_of_shrinking() -> None:
    x = np.linspace(-3, 3, 61)
    on = on_cpu(x, dtypes.float32)
    for result, expected in (
        (activations.celu(on, 2.0), np.where(x > 0, x, 2 * np.expm1(x / 2))),
        (activations.softshrink(on, 1.25), np.sign(x) * np.maximum(np.abs(x) - 1.25, 0)),
        (activations.hardshrink(on, 1.25), np.where(np.abs(x) > 1.25, x, 0)),
        (activations.threshold(on, 1.25, 7.0), np.where(x > 1.25, x, 7)),
    ):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(
        activations.threshold(on_cpu(SPECIAL), 1.0, -1.0).numpy(), [-1, INF, NAN, 100, -1]
    )
    assert activations.threshold(on_cpu([1, 5]), 2, 0).tolist() == [0, 5]
    with pytest.raises(ArgumentError, match="softshrink: lambd must be 0 or more"):
        activations.softshrink(on, -1.0)
    with pytest.raises(ArgumentError, match="celu: alpha must not be 0"):
        activations.celu(on, 0.0)


@pytest.mark.parametrize(
    ("shape", "count"), [((4,), 1), ((), 1), ((2, 3), 3), ((2, 3, 4), 3), ((2, 3, 4), 1)]
)
def test_prelu(shape: tuple[int, ...], count: int) -> None:
    generator = np.random.default_rng(4)
    x, weight = generator.normal(size=shape), generator.normal(size=count)
    slope = weight.reshape(-1, *[1] * (len(shape) - 2)) if count > 1 else weight.reshape(())
    result = activations.prelu(on_cpu(x, dtypes.float32), on_cpu(weight, dtypes.float32))
    assert result.shape == shape
    np.testing.assert_allclose(result.numpy(), np.where(x > 0, x, x * slope), rtol=1e-5)


def test_prelu_wants_one_weight_or_one_a_channel() -> None:
    with pytest.raises(ShapeError, match="one for each of the 3 channels along axis 1"):
        activations.prelu(on_cpu(np.ones((2, 3), np.float32)), on_cpu(np.ones(2, np.float32)))
    assert activations.prelu(on_cpu([-1.0], dtypes.float16), on_cpu([0.5])).dtype is dtypes.float16


def test_softplus_is_straight_above_its_threshold() -> None:
    x = np.array([1.0, 1.9, 2.1, 9.0], np.float32)
    expected = [math.log1p(math.exp(3)) / 3, math.log1p(math.exp(5.7)) / 3, 2.1, 9]
    np.testing.assert_allclose(activations.softplus(on_cpu(x), 3.0, 6.0).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (0, 1, 2)])
def test_softmax_along_axes(axis: Any) -> None:
    values = np.random.default_rng(2).normal(size=(3, 4, 5)).astype(np.float32) * 30
    expected = softmax(values.astype(np.float64), axis)
    np.testing.assert_allclose(
        activations.softmax(on_cpu(values), axis).numpy(), expected, rtol=1e-5, atol=1e-30
    )
    logs = activations.log_softmax(on_cpu(values), axis).numpy()
    np.testing.assert_allclose(logs, np.log(expected), rtol=1e-5, atol=1e-5)


def test_softmax_of_special_rows() -> None:
    values = np.array([[INF, 1], [-INF, -INF], [NAN, 1], [-INF, 1], [1e30, 1e30]], np.float32)
    found = activations.softmax(on_cpu(values)).numpy()
    np.testing.assert_array_equal(found, [[NAN, NAN], [NAN, NAN], [NAN, NAN], [0, 1], [0.5, 0.5]])
    logs = activations.log_softmax(on_cpu(values[:4])).numpy()
    np.testing.assert_array_equal(logs, [[NAN, NAN], [NAN, NAN], [NAN, NAN], [-INF, 0]])


def test_softmax_of_nothing() -> None:
    assert activations.softmax(on_cpu(np.zeros((3, 0), np.float32))).shape == (3, 0)
    assert activations.log_softmax(on_cpu(np.zeros((0, 3), np.float32)), 0).shape == (0, 3)
    assert activations.softmax(on_cpu(1.0)).item() == 1.0
    with pytest.raises(AxisError, match="softmax: there is no axis 1"):
        activations.softmax(on_cpu(1.0), 1)


def test_softmax_is_two_reduces() -> None:
    for function in (activations.softmax, activations.log_softmax):
        nodes = nodes_under([function(on_cpu(np.ones((2, 3), np.float32))).node])
        assert [node.sig.op.name for node in nodes if node.sig.kind == "reduce"] == ["max", "sum"]
        assert len(nodes) <= 9


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_glu(axis: int) -> None:
    values = np.random.default_rng(3).normal(size=(4, 6, 8)).astype(np.float32)
    a, b = np.split(values.astype(np.float64), 2, axis)
    np.testing.assert_allclose(activations.glu(on_cpu(values), axis).numpy(), a / (1 + np.exp(-b)), rtol=1e-5)


def test_glu_needs_halves() -> None:
    with pytest.raises(
        ShapeError, match=r"glu: axis -1 of shape \(2, 3\) has size 3, which is odd and has no halves"
    ):
        activations.glu(on_cpu(np.ones((2, 3), np.float32)))


@pytest.mark.parametrize("name", sorted(set(FORMULAS) - {"softmax", "log_softmax", "softmin"}))
def test_gradients_are_finite_far_from_zero(name: str) -> None:
    x = on_cpu(np.array([-200, -90, 0, 90, 200], np.float32)).requires_grad_()
    getattr(activations, name)(x).sum().backward()
    assert x.grad is not None
    assert np.isfinite(x.grad.numpy()).all()


def test_hardtanh_of_integers_gives_integers() -> None:
    x = on_cpu(np.array([-3, 0, 3], np.int32))
    assert activations.hardtanh(x).tolist() == [-1, 0, 1]
    assert activations.hardtanh(x).dtype is x.dtype
    assert activations.hardtanh(on_cpu(np.array([0, 200], np.uint8)), -5.0, INF).tolist() == [0, 200]
    with pytest.raises(ArgumentError, match=r"hardtanh of int32: a bound of 1\.5 is not an integer"):
        activations.hardtanh(x, 0, 1.5)
    with pytest.raises(DTypeError, match="hardtanh is not offered for bool"):
        activations.hardtanh(on_cpu([True]))
