"""Fused operators of com.microsoft are the operators that they are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.operators.single import run, run_one
from tests.onnx.operators.windowed import convolved

GENERATOR = np.random.default_rng(17)
MICROSOFT = "com.microsoft"


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def fused(name: str, *inputs: Any, **settings: Any) -> Any:
    return run_one(name, *inputs, domain=MICROSOFT, **settings)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gelu(x: Any) -> Any:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def rough_gelu(x: Any) -> Any:
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def standard(x: Any, axes: Any, epsilon: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def test_gelus() -> None:
    x, bias, weight = drawn(2, 3, 8), drawn(8), drawn(8, 5)
    near(fused("Gelu", x), gelu(x))
    near(fused("BiasGelu", x, bias), gelu(x + bias))
    near(fused("FastGelu", x), rough_gelu(x))
    near(fused("FastGelu", x, bias), rough_gelu(x + bias))
    near(fused("GemmFastGelu", x, weight), rough_gelu(x @ weight))
    near(fused("QuickGelu", x, alpha=1.5), x * sigmoid(1.5 * x))
    near(fused("BiasSplitGelu", x, bias), (x + bias)[..., :4] * gelu((x + bias)[..., 4:]))
    near(fused("BiasAdd", x, bias, x), 2 * x + bias)


def test_softmax_of_sums() -> None:
    x = drawn(2, 3, 4, 5)
    for bias, inner in ((drawn(2, 1, 1, 5), 1), (drawn(1, 3, 4, 5), 0)):
        powers = np.exp(x + bias)
        found = fused("BiasSoftmax", x, bias, axis=3, is_inner_broadcast=inner)
        near(found, powers / powers.sum(-1, keepdims=True))


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_products_of_transposed_matrices(alpha: float) -> None:
    a, b = drawn(2, 3, 4, 5), drawn(2, 3, 5, 6)
    expected = alpha * (a @ b)
    turned = {"transA": a.swapaxes(-1, -2), "transB": b.swapaxes(-1, -2)}
    batch = {"transBatchA": np.moveaxis(a, -2, 0), "transBatchB": np.moveaxis(b, -2, 0)}
    for name, operand in (turned | batch).items():
        given = (operand.copy(), b) if name.endswith("A") else (a, operand.copy())
        near(fused("FusedMatMul", *given, alpha=alpha, **{name: 1}), expected)
    found = fused("FusedMatMulActivation", a, b, activation="LeakyRelu", activation_alpha=0.25, alpha=alpha)
    near(found, np.where(expected > 0, expected, 0.25 * expected))


ACTIVATIONS: list[tuple[str, list[float], Any]] = [
    ("", [], lambda x: x),
    ("Relu", [], lambda x: np.maximum(x, 0)),
    ("Tanh", [], np.tanh),
    ("Sigmoid", [], sigmoid),
    ("LeakyRelu", [0.25], lambda x: np.where(x > 0, x, 0.25 * x)),
    ("Clip", [-0.5, 0.75], lambda x: np.clip(x, -0.5, 0.75)),
    ("HardSigmoid", [0.25, 0.5], lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
]


@pytest.mark.parametrize(("activation", "numbers", "function"), ACTIVATIONS)
def test_convolutions_with_an_activation(activation: str, numbers: list[float], function: Any) -> None:
    x, weight, bias, residual = drawn(1, 2, 5, 4), drawn(3, 2, 3, 3), drawn(3), drawn(1, 3, 5, 4)
    settings: Any = {"pads": [1, 1, 1, 1], "activation": activation}
    settings |= {"activation_params": numbers} if numbers else {}
    sums = convolved(x, weight, (1, 1), (1, 1), (1, 1), (5, 4)) + bias.reshape(-1, 1, 1)
    near(fused("FusedConv", x, weight, bias, **settings), function(sums))
    near(fused("FusedConv", x, weight, bias, residual, **settings), function(sums + residual))
    last = [np.moveaxis(each, 1, -1).copy() for each in (x, residual)]
    found = fused("NhwcFusedConv", last[0], weight, bias, last[1], **settings)
    near(found, np.moveaxis(function(sums + residual), 1, -1))


def test_gemm_with_an_activation() -> None:
    a, b, c = drawn(3, 4), drawn(5, 4), drawn(5)
    expected = 0.5 * (a @ b.T) + 2 * c
    found = fused("FusedGemm", a, b, c, alpha=0.5, beta=2.0, transB=1, activation="Relu")
    near(found, np.maximum(expected, 0))
    with pytest.raises(wg.ModelFileError, match="'Swirl'"):
        fused("FusedGemm", a, b, c, transB=1, activation="Swirl")


def test_pooling_and_convolution_of_channels_last() -> None:
    x = GENERATOR.integers(0, 255, (1, 4, 4, 2), np.uint8)
    found = fused("NhwcMaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(found, x.reshape(1, 2, 2, 2, 2, 2).max((2, 4)))
    image, weight = drawn(1, 5, 4, 2), drawn(3, 2, 1, 1)
    near(fused("NhwcConv", image, weight), image @ weight[:, :, 0, 0].T)


@pytest.mark.parametrize("is_centred", [True, False])
def test_sums_that_are_normalised(is_centred: bool) -> None:
    x, skip, bias, scale, shift = drawn(2, 3, 8), drawn(3, 8), drawn(8), drawn(8), drawn(8)
    total = x + skip + bias
    if is_centred:
        settings: Any = {"outputs": 4, "epsilon": 0.01, "domain": MICROSOFT}
        y, mean, slope, summed = run("SkipLayerNormalization", x, skip, scale, shift, bias, **settings)
        near(y, standard(total, (-1,), 0.01) * scale + shift)
        near(slope, 1 / np.sqrt(total.var(-1, keepdims=True) + 0.01))
    else:
        settings = {"outputs": 4, "epsilon": 0.01, "domain": MICROSOFT}
        y, mean, slope, summed = run("SkipSimplifiedLayerNormalization", x, skip, scale, bias, **settings)
        root = 1 / np.sqrt((total**2).mean(-1, keepdims=True) + 0.01)
        near(y, total * root * scale)
        near(slope, root)
    near(mean, total.mean(-1, keepdims=True))
    near(summed, total)


def test_root_normalisation_in_the_domain_of_the_standard() -> None:
    x, scale = drawn(2, 8), drawn(8)
    root = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    y, slope = run("SimplifiedLayerNormalization", x, scale, outputs=2)
    near(y, x * root * scale)
    near(slope, root)


def test_embeddings_that_are_normalised() -> None:
    words, segments = GENERATOR.integers(0, 9, (2, 4)), GENERATOR.integers(0, 2, (2, 4))
    tables, scale, shift = [drawn(9, 6), drawn(7, 6), drawn(2, 6)], drawn(6), drawn(6)
    mask, positions = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.int32), np.array([[3, 2, 1, 0]])
    given = (words, segments, *tables, scale, shift, mask)
    y, lengths, total = run("EmbedLayerNormalization", *given, outputs=3, epsilon=0.01, domain=MICROSOFT)
    expected = tables[0][words] + tables[1][:4] + tables[2][segments]
    near(total, expected)
    near(y, standard(expected, (-1,), 0.01) * scale + shift)
    assert lengths.tolist() == [2, 4]
    found = fused("EmbedLayerNormalization", words, None, *tables[:2], None, scale, shift, None, positions)
    near(found, standard(tables[0][words] + tables[1][positions], (-1,), 1e-12) * scale + shift)


@pytest.mark.parametrize("last", [0, 1])
def test_group_normalisation_with_an_activation(last: int) -> None:
    x, skip, scale, shift, bias = drawn(2, 6, 3, 4), drawn(2, 6), *(drawn(6) for _ in range(3))
    along = (6, 1, 1)
    total = x + skip[..., None, None] + bias.reshape(along)

    def normalised(x: Any) -> Any:
        each = standard(x.reshape(2, 3, -1), (2,), 0.01).reshape(x.shape)
        y = each * scale.reshape(along) + shift.reshape(along)
        return y * sigmoid(y)

    def placed(x: Any) -> Any:
        return np.moveaxis(x, 1, -1).copy() if last else x

    settings: Any = {
        "activation": 1,
        "groups": 3,
        "channels_last": last,
        "epsilon": 0.01,
        "domain": MICROSOFT,
    }
    near(run_one("GroupNorm", placed(x), scale, shift, **settings), placed(normalised(x)))
    y, summed = run("SkipGroupNorm", placed(x), scale, shift, skip, bias, outputs=2, **settings)
    near(summed, placed(total))
    near(y, placed(normalised(total)))
