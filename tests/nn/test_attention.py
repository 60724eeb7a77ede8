"""MultiheadAttention against NumPy: projections, masks, weights, layouts, added keys, mistakes, jit."""

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


def place(x: Array | None) -> wg.Tensor | None:
    return None if x is None else wg.asarray(x)


def check(
    layer: Any, q: Array, k: Array, v: Array, mask: Array | None = None, padding: Array | None = None
) -> None:
    """With and without weights the result is what is wanted; so are the weights."""
    result, weights = attention(layer, q, k, v, mask, padding)
    order = (0, 1, 2) if layer.batch_first else (1, 0, 2)
    given = [wg.asarray(each.transpose(order)) for each in (q, k, v)]
    options = {"attn_mask": place(mask), "key_padding_mask": place(padding)}
    made, shown = layer(*given, average_attn_weights=False, **options)
    np.testing.assert_allclose(made.numpy().transpose(order), result, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shown.numpy(), weights, rtol=1e-4, atol=1e-5)
    fused, nothing = layer(*given, need_weights=False, **options)
    assert nothing is None
    np.testing.assert_allclose(fused.numpy().transpose(order), result, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer(*given, **options)[1].numpy(), weights.mean(1), rtol=1e-4, atol=1e-5)


Q, K, V = numbers(3, 5, 8), numbers(3, 7, 8), numbers(3, 7, 8, seed=9)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"bias": False},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("masked", ["", "mask", "padding", "both", "by head", "numbers"])
def test_it_is_as_defined(options: dict[str, bool], masked: str) -> None:
    mask = {"mask": hidden(5, 7), "both": hidden(5, 7), "by head": hidden(6, 5, 7), "numbers": numbers(5, 7)}
    padding = hidden(3, 7) if masked in ("padding", "both") else None
    layer = nn.MultiheadAttention(8, 2, **options)
    for parameter in layer.parameters():
        if parameter.ndim == 1:  # biases begin as zeros
            nn.init.normal_(parameter)
    check(layer, Q, K, V, mask.get(masked), padding)


def test_other_columns() -> None:
    layer = nn.MultiheadAttention(8, 4, kdim=5, vdim=3)
    assert layer.in_proj_weight is None
    check(layer, Q, numbers(3, 7, 5), numbers(3, 7, 3))


@pytest.mark.parametrize("batch_first", [False, True])
def test_equal_inputs_share_products(batch_first: bool) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=batch_first)
    q, k = wg.asarray(Q), wg.asarray(K[:, :5])
    for given in ((q, q, q), (q, k, k), (q, q, k)):
        apart = [each + 0.0 for each in given]
        np.testing.assert_allclose(layer(*given)[0].numpy(), layer(*apart)[0].numpy(), rtol=1e-4, atol=1e-5)


