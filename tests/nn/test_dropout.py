"""Dropout, as functions and as modules: how much is dropped, what stays, modes, capture, dtypes, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import functional as F

MODULES = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_elements_are_dropped_and_the_mean_stays(p: float) -> None:
    y = F.dropout(wg.full((100, 100), 3.0), p).numpy()
    np.testing.assert_allclose(np.unique(y), [0, 3 / (1 - p)], rtol=1e-6)
    assert abs((y == 0).mean() - p) < 0.02


@pytest.mark.parametrize(("axes", "shape"), [(1, (40, 50, 3)), (2, (40, 50, 3, 2)), (3, (40, 50, 2, 2, 2))])
def test_whole_channels(axes: int, shape: tuple[int, ...]) -> None:
    function = getattr(F, f"dropout{axes}d")
    y = function(wg.ones(shape), 0.25).numpy().reshape(40, 50, -1)
    assert (y == y[..., :1]).all()
    assert abs((y[..., 0] == 0).mean() - 0.25) < 0.05
    assert function(wg.ones(shape[1:]), 1.0).sum().item() == 0  # without a batch
    with pytest.raises(wg.ShapeError, match=rf"dropout{axes}d takes x \(N, C, …\) or \(C, …\)"):
        function(wg.ones(2))


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_keeps_mean_and_variance(name: str) -> None:
    x = wg.random.normal((300, 300))
    y = getattr(F, name)(x, 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 1) < 0.02
    assert getattr(F, name)(x, 0.3) is x  # training is False, as PyTorch has it
    assert getattr(F, name)(x, 1.0, training=True).sum().item() == 0


@pytest.mark.parametrize("name", MODULES)
def test_modules_drop_in_training_only(name: str) -> None:
    layer = getattr(nn, name)(0.5)
    axes = int(name[-2]) if name[-1] == "d" else 1
    x = wg.random.normal((8, 8, *[2] * axes))
    assert not np.array_equal(layer(x).numpy(), layer(x).numpy())
    assert layer.eval()(x) is x
    assert getattr(nn, name)(0.0)(x) is x
    assert repr(layer) == f"{name}(p=0.5, inplace=False)"
    with pytest.raises(wg.ArgumentError, match=f"{name}: p is the probability .* 0 to 1, not 1.5"):
        getattr(nn, name)(1.5)


def test_captured_masks_are_new_at_each_call_and_follow_the_seed() -> None:
    layer = nn.Dropout(0.5)
    fast = wg.jit(lambda x: layer(x))
    x = wg.ones(64)
    first, second, third = (fast(x).numpy() for _ in range(3))
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)
    wg.random.seed(0)
    np.testing.assert_array_equal(first, layer(x).numpy())


def test_captured_functions_see_another_probability() -> None:
    layer = wg.nn.Dropout(0.9)
    captured = wg.jit(lambda x: layer(x))
    x = wg.ones(50, device="cpu")
    assert not captured(x).numpy().all()
    layer.p = 0.0
    assert captured(x).numpy().all()


def test_the_gradient_goes_where_the_values_went() -> None:
    x = wg.ones(50).requires_grad_()
    y = F.dropout(x, 0.5)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())
    z = wg.ones(3).requires_grad_()
    F.dropout(z, 1.0).sum().backward()
    assert z.grad is not None
    assert z.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16, wg.float64])
def test_dtypes(dtype: wg.DType) -> None:
    y = F.dropout(wg.ones(100, dtype=dtype), 0.5)
    assert y.dtype is dtype
    assert set(y.astype(wg.float32).tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.dropout(wg.ones(2), -0.1), wg.ArgumentError, "dropout: p is the probability"),
        (lambda: F.dropout(wg.ones(2), float("nan")), wg.ArgumentError, "0 to 1, not nan"),
        (lambda: F.dropout(wg.ones(2, dtype=wg.int32)), wg.DTypeError, "dropout takes .* floats, not int32"),
        (lambda: F.dropout(1.0), wg.DTypeError, "dropout takes a tensor, not a float"),  # type: ignore[arg-type]
        (lambda: F.feature_alpha_dropout(wg.ones(2), 0.5, True), wg.ShapeError, r"takes x \(N, C, …\)"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_captured_function_sees_another_probability() -> None:
    layer = nn.Dropout(0.0)
    captured = wg.jit(lambda x: layer(x))
    assert captured(wg.ones(8)).numpy().all()
    layer.p = 1.0
    assert not captured(wg.ones(8)).numpy().any()
