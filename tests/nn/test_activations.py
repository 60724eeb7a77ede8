"""Activations as modules: their options reach the functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import activations
from webgrad.nn import functional as F

CASES: list[tuple[Any, Any]] = [
    (nn.CELU(2.0), lambda x: F.celu(x, 2.0)),
    (nn.ELU(2.0, inplace=True), lambda x: F.elu(x, 2.0)),
    (nn.GELU(), F.gelu),
    (nn.GELU(approximate="tanh"), lambda x: F.gelu(x, "tanh")),
    (nn.GLU(dim=0), lambda x: F.glu(x, 0)),
    (nn.Hardshrink(0.7), lambda x: F.hardshrink(x, 0.7)),
    (nn.Hardsigmoid(), F.hardsigmoid),
    (nn.Hardswish(), F.hardswish),
    (nn.Hardtanh(-0.5, 0.7), lambda x: F.hardtanh(x, -0.5, 0.7)),
    (nn.LeakyReLU(0.3), lambda x: F.leaky_relu(x, 0.3)),
    (nn.LogSigmoid(), F.logsigmoid),
    (nn.LogSoftmax(dim=0), lambda x: F.log_softmax(x, 0)),
    (nn.Mish(), F.mish),
    (nn.PReLU(init=0.4, device="cpu"), lambda x: F.leaky_relu(x, 0.4)),
    (nn.RReLU(0.2, 0.4).eval(), lambda x: F.leaky_relu(x, 0.3)),
    (nn.ReLU(inplace=True), F.relu),
    (nn.ReLU6(), F.relu6),
    (nn.SELU(), F.selu),
    (nn.SiLU(), F.silu),
    (nn.Sigmoid(), F.sigmoid),
    (nn.Softmax(dim=0), lambda x: F.softmax(x, 0)),
    (nn.Softmin(dim=0), lambda x: F.softmin(x, 0)),
    (nn.Softplus(2.0, 1.0), lambda x: F.softplus(x, 2.0, 1.0)),
    (nn.Softshrink(0.7), lambda x: F.softshrink(x, 0.7)),
    (nn.Softsign(), F.softsign),
    (nn.Tanh(), F.tanh),
    (nn.Tanhshrink(), F.tanhshrink),
    (nn.Threshold(0.2, 0.1), lambda x: F.threshold(x, 0.2, 0.1)),
]


@pytest.mark.parametrize(("layer", "function"), CASES, ids=[type(layer).__name__ for layer, _ in CASES])
def test_options_reach_the_function(layer: Any, function: Any) -> None:
    x = wg.random.normal((4, 6))
    np.testing.assert_allclose(layer(x).numpy(), function(x).numpy(), rtol=1e-6)


def test_all_of_them_are_tested() -> None:
    assert {type(layer).__name__ for layer, _ in CASES} == set(activations.__all__) - {"Softmax2d"}


def test_softmax_over_channels() -> None:
    x = wg.random.normal((2, 3, 4, 5))
    np.testing.assert_allclose(nn.Softmax2d()(x).numpy(), F.softmax(x, 1).numpy(), rtol=1e-6)
    with pytest.raises(wg.ShapeError, match="Softmax2d takes"):
        nn.Softmax2d()(x[0, 0])


def test_prelu_learns_a_slope_for_each_channel() -> None:
    layer = nn.PReLU(3)
    x = wg.asarray([[-1.0, -2.0, 3.0]])
    layer(x).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [-1.0, -2.0, 0.0]
    assert list(layer.state_dict()) == ["weight"]
    assert repr(layer) == "PReLU(num_parameters=3)"
    with pytest.raises(wg.ArgumentError, match="num_parameters must be an integer from 1 on"):
        nn.PReLU(0)


def test_text() -> None:
    assert repr(nn.ReLU()) == "ReLU()"
    assert repr(nn.LeakyReLU()) == "LeakyReLU(negative_slope=0.01)"
    assert repr(nn.Softmax(dim=1)) == "Softmax(dim=1)"
    assert repr(nn.GELU()) == "GELU(approximate='none')"
