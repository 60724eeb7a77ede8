"""Initial values: distributions, what is filled, in place and without a gradient, mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import init


def drawn(name: str, *shape: int, **options: Any) -> Any:
    return getattr(init, name)(wg.empty(shape), **options).numpy()


@pytest.mark.parametrize(
    ("name", "options", "deviation", "bound"),
    [
        ("uniform_", {"a": -3.0, "b": 3.0}, math.sqrt(3), 3),
        ("normal_", {"std": 2.0}, 2, 13.6),
        ("xavier_uniform_", {"gain": 2.0}, 2 * math.sqrt(2 / 600), 2 * math.sqrt(6 / 600)),
        ("xavier_normal_", {}, math.sqrt(2 / 600), 1),
        ("kaiming_uniform_", {"nonlinearity": "relu"}, math.sqrt(2 / 400), math.sqrt(6 / 400)),
        ("kaiming_uniform_", {"a": math.sqrt(5)}, math.sqrt(1 / 3 / 400), math.sqrt(1 / 400)),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "linear"}, math.sqrt(1 / 200), 1),
        ("trunc_normal_", {}, 0.8796, 2),
        ("trunc_normal_", {"std": 0.02}, 0.02, 2),
    ],
)
def test_distributions(name: str, options: dict[str, Any], deviation: float, bound: float) -> None:
    values = drawn(name, 200, 400, **options)
    assert abs(values.mean()) < 0.02 * deviation
    assert abs(values.std() - deviation) < 0.01 * deviation
    assert np.abs(values).max() <= bound * 1.00001


def test_truncated_normal_is_that_of_the_normal_distribution() -> None:
    values = drawn("trunc_normal_", 100_000, mean=1.0, std=2.0, a=0.0, b=4.0)
    assert values.min() >= 0
    assert values.max() <= 4
    cumulative = np.vectorize(lambda x: 0.5 * (1 + math.erf((x - 1) / math.sqrt(8))))
    low, high = cumulative(0.0), cumulative(4.0)
    for place in (0.5, 1.0, 2.0, 3.0):
        expected = (cumulative(place) - low) / (high - low)
        assert abs((values < place).mean() - expected) < 0.01
    far = drawn("trunc_normal_", 1000, std=1e-3)
    assert np.isfinite(far).all()


def test_constants() -> None:
    assert drawn("ones_", 2).tolist() == [1, 1]
    assert drawn("zeros_", 2).tolist() == [0, 0]
    assert drawn("constant_", 2, val=3.5).tolist() == [3.5, 3.5]
    np.testing.assert_array_equal(drawn("eye_", 3, 4), np.eye(3, 4))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_dirac_gives_the_input_back(axes: int, groups: int) -> None:
    layer = getattr(nn, f"Conv{axes}d")(4, 4, 3, padding=1, groups=groups, bias=False)
    init.dirac_(layer.weight, groups)
    x = wg.random.normal((2, 4, *[5] * axes))
    np.testing.assert_allclose(layer(x).numpy(), x.numpy(), rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    matrix = drawn("orthogonal_", *shape, gain=2.0).reshape(shape[0], -1)
    small = min(matrix.shape)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(small), atol=1e-5)


def test_sparse() -> None:
    values = drawn("sparse_", 20, 30, sparsity=0.33)
    assert ((values == 0).sum(0) == 7).all()
    assert len({tuple(each) for each in (values == 0).T}) > 20
    assert abs(values[values != 0].std() - 0.01) < 0.001


def test_parameters_stay_what_they_are() -> None:
    layer = nn.Linear(3, 3)
    weight = layer.weight
    assert init.xavier_uniform_(weight) is weight
    assert weight.requires_grad
    assert weight.is_leaf
    half = nn.Parameter(wg.zeros((2, 2), dtype=wg.float16))
    assert init.kaiming_normal_(half).dtype is wg.float16
    assert init.trunc_normal_(half).dtype is wg.float16
    assert init.orthogonal_(half).dtype is wg.float16


def test_gains() -> None:
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / (1 + 0.01**2))
    assert init.fan_in_and_fan_out(wg.zeros((2, 3, 5))) == (15, 10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: init.calculate_gain("gelu"), wg.ArgumentError, "nonlinearity must be one of linear"),
        (lambda: init.kaiming_normal_(wg.zeros((2, 2)), mode="in"), wg.ArgumentError, 'one of "fan_in"'),
        (lambda: init.xavier_normal_(wg.zeros(2)), wg.ShapeError, r"shape \(2,\) has no inputs and outputs"),
        (lambda: init.eye_(wg.zeros(2)), wg.ShapeError, r"eye_ fills tensors of 2 axes, not \(2,\)"),
        (lambda: init.dirac_(wg.zeros((2, 2))), wg.ShapeError, "dirac_ fills tensors of 3 to 5 axes"),
        (lambda: init.dirac_(wg.zeros((3, 2, 2)), 2), wg.ArgumentError, "do not make 2 equal groups"),
        (lambda: init.orthogonal_(wg.zeros(2)), wg.ShapeError, "orthogonal_ fills tensors of 2 or more axes"),
        (lambda: init.trunc_normal_(wg.zeros(2), std=0.0), wg.ArgumentError, "std is positive"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
