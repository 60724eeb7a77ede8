"""Norms as modules: against NumPy, running statistics in training and eval, captured too, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn

Array = np.ndarray[Any, Any]


def standardised(x: Array, axes: tuple[int, ...], eps: float = 1e-5) -> Array:
    return np.asarray((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps))


def values(*shape: int) -> Array:
    return np.random.default_rng(0).normal(1.5, 2, size=shape)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [("1d", (8, 3)), ("1d", (4, 3, 5)), ("2d", (4, 3, 5, 2)), ("3d", (2, 3, 2, 3, 2))],
)
def test_batch_norm(layer: str, shape: tuple[int, ...]) -> None:
    norm = getattr(nn, f"BatchNorm{layer}")(3)
    x = values(*shape)
    axes = (0, *range(2, x.ndim))
    found = norm(wg.asarray(x, wg.float32))
    np.testing.assert_allclose(found.numpy(), standardised(x, axes), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * x.mean(axes), rtol=1e-4)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.9 + 0.1 * x.var(axes, ddof=1), rtol=1e-4)
    assert norm.num_batches_tracked.item() == 1
    assert not norm.running_mean.requires_grad
    norm.eval()
    shape_of = (1, 3, *[1] * (x.ndim - 2))
    mean, var = (each.numpy().reshape(shape_of) for each in (norm.running_mean, norm.running_var))
    np.testing.assert_allclose(
        norm(wg.asarray(x, wg.float32)).numpy(), (x - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-5
    )
    assert norm.num_batches_tracked.item() == 1
    norm.reset_running_stats()
    assert norm.running_var.tolist() == [1.0, 1.0, 1.0]
    assert norm.num_batches_tracked.item() == 0


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("momentum", [0.25, None])
def test_running_statistics_of_several_batches(momentum: float | None, captured: bool) -> None:
    norm = nn.BatchNorm1d(3, momentum=momentum)
    call = wg.jit(lambda x: norm(x)) if captured else norm
    batches = [values(6, 3) * scale for scale in (1, 2, 3, 4)]
    mean, var = np.zeros(3), np.ones(3)
    for count, batch in enumerate(batches, 1):
        step = 1 / count if momentum is None else momentum
        mean, var = mean + (batch.mean(0) - mean) * step, var + (batch.var(0, ddof=1) - var) * step
        call(wg.asarray(batch, wg.float32))
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, rtol=1e-4)
    np.testing.assert_allclose(norm.running_var.numpy(), var, rtol=1e-4)
    assert norm.num_batches_tracked.item() == 4


def test_a_captured_batch_norm_follows_eval() -> None:
    norm = nn.BatchNorm1d(2)
    fast = wg.jit(lambda x: norm(x))
    x = wg.asarray(values(6, 2), wg.float32)
    trained = fast(x).numpy()
    norm.eval()
    plain = norm(x).numpy()
    np.testing.assert_allclose(fast(x).numpy(), plain, rtol=1e-5)
    assert np.abs(plain - trained).max() > 0.1
    assert norm.num_batches_tracked is not None
    assert norm.num_batches_tracked.item() == 1


def test_captured_norms_see_another_momentum() -> None:
    layer = nn.BatchNorm1d(3, momentum=0.5)
    captured = wg.jit(lambda x: layer(x))
    x = wg.asarray([[1.0, 2.0, 3.0], [3.0, 6.0, 9.0]])
    captured(x)
    assert layer.running_mean is not None
    assert layer.running_mean.tolist() == [1.0, 2.0, 3.0]
    layer.momentum = 1.0
    captured(x)
    assert layer.running_mean.tolist() == [2.0, 4.0, 6.0]


def test_batch_norm_without_what_may_be_left_out() -> None:
    norm = nn.BatchNorm2d(3, affine=False, track_running_stats=False)
    assert not norm.state_dict()
    x = values(4, 3, 2, 2)
    for mode in (True, False):  # without running statistics the batch's own are used
        found = norm.train(mode)(wg.asarray(x, wg.float32)).numpy()
        np.testing.assert_allclose(found, standardised(x, (0, 2, 3)), rtol=1e-4, atol=1e-5)
    assert list(nn.BatchNorm2d(3, bias=False).state_dict())[0:2] == ["weight", "running_mean"]
    half = nn.BatchNorm1d(3).half()
    assert half(wg.asarray(values(8, 3), wg.float16)).dtype is wg.float16


@pytest.mark.parametrize(("axes", "shape"), [(1, (4, 3, 5)), (2, (4, 3, 5, 2)), (3, (2, 3, 2, 3, 2))])
def test_instance_norm(axes: int, shape: tuple[int, ...]) -> None:
    x = values(*shape)
    later = tuple(range(2, x.ndim))
    norm = getattr(nn, f"InstanceNorm{axes}d")(3, track_running_stats=True, affine=True)
    found = norm(wg.asarray(x, wg.float32)).numpy()
    np.testing.assert_allclose(found, standardised(x, later), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * x.mean(later).mean(0), rtol=1e-4, atol=1e-6)
    expected = 0.9 + 0.1 * x.var(later, ddof=1).mean(0)
    np.testing.assert_allclose(norm.running_var.numpy(), expected, rtol=1e-4)
    plain = getattr(nn, f"InstanceNorm{axes}d")(3)
    assert not plain.state_dict()
    np.testing.assert_allclose(
        plain.eval()(wg.asarray(x[0], wg.float32)).numpy(), found[0], rtol=1e-4, atol=1e-5
    )
    found = norm.eval()(wg.asarray(x, wg.float32)).numpy()
    mean, var = (each.numpy().reshape(3, *[1] * axes) for each in (norm.running_mean, norm.running_var))
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-5)


def test_layer_group_and_rms_norm() -> None:
    x = values(2, 4, 6)
    on = wg.asarray(x, wg.float32)
    grouped = standardised(x.reshape(2, 2, -1), (2,)).reshape(x.shape)
    root = np.sqrt((x**2).mean((1, 2), keepdims=True) + 1e-3)
    for layer, expected in (
        (nn.LayerNorm(6), standardised(x, (2,))),
        (nn.LayerNorm((4, 6), elementwise_affine=False), standardised(x, (1, 2))),
        (nn.LayerNorm(6, bias=False), standardised(x, (2,))),
        (nn.RMSNorm((4, 6), eps=1e-3), x / root),
        (nn.GroupNorm(2, 4), grouped),
        (nn.GroupNorm(2, 4, affine=False), grouped),
    ):
        np.testing.assert_allclose(layer(on).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert list(nn.LayerNorm(6).state_dict()) == ["weight", "bias"]
    assert list(nn.LayerNorm(6, bias=False).state_dict()) == ["weight"]
    assert list(nn.RMSNorm(6).state_dict()) == ["weight"]
    assert not nn.GroupNorm(2, 4, affine=False).state_dict()
    assert repr(nn.LayerNorm(6)) == "LayerNorm((6,), eps=1e-05, elementwise_affine=True, bias=True)"
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"


def test_weights_and_biases_are_used() -> None:
    x = wg.asarray(values(2, 4, 6), wg.float32)
    for layer in (nn.LayerNorm(6), nn.GroupNorm(2, 4), nn.BatchNorm1d(4), nn.InstanceNorm1d(4, affine=True)):
        plain = layer(x).numpy()
        with wg.no_grad():
            for parameter in layer.parameters():
                parameter *= 2
                parameter += 3
        np.testing.assert_allclose(layer(x).numpy(), plain * 5 + 3, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.BatchNorm2d(3)(wg.zeros((2, 4, 5, 5))),
            wg.ShapeError,
            r"x \(N, 3, H, W\); this x is \(2, 4",
        ),
        (
            lambda: nn.BatchNorm2d(3)(wg.zeros((2, 3))),
            wg.ShapeError,
            r"takes x \(N, 3, H, W\); this x is \(2, 3\)",
        ),
        (lambda: nn.BatchNorm1d(3)(wg.zeros((2, 4))), wg.ShapeError, r"takes x \(N, 3\); this x is \(2, 4\)"),
        (lambda: nn.BatchNorm1d(3)(wg.zeros((1, 3))), wg.ShapeError, "each channel needs two values"),
        (lambda: nn.BatchNorm1d(3)(7), wg.DTypeError, "takes a tensor, not a int"),
        (
            lambda: nn.LayerNorm((4, 6))(wg.zeros((4, 5))),
            wg.ShapeError,
            r"takes x \(…, 4, 6\); this x is \(4, 5\)",
        ),
        (lambda: nn.LayerNorm(())(wg.zeros(3)), wg.ArgumentError, "has at least one size"),
        (lambda: nn.LayerNorm(0), wg.ArgumentError, "a size in normalized_shape must be an integer from 1"),
        (lambda: nn.GroupNorm(3, 4), wg.ArgumentError, "4 channels do not make 3 equal groups"),
        (lambda: nn.GroupNorm(2, 4)(wg.zeros((2, 6, 3))), wg.ShapeError, r"takes x \(N, 4, …\); this x is"),
        (lambda: nn.InstanceNorm1d(4)(wg.zeros((2, 6, 3))), wg.ShapeError, r"x \(N, 4, L\) or \(4, L\)"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