def test_without_a_batch() -> None:
    layer = nn.MultiheadAttention(8, 2, add_bias_kv=True)
    result, weights = attention(layer, Q[:1], K[:1], V[:1], hidden(5, 7), hidden(1, 7))
    options = {"attn_mask": place(hidden(5, 7)), "key_padding_mask": place(hidden(1, 7)[0])}
    made, shown = layer(wg.asarray(Q[0]), wg.asarray(K[0]), wg.asarray(V[0]), **options)
    np.testing.assert_allclose(made.numpy(), result[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shown.numpy(), weights[0].mean(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"add_zero_attn": True}], ids=str)
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_causal(options: dict[str, bool], need_weights: bool, padded: bool) -> None:
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True, **options), wg.asarray(Q)
    later = np.triu(np.ones((5, 5), bool), 1)
    padding = hidden(3, 5) if padded else None
    more: dict[str, Any] = {"need_weights": need_weights, "key_padding_mask": place(padding)}
    result, _ = attention(layer, Q, Q, Q, later, padding)
    for mask in (None, later):
        made, _ = layer(x, x, x, attn_mask=place(mask), is_causal=True, **more)
        np.testing.assert_allclose(made.numpy(), result, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_query_that_sees_nothing_gives_zeros(need_weights: bool) -> None:
    layer, x = nn.MultiheadAttention(8, 2, bias=False), wg.asarray(numbers(5, 3, 8))
    mask = np.zeros((5, 5), bool)
    mask[2] = True
    made = layer(x, x, x, attn_mask=wg.asarray(mask), need_weights=need_weights)[0].numpy()
    assert np.all(made[2] == 0)
    assert np.all(np.isfinite(made))
    assert np.all(made[1] != 0)


def test_dropout_is_of_weights_in_training_only() -> None:
    layer, x = nn.MultiheadAttention(8, 2, dropout=1.0, bias=False), wg.asarray(numbers(5, 3, 8))
    assert not np.any(layer(x, x, x, need_weights=False)[0].numpy())
    assert layer(x, x, x, need_weights=False)[1] is None
    check(layer.eval(), Q, K, V)


def test_captured() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    run = wg.jit(lambda x: layer(x, x, x, need_weights=False)[0])
    for seed in range(3):
        x = numbers(3, 5, 8, seed=seed)
        np.testing.assert_allclose(
            run(wg.asarray(x)).numpy(), attention(layer, x, x, x)[0], rtol=1e-4, atol=1e-5
        )


def test_parameters_begin_as_pytorchs() -> None:
    layer = nn.MultiheadAttention(32, 4, add_bias_kv=True)
    assert list(layer.state_dict()) == [
        "in_proj_weight",
        "in_proj_bias",
        "bias_k",
        "bias_v",
        "out_proj.weight",
        "out_proj.bias",
    ]
    bound = math.sqrt(6 / (32 + 96))
    assert 0.9 * bound < np.abs(layer.in_proj_weight.numpy()).max() <= bound
    assert not np.any(layer.in_proj_bias.numpy())
    assert not np.any(layer.state_dict()["out_proj.bias"].numpy())
    assert np.any(layer.bias_k.numpy())


def zeros(*shape: int) -> wg.Tensor:
    return wg.zeros(shape)


def run(*shapes: tuple[int, ...], **options: Any) -> Any:
    return nn.MultiheadAttention(8, 2)(*(wg.zeros(each) for each in shapes), **options)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: nn.MultiheadAttention(8, 3),
            wg.ArgumentError,
            "embed_dim=8 must be a multiple of num_heads=3",
        ),
        (lambda: nn.MultiheadAttention(8, 0), wg.ArgumentError, "num_heads"),
        (lambda: nn.MultiheadAttention(8, 2, dropout=2.0), wg.ArgumentError, "probability"),
        (lambda: run((5, 3, 8), (5, 3, 8), (8,)), wg.ShapeError, "positions, batch, columns"),
        (lambda: run((5, 3, 8), (5, 3, 7), (5, 3, 8)), wg.ShapeError, r"\(8, 8, 8\)"),
        (lambda: run((5, 3, 8), (6, 3, 8), (5, 3, 8)), wg.ShapeError, "as many positions"),
        (lambda: run((5, 3, 8), (5, 2, 8), (5, 2, 8)), wg.ShapeError, "equally large batches"),
        (
            lambda: run((5, 3, 8), (7, 3, 8), (7, 3, 8), attn_mask=zeros(7, 5)),
            wg.ShapeError,
            r"attn_mask \(7, 5\).*here \(5, 7\)",
        ),
        (
            lambda: run((5, 3, 8), (7, 3, 8), (7, 3, 8), key_padding_mask=zeros(7, 3)),
            wg.ShapeError,
            r"key_padding_mask \(7, 3\).*here \(3, 7\)",
        ),
        (
            lambda: run((5, 8), (7, 8), (7, 8), attn_mask=zeros(5, 7).astype(wg.int32)),
            wg.DTypeError,
            "bools .*floats",
        ),
        (lambda: nn.MultiheadAttention(8, 2)(1, 2, 3), wg.DTypeError, "tensor"),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.gpu
@pytest.mark.parametrize("batch_first", [False, True])
def test_without_weights_it_is_three_kernels(batch_first: bool) -> None:
    layer = nn.MultiheadAttention(32, 4, batch_first=batch_first).to(gpu())
    x = wg.asarray(numbers(6, 8, 32), device=gpu())
    wg.eval(x, *layer.parameters())
    with wg.no_grad():
        plan = wg.explain(layer(x, x, x, need_weights=False, is_causal=True)[0])
    assert len(plan.kernels) == 3
