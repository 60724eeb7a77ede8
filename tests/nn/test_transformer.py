"""Transformer layers against NumPy: norms first or last, masks, copies of layers, names, mistakes, jit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.nn.attention_reference import Array, attention, hidden, numbers
from tests.properties.helpers import gpu
from webgrad import nn

X, MEMORY = numbers(3, 5, 8), numbers(3, 7, 8)


def norm(layer: Any, x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + layer.eps)
    bias = 0.0 if layer.bias is None else layer.bias.numpy()
    return np.asarray(scaled * layer.weight.numpy() + bias)


def linear(layer: Any, x: Array) -> Array:
    return np.asarray(x @ layer.weight.numpy().T + (0.0 if layer.bias is None else layer.bias.numpy()))


def gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))))


def around(layer: Any, number: int, x: Array, part: Callable[[Array], Array]) -> Array:
    scaled = getattr(layer, f"norm{number}")
    return x + part(norm(scaled, x)) if layer.norm_first else norm(scaled, x + part(x))


def encoded(layer: Any, x: Array, activation: Callable[[Array], Array], *masks: Array | None) -> Array:
    x = around(layer, 1, x, lambda x: attention(layer.self_attn, x, x, x, *masks)[0])
    return around(layer, 2, x, lambda x: linear(layer.linear2, activation(linear(layer.linear1, x))))


def decoded(layer: Any, x: Array, memory: Array, *masks: Array | None) -> Array:
    x = around(layer, 1, x, lambda x: attention(layer.self_attn, x, x, x, *masks)[0])
    x = around(layer, 2, x, lambda x: attention(layer.multihead_attn, x, memory, memory)[0])
    return around(layer, 3, x, lambda x: linear(layer.linear2, relu(linear(layer.linear1, x))))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def shaken(module: Any) -> Any:
    """No parameter as it begins: ones and zeros hide mistakes."""
    with wg.no_grad():
        for parameter in module.parameters():
            parameter += wg.random.normal(parameter.shape, std=0.2)
    return module


def close(made: wg.Tensor, expected: Array) -> None:
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("activation", "function"), [("relu", relu), ("gelu", gelu), (wg.tanh, np.tanh)])
def test_a_layer_of_an_encoder(norm_first: bool, bias: bool, activation: Any, function: Any) -> None:
    options = {"norm_first": norm_first, "bias": bias, "activation": activation, "batch_first": True}
    layer = shaken(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, layer_norm_eps=1e-3, **options))
    close(layer(wg.asarray(X)), encoded(layer, X, function))
    masked = layer(wg.asarray(X), wg.asarray(hidden(5, 5)), wg.asarray(hidden(3, 5)))
    close(masked, encoded(layer, X, function, hidden(5, 5), hidden(3, 5)))


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_layer_of_a_decoder(norm_first: bool) -> None:
    layer = shaken(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first))
    later = np.triu(np.ones((5, 5), bool), 1)
    x, memory = wg.asarray(X), wg.asarray(MEMORY)
    close(layer(x, memory), decoded(layer, X, MEMORY))
    close(layer(x, memory, tgt_is_causal=True), decoded(layer, X, MEMORY, later))
    close(layer(x, memory, wg.asarray(later)), decoded(layer, X, MEMORY, later))


def test_time_first_is_the_default() -> None:
    layer = shaken(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0))
    made = layer(wg.asarray(X.transpose(1, 0, 2)))
    np.testing.assert_allclose(made.numpy().transpose(1, 0, 2), encoded(layer, X, relu), rtol=1e-3, atol=1e-4)
    one = layer(wg.asarray(X[0]))
    np.testing.assert_allclose(one.numpy(), encoded(layer, X, relu)[0], rtol=1e-3, atol=1e-4)


def test_encoders_and_decoders_are_copies_of_a_layer() -> None:
    model = shaken(nn.Transformer(8, 2, 2, 1, 16, dropout=0.0, batch_first=True))
    first, second = model.encoder.layers
    assert first.linear1.weight is not second.linear1.weight
    memory = norm(model.encoder.norm, encoded(second, encoded(first, MEMORY, relu), relu))
    expected = norm(model.decoder.norm, decoded(model.decoder.layers[0], X, memory))
    close(model(wg.asarray(MEMORY), wg.asarray(X)), expected)


def test_a_model_without_final_norms_and_with_own_parts() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 1)
    model = shaken(
        nn.Transformer(8, 2, custom_encoder=encoder, num_decoder_layers=1, dim_feedforward=16, dropout=0.0)
    )
    assert model.encoder is encoder
    close(encoder(wg.asarray(X)), encoded(encoder.layers[0], X, relu))


def test_causal_masks() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    np.testing.assert_array_equal(mask.numpy(), np.triu(np.full((3, 3), -np.inf), 1))
    encoder = shaken(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)
    )
    x = wg.asarray(X)
    by_mask = encoder(x, nn.Transformer.generate_square_subsequent_mask(5))
    close(encoder(x, is_causal=True), by_mask.numpy())
    changed = X.copy()
    changed[:, 3:] = 0
    np.testing.assert_allclose(
        encoder(wg.asarray(changed), is_causal=True).numpy()[:, :3],
        by_mask.numpy()[:, :3],
        rtol=1e-4,
        atol=1e-5,
    )


def test_names_are_pytorchs() -> None:
    model = nn.Transformer(8, 2, 1, 1, 16)
    names = list(model.state_dict())
    assert names[:12] == [
        f"encoder.layers.0.{name}"
        for name in (
            "self_attn.in_proj_weight",
            "self_attn.in_proj_bias",
            "self_attn.out_proj.weight",
            "self_attn.out_proj.bias",
            "linear1.weight",
            "linear1.bias",
            "linear2.weight",
            "linear2.bias",
            "norm1.weight",
            "norm1.bias",
            "norm2.weight",
            "norm2.bias",
        )
    ]
    assert {
        "encoder.norm.weight",
        "decoder.norm.bias",
        "decoder.layers.0.multihead_attn.in_proj_bias",
    } <= set(names)
    bound = math.sqrt(6 / (8 + 16))
    assert np.abs(model.encoder.layers[0].linear1.weight.numpy()).max() <= bound


def test_dropout_is_for_training() -> None:
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True), wg.asarray(X)
    assert np.any(layer(x).numpy() != layer(x).numpy())
    close(layer.eval()(x), encoded(layer, X, relu))


def test_captured() -> None:
    layer = shaken(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True))
    run = wg.jit(layer)
    for seed in range(3):
        x = numbers(3, 5, 8, seed=seed)
        close(run(wg.asarray(x)), encoded(layer, x, relu))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.TransformerEncoderLayer(8, 3), wg.ArgumentError, "multiple of num_heads=3"),
        (lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"), wg.ArgumentError, "relu and gelu"),
        (lambda: nn.TransformerEncoder(nn.Identity(), 0), wg.ArgumentError, "num_layers"),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16)(wg.zeros((5, 3, 6))), wg.ShapeError, "6"),
        (
            lambda: nn.Transformer(8, 2, 1, 1, 16)(wg.zeros((5, 3, 8)), wg.zeros((5, 2, 8))),
            wg.ShapeError,
            r"src \(5, 3, 8\).*batch",
        ),
        (
            lambda: nn.Transformer(8, 2, 1, 1, 16)(wg.zeros((5, 3, 8)), wg.zeros((5, 3, 6))),
            wg.ShapeError,
            "d_model=8",
        ),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.gpu
def test_a_layer_is_seven_kernels() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, norm_first=True).to(gpu())
    x = wg.asarray(numbers(6, 8, 32), device=gpu())
    wg.eval(x, *layer.parameters())
    with wg.no_grad():
        plan = wg.explain(layer(x, is_causal=True))
    assert len(plan.kernels) == 7  # two norms, four products, attention
