"""Linear, Bilinear, Embedding: values, initial values, arguments, mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn


def test_linear() -> None:
    layer = nn.Linear(5, 3)
    x = np.random.default_rng(0).normal(size=(2, 4, 5)).astype(np.float32)
    expected = x @ layer.weight.numpy().T + np.asarray(layer.bias)
    np.testing.assert_allclose(layer(wg.asarray(x)).numpy(), expected, rtol=1e-5, atol=1e-6)
    assert layer(wg.zeros((0, 5))).shape == (0, 3)
    assert layer(wg.zeros(5)).shape == (3,)


def test_linear_without_bias_and_in_other_dtypes() -> None:
    layer = nn.Linear(5, 3, bias=False, dtype=wg.float16)
    assert list(layer.state_dict()) == ["weight"]
    assert layer.bias is None
    assert layer(wg.ones((1, 5), dtype=wg.float16)).dtype is wg.float16
    assert repr(layer) == "Linear(in_features=5, out_features=3, bias=False)"


@pytest.mark.parametrize(
    ("make", "fan_in"),
    [
        (lambda: nn.Linear(64, 100), 64),
        (lambda: nn.Bilinear(64, 10, 20), 64),
        (lambda: nn.Conv2d(8, 60, 3, groups=2), 36),
        (lambda: nn.ConvTranspose2d(8, 60, 3, groups=2), 270),
        (lambda: nn.Conv1d(16, 100, 4), 64),
    ],
)
def test_initial_values_are_uniform_as_pytorchs(make: Any, fan_in: int) -> None:
    for parameter in make().parameters():
        values = parameter.numpy()
        bound = 1 / math.sqrt(fan_in)
        assert np.abs(values).max() <= bound
        assert abs(values.std() - bound / math.sqrt(3)) < 0.2 * bound
    one, two = make(), make()
    assert not np.array_equal(one.weight.numpy(), two.weight.numpy())


def test_the_seed_decides() -> None:
    found = []
    for _ in range(2):
        wg.random.seed(7)
        found.append(nn.Linear(4, 4).weight.numpy())
    np.testing.assert_array_equal(found[0], found[1])


def test_bilinear() -> None:
    layer = nn.Bilinear(3, 4, 2)
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(5, 6, 3)), generator.normal(size=(5, 6, 4))
    expected = np.einsum("abi,oij,abj->abo", x, layer.weight.numpy(), y) + np.asarray(layer.bias)
    found = layer(wg.asarray(x, wg.float32), wg.asarray(y, wg.float32))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(wg.ShapeError, match=r"Bilinear\(in1_features=3.* takes x \(…, 4\)"):
        layer(wg.zeros((2, 3)), wg.zeros((2, 5)))


def test_embedding() -> None:
    layer = nn.Embedding(10, 4, padding_idx=-1)
    assert layer.padding_idx == 9
    assert layer.weight[9].tolist() == [0.0] * 4
    index = np.array([[1, 9, 3], [3, 3, 0]])
    found = layer(wg.asarray(index))
    np.testing.assert_array_equal(found.numpy(), layer.weight.numpy()[index])
    found.sum().backward()
    assert layer.weight.grad is not None
    np.testing.assert_array_equal(layer.weight.grad.sum(axis=1).numpy(), [4, 4, 0, 12, 0, 0, 0, 0, 0, 0])
    assert repr(layer) == "Embedding(10, 4, padding_idx=9)"
    assert abs(nn.Embedding(100, 50).weight.numpy().std() - 1) < 0.05


def test_embedding_of_rows_that_are_there() -> None:
    layer = nn.Embedding.from_pretrained(wg.eye(3))
    assert not layer.weight.requires_grad
    assert layer(wg.asarray([2])).tolist() == [[0.0, 0.0, 1.0]]
    assert nn.Embedding.from_pretrained(wg.eye(3), freeze=False).weight.requires_grad
    with pytest.raises(wg.ShapeError, match=r"a matrix \(rows, features\), not \(3,\)"):
        nn.Embedding.from_pretrained(wg.zeros(3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.Linear(0, 3), wg.ArgumentError, "in_features must be an integer from 1 on, not 0"),
        (lambda: nn.Linear(3, True), wg.ArgumentError, "out_features must be an integer from 1 on, not True"),
        (lambda: nn.Linear(3, 2)(wg.zeros((4, 5))), wg.ShapeError, r"Linear\(in.* takes x \(…, 3\)"),
        (lambda: nn.Linear(3, 2)(wg.zeros(())), wg.ShapeError, r"this x is \(\)"),
        (lambda: nn.Linear(3, 2)([1.0, 2.0, 3.0]), wg.DTypeError, "takes a tensor, not a list"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), wg.ArgumentError, "padding_idx 3 is not a row of 3"),
        (lambda: nn.Embedding(3, 2)(wg.zeros(2)), wg.DTypeError, "takes integers.* not float32"),
        (lambda: nn.Embedding(3, 2)(1), wg.DTypeError, "embedding takes a tensor, not a int"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_numpys_integers_are_sizes() -> None:
    features: Any = np.int64(3)
    assert nn.Linear(features, 4).weight.shape == (4, 3)
