"""Normalisation against its formulas in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import loaded, model, node
from tests.onnx.operators.single import run, run_one

GENERATOR = np.random.default_rng(7)


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


def standard(x: Any, axes: Any, epsilon: float) -> Any:
    wide = x.astype(np.float64)
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + epsilon)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("opset", [6, 7, 9, 14, 22])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5)])
def test_batch_normalization(opset: int, shape: tuple[int, ...]) -> None:
    x, variance = drawn(*shape), np.abs(drawn(3)) + 0.1
    scale, bias, mean = drawn(3, 3)
    settings = {"is_test": 1} if opset == 6 else {}
    found = run_one(
        "BatchNormalization", x, scale, bias, mean, variance, opset=opset, epsilon=0.1, **settings
    )
    along = (3, *[1] * (len(shape) - 2))
    root = np.sqrt(variance + 0.1)
    expected = (x - mean.reshape(along)) / root.reshape(along) * scale.reshape(along) + bias.reshape(along)
    near(found, expected)


@pytest.mark.parametrize("opset", [7, 14])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 3, 4, 5)])
def test_statistics_of_the_file_are_in_the_scale_and_the_bias(
    tmp_path: Path, opset: int, shape: tuple[int, ...]
) -> None:
    channels = shape[1] if len(shape) > 1 else 1
    variance = np.abs(drawn(channels)) + 0.1
    scale, bias, mean = drawn(3, channels)
    weights = {"s": scale, "b": bias, "m": mean, "v": variance}
    nodes = [node("BatchNormalization", "x s b m v", "y", epsilon=0.1)]
    m = loaded(tmp_path, model(nodes, {"x": [None] * len(shape)}, {"y": None}, weights, opset=opset))
    x = drawn(*shape)
    along = (channels, *[1] * max(len(shape) - 2, 0))
    factor = (scale / np.sqrt(variance + 0.1)).reshape(along)
    expected = (x - mean.reshape(along)) * factor + bias.reshape(along)
    near(m(x).y.numpy(), expected)
    graph = wg.graph_of(lambda each: m(each).y, (wg.asarray(x, device="cpu"),))
    assert "rsqrt" not in [each.op for each in graph.nodes]
    if len(shape) > 1:
        with pytest.raises(wg.WebgradError, match="channels"):
            m(drawn(2, channels + 1, *shape[2:]))
    assert set(m.state_dict()) == {"s", "b", "m", "v"}
    near(m(x).y.numpy(), expected)


def test_statistics_of_the_file_in_training(tmp_path: Path) -> None:
    weights = {name: np.ones(3, np.float32) for name in "sbmv"}
    nodes = [node("BatchNormalization", "x s b m v", "y nm nv", training_mode=1)]
    outputs = {"y": None, "nm": None}
    m = loaded(tmp_path, model(nodes, {"x": [None, 3]}, outputs, weights, opset=15))
    x = drawn(8, 3)
    found = m(x)
    near(found.y.numpy(), standard(x, 0, 1e-5) + 1)
    near(found.nm.numpy(), 0.9 + 0.1 * x.mean(0))


def test_batch_normalization_of_places_that_have_statistics_of_their_own() -> None:
    x = drawn(2, 3, 4)
    scale, bias, mean = drawn(3, 3, 4)
    variance = np.abs(drawn(3, 4)) + 0.1
    found = run_one("BatchNormalization", x, scale, bias, mean, variance, opset=7, spatial=0)
    near(found, (x - mean) / np.sqrt(variance + 1e-5) * scale + bias)


@pytest.mark.parametrize("opset", [9, 15])
def test_batch_normalization_in_training(opset: int) -> None:
    x, variance = drawn(2, 3, 5), np.abs(drawn(3)) + 0.1
    scale, bias, mean = drawn(3, 3)
    settings: Any = {"training_mode": 1, "outputs": 3} if opset == 15 else {"outputs": 5}
    y, new_mean, new_variance, *saved = run(
        "BatchNormalization", x, scale, bias, mean, variance, opset=opset, momentum=0.7, **settings
    )
    own_mean, own_variance = x.mean((0, 2)), x.var((0, 2))
    near(y, standard(x, (0, 2), 1e-5) * scale[:, None] + bias[:, None])
    near(new_mean, 0.7 * mean + 0.3 * own_mean)
    near(new_variance, 0.7 * variance + 0.3 * own_variance)
    for each, expected in zip(saved, (own_mean, own_variance), strict=False):
        near(each, expected)


def test_batch_normalization_trained_in_a_way_that_is_not_there_is_refused() -> None:
    x = drawn(2, 3, 4)
    with pytest.raises(wg.ModelFileError, match="not spatial"):
        run("BatchNormalization", x, *[drawn(3, 4)] * 4, opset=7, spatial=0, outputs=5)


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_layer_normalization_with_its_statistics(axis: int) -> None:
    x = drawn(2, 3, 4)
    scale, bias = drawn(*x.shape[axis:]), drawn(*x.shape[axis:])
    y, mean, slope = run("LayerNormalization", x, scale, bias, outputs=3, axis=axis, epsilon=0.01)
    axes = tuple(range(axis % 3, 3))
    near(y, standard(x, axes, 0.01) * scale + bias)
    near(mean, x.mean(axes, keepdims=True))
    near(slope, 1 / np.sqrt(x.var(axes, keepdims=True) + 0.01))


def test_layer_normalization_of_16_bits_is_computed_in_32() -> None:
    x, scale = (drawn(2, 64) * 100).astype(np.float16), np.ones(64, np.float16)
    y, mean, _ = run("LayerNormalization", x, scale, outputs=3)
    assert (y.dtype, mean.dtype) == (np.float16, np.float32)
    np.testing.assert_allclose(y.astype(np.float64), standard(x, (1,), 1e-5), 2e-3, 1e-3)
    near(mean, x.astype(np.float64).mean(1, keepdims=True))


def test_weights_of_fewer_axes_than_are_normalised() -> None:
    x, scale, bias = drawn(2, 3, 4), drawn(1, 4), drawn(1)
    near(run_one("LayerNormalization", x, scale, bias, axis=1), standard(x, (1, 2), 1e-5) * scale + bias)
    root = np.sqrt((x.astype(np.float64) ** 2).mean((1, 2), keepdims=True) + 1e-5)
    near(run_one("RMSNormalization", x, scale, opset=23, axis=1), x / root * scale)


def test_instance_and_group_normalization() -> None:
    x, scale, bias = drawn(2, 6, 4, 3), drawn(6), drawn(6)
    along = (6, 1, 1)
    by_channel = standard(x, (2, 3), 1e-5) * scale.reshape(along) + bias.reshape(along)
    near(run_one("InstanceNormalization", x, scale, bias), by_channel)
    one = run_one("InstanceNormalization", x[..., :1, :1], scale, bias)
    near(one, np.broadcast_to(bias.reshape(along), (2, 6, 1, 1)))
    by_group = standard(x.reshape(2, 3, -1), (2,), 1e-5).reshape(x.shape)
    near(
        run_one("GroupNormalization", x, scale, bias, num_groups=3),
        by_group * scale.reshape(along) + bias.reshape(along),
    )
    few = [each[:3].repeat(2).reshape(along) for each in (scale, bias)]
    found = run_one("GroupNormalization", x, scale[:3], bias[:3], num_groups=3, opset=18)
    near(found, by_group * few[0] + few[1])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_local_response_normalization(size: int) -> None:
    x = drawn(1, 5, 2, 2)
    found = run_one("LRN", x, size=size, alpha=0.5, beta=0.6, bias=1.5)
    for channel in range(5):
        near_by = x[:, max(0, channel - (size - 1) // 2) : channel + size // 2 + 1]
        total = (near_by.astype(np.float64) ** 2).sum(1)
        near(found[:, channel], x[:, channel] / (1.5 + 0.5 / size * total) ** 0.6)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization_keeps_zeros(p: int) -> None:
    x = drawn(3, 4)
    x[1] = 0
    norm = (np.abs(x) ** p).sum(1, keepdims=True) ** (1 / p)
    near(run_one("LpNormalization", x, p=p), x / np.where(norm == 0, 1, norm))


def test_mean_variance_normalization() -> None:
    x = drawn(2, 3, 4, 5)
    near(run_one("MeanVarianceNormalization", x), standard(x, (0, 2, 3), 0))
    near(run_one("MeanVarianceNormalization", x, axes=[1]), standard(x, (1,), 0))
    assert run_one("MeanVarianceNormalization", np.ones((1, 1, 2, 2), np.float32)).tolist() == [
        [[[0, 0], [0, 0]]]
    ]
