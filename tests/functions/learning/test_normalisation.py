"""Normalisation against its formulas in float64, with every weight and statistic, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import nodes_under
from webgrad import dtypes
from webgrad.errors import ArgumentError, DTypeError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.learning import normalisation
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]
IMAGES = (np.random.default_rng(0).normal(size=(3, 6, 4, 5)) * 2 + 10).astype(np.float32)


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def numbers(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def standardised(x: Array, axis: int | tuple[int, ...], eps: float = 1e-5) -> Array:
    x = x.astype(np.float64)
    centred = x - x.mean(axis=axis, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True) + eps))


def check(result: Tensor, expected: Any, tolerance: float = 2e-5) -> None:
    found = result.numpy()
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def by_channel(values: Array) -> Array:
    return values.reshape(1, -1, 1, 1)


@pytest.mark.parametrize("sizes", [5, (5,), (4, 5), (3, 6, 4, 5)])
@pytest.mark.parametrize("with_weights", [False, True])
def test_layer_norm(sizes: Any, with_weights: bool) -> None:
    shape = (sizes,) if isinstance(sizes, int) else sizes
    axes = tuple(range(-len(shape), 0))
    expected = standardised(IMAGES, axes, 1e-3)
    weight, bias = numbers(*shape), numbers(*shape, seed=2)
    if with_weights:
        result = normalisation.layer_norm(on_cpu(IMAGES), sizes, on_cpu(weight), on_cpu(bias), 1e-3)
        expected = expected * weight + bias
    else:
        result = normalisation.layer_norm(on_cpu(IMAGES), sizes, eps=1e-3)
    check(result, expected)


def test_layer_norm_over_any_axes() -> None:
    weight = numbers(6)
    result = normalisation.layer_norm(on_cpu(IMAGES), None, on_cpu(weight), axis=1)
    check(result, standardised(IMAGES, 1) * by_channel(weight))
    check(normalisation.layer_norm(on_cpu(IMAGES), axis=(1, -1)), standardised(IMAGES, (1, 3)))
    check(normalisation.layer_norm(on_cpu(IMAGES)), standardised(IMAGES, -1))


def test_layer_norm_is_two_reduces() -> None:
    nodes = nodes_under([normalisation.layer_norm(on_cpu(IMAGES), 5).node])
    assert sum(node.sig.kind == "reduce" for node in nodes) == 2
    assert not any(node.sig.kind == "cast" for node in nodes)


def test_rms_norm() -> None:
    weight = numbers(4, 5)
    square = (IMAGES.astype(np.float64) ** 2).mean(axis=(-2, -1), keepdims=True)
    check(
        normalisation.rms_norm(on_cpu(IMAGES), (4, 5), on_cpu(weight), 0.5),
        IMAGES / np.sqrt(square + 0.5) * weight,
    )
    small = np.array([[1e-4, 2e-4]], np.float32)
    eps = np.finfo(np.float32).eps
    check(
        normalisation.rms_norm(on_cpu(small), 2),
        small / np.sqrt((small.astype(np.float64) ** 2).mean() + eps),
    )


def test_rms_norm_of_small_floats_adds_the_eps_of_float32() -> None:
    values = np.array([[1e-4, 2e-4]], np.float16)
    check(normalisation.rms_norm(on_cpu(values), 2), [[0.2634, 0.5269]], 1e-3)  # as torch 2.13


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_norm(groups: int) -> None:
    weight, bias = numbers(6), numbers(6, seed=2)
    expected = standardised(IMAGES.reshape(3, groups, -1), 2).reshape(IMAGES.shape)
    check(normalisation.group_norm(on_cpu(IMAGES), groups), expected)
    result = normalisation.group_norm(on_cpu(IMAGES), groups, on_cpu(weight), on_cpu(bias))
    check(result, expected * by_channel(weight) + by_channel(bias))


def test_group_norm_of_nothing() -> None:
    assert normalisation.group_norm(on_cpu(np.zeros((0, 4, 2), np.float32)), 2).shape == (0, 4, 2)


def test_batch_norm_by_running_statistics() -> None:
    mean, var, weight, bias = numbers(6), numbers(6, seed=2) ** 2, numbers(6, seed=3), numbers(6, seed=4)
    expected = (IMAGES - by_channel(mean)) / np.sqrt(by_channel(var) + 1e-5)
    check(normalisation.batch_norm(on_cpu(IMAGES), on_cpu(mean), on_cpu(var)), expected)
    result = normalisation.batch_norm(on_cpu(IMAGES), on_cpu(mean), on_cpu(var), on_cpu(weight), on_cpu(bias))
    check(result, expected * by_channel(weight) + by_channel(bias), 1e-4)


def test_batch_norm_in_training_gives_new_statistics() -> None:
    mean, var = numbers(6), numbers(6, seed=2) ** 2
    old_mean, old_var = on_cpu(mean), on_cpu(var)
    result, new_mean, new_var = normalisation.batch_norm_training(
        on_cpu(IMAGES), old_mean, old_var, momentum=0.3
    )
    check(result, standardised(IMAGES, (0, 2, 3)), 1e-4)
    assert new_mean is not None
    assert new_var is not None
    check(new_mean, 0.7 * mean + 0.3 * IMAGES.astype(np.float64).mean(axis=(0, 2, 3)))
    check(new_var, 0.7 * var + 0.3 * IMAGES.astype(np.float64).var(axis=(0, 2, 3), ddof=1), 1e-4)
    np.testing.assert_array_equal(old_mean.numpy(), mean)
    check(
        normalisation.batch_norm(on_cpu(IMAGES), None, None, training=True),
        standardised(IMAGES, (0, 2, 3)),
        1e-4,
    )


def test_batch_norm_without_running_statistics_gives_none() -> None:
    assert normalisation.batch_norm_training(on_cpu(numbers(4, 3)), None, None)[1:] == (None, None)


def test_instance_norm() -> None:
    weight, bias, mean, var = (numbers(6, seed=seed) for seed in range(4))
    expected = standardised(IMAGES, (2, 3)) * by_channel(weight) + by_channel(bias)
    check(normalisation.instance_norm(on_cpu(IMAGES), None, None, on_cpu(weight), on_cpu(bias)), expected)
    fixed = normalisation.instance_norm(on_cpu(IMAGES), on_cpu(mean), on_cpu(var**2), use_input_stats=False)
    check(fixed, (IMAGES - by_channel(mean)) / np.sqrt(by_channel(var**2) + 1e-5), 1e-4)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_normalize(p: float) -> None:
    values = numbers(3, 4)
    values[1] = 0
    length = np.linalg.norm(values.astype(np.float64), p, axis=1, keepdims=True)
    check(normalisation.normalize(on_cpu(values), p), values / np.maximum(length, 1e-12))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: normalisation.layer_norm(x, 8),
        lambda x: normalisation.group_norm(x, 2),
        lambda x: normalisation.batch_norm(x, None, None, training=True),
    ],
)
def test_small_floats_are_computed_wide(function: Callable[[Tensor], Tensor], dtype: dtypes.DType) -> None:
    values = (np.random.default_rng(5).normal(size=(16, 8)) * 0.5 + 300).astype(dtype.numpy)
    result = function(on_cpu(values))
    assert result.dtype is dtype
    wide = function(on_cpu(values.astype(np.float32))).numpy()
    np.testing.assert_array_equal(result.numpy(), wide.astype(dtype.numpy))


def test_weights_of_another_float() -> None:
    x, weight = on_cpu(numbers(2, 4), dtypes.float16), on_cpu(numbers(4))
    assert normalisation.layer_norm(x, 4, weight).dtype is dtypes.float16


def test_a_row_with_nan_is_nan_alone() -> None:
    values = numbers(3, 4)
    values[1, 2] = np.nan
    found = normalisation.layer_norm(on_cpu(values), 4).numpy()
    assert np.isnan(found).all(axis=1).tolist() == [False, True, False]


X = on_cpu(IMAGES)
SIX = on_cpu(np.ones(6, np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: normalisation.layer_norm(X, 4),
            r"layer_norm: normalized_shape \(4,\) must be the end of the shape of x",
        ),
        (lambda: normalisation.layer_norm(X, ()), "normalized_shape"),
        (lambda: normalisation.layer_norm(X, (2, 3, 6, 4, 5)), "normalized_shape"),
        (
            lambda: normalisation.layer_norm(X, 5, SIX),
            r"layer_norm: weight must have shape \(5,\), not \(6,\)",
        ),
        (lambda: normalisation.layer_norm(X, 5, None, SIX), "layer_norm: bias must have shape"),
        (lambda: normalisation.rms_norm(X, 6), "rms_norm: normalized_shape"),
        (lambda: normalisation.group_norm(X, 4), "the 6 channels .* do not make 4 equal groups"),
        (lambda: normalisation.group_norm(X, 0), "do not make 0 equal groups"),
        (lambda: normalisation.group_norm(SIX, 2), "group_norm: x of shape"),
        (lambda: normalisation.batch_norm(X, None, None), "it needs running_mean and running_var"),
        (lambda: normalisation.batch_norm(X, SIX, on_cpu([1.0])), "batch_norm: running_var must have shape"),
        (lambda: normalisation.batch_norm(on_cpu([[1.0]]), None, None, training=True), "two values or more"),
        (lambda: normalisation.instance_norm(on_cpu(np.ones((2, 3, 1)))), "instance_norm: each channel"),
        (lambda: normalisation.instance_norm(on_cpu(np.ones((2, 3)))), "must have 3 axes or more"),
        (lambda: normalisation.normalize(X, axis=4), "normalize: there is no axis 4"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        call()


def test_mistaken_dtypes() -> None:
    with pytest.raises(DTypeError, match=r"layer_norm is not offered for int32.*astype"):
        normalisation.layer_norm(on_cpu([[1, 2]]), 2)
    with pytest.raises(DTypeError, match=r"layer_norm \(its weight\) is not offered for int32"):
        normalisation.layer_norm(on_cpu([[1.0, 2.0]]), 2, on_cpu([1, 2]))
    with pytest.raises(DTypeError, match="group_norm takes a webgrad tensor"):
        normalisation.group_norm(IMAGES, 2)  # type: ignore[arg-type]


def test_the_gradient_of_a_zero_vector_is_finite() -> None:
    x = asarray(np.array([[0, 0], [3, 4]], np.float32), device="cpu").requires_grad_()
    normalisation.normalize(x, eps=0.5)[:, 0].sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [[2.0, 0.0], [0.128, -0.096]], rtol=1e-5, atol=1e-7)
