"""Losses as modules and the functions of nn/distances.py: against NumPy, reductions, weights, mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import functional as F

Array = np.ndarray[Any, Any]
GENERATOR = np.random.default_rng(0)
X, Y, Z = (GENERATOR.normal(size=(6, 5)) for _ in range(3))
U, V = (GENERATOR.uniform(0.05, 0.95, size=(6, 5)) for _ in range(2))
SIGNS = np.where(GENERATOR.normal(size=6) > 0, 1, -1)
CLASSES = GENERATOR.integers(0, 5, size=6)
LARGE = 1 + 3 * V


def cosine(x: Array, y: Array) -> Array:
    return np.asarray((x * y).sum(1) / np.sqrt((x**2).sum(1) * (y**2).sum(1)))


def distance(x: Array, y: Array, p: float = 2) -> Array:
    return np.asarray(np.linalg.norm(x - y + 1e-6, p, axis=1))


def log_softmax(x: Array) -> Array:
    return np.asarray(x - np.log(np.exp(x).sum(1, keepdims=True)))


def huber(size: Array, delta: float) -> Array:
    return np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))


# name, options, inputs, the loss of each
CASES: list[tuple[str, dict[str, Any], tuple[Array, ...], Callable[..., Array]]] = [
    ("MSELoss", {}, (X, Y), lambda x, y: (x - y) ** 2),
    ("L1Loss", {}, (X, Y), lambda x, y: abs(x - y)),
    ("HuberLoss", {"delta": 0.7}, (X, Y), lambda x, y: huber(abs(x - y), 0.7)),
    ("SmoothL1Loss", {"beta": 0.7}, (X, Y), lambda x, y: huber(abs(x - y), 0.7) / 0.7),
    ("CrossEntropyLoss", {}, (X, CLASSES), lambda x, t: -log_softmax(x)[range(6), t]),
    ("CrossEntropyLoss", {}, (X, U), lambda x, t: -(log_softmax(x) * t).sum(1)),
    ("NLLLoss", {}, (X, CLASSES), lambda x, t: -x[range(6), t]),
    ("BCELoss", {}, (U, V), lambda x, t: -t * np.log(x) - (1 - t) * np.log(1 - x)),
    ("BCEWithLogitsLoss", {}, (X, V), lambda x, t: np.log(1 + np.exp(x)) - t * x),
    ("KLDivLoss", {}, (X, V), lambda x, t: t * (np.log(t) - x)),
    ("KLDivLoss", {"log_target": True}, (X, Y), lambda x, t: np.exp(t) * (t - x)),
    (
        "CosineEmbeddingLoss",
        {"margin": 0.1},
        (X, Y, SIGNS),
        lambda x, y, t: np.where(t > 0, 1 - cosine(x, y), np.maximum(cosine(x, y) - 0.1, 0)),
    ),
    (
        "HingeEmbeddingLoss",
        {"margin": 0.5},
        (X[:, 0], SIGNS),
        lambda x, t: np.where(t > 0, x, np.maximum(0.5 - x, 0)),
    ),
    (
        "MarginRankingLoss",
        {"margin": 0.2},
        (X[:, 0], Y[:, 0], SIGNS),
        lambda x, y, t: np.maximum(-t * (x - y) + 0.2, 0),
    ),
    (
        "TripletMarginLoss",
        {"margin": 2.0},
        (X, Y, Z),
        lambda x, y, z: np.maximum(distance(x, y) - distance(x, z) + 2, 0),
    ),
    (
        "TripletMarginLoss",
        {"p": 1.0, "swap": True},
        (X, Y, Z),
        lambda x, y, z: np.maximum(
            distance(x, y, 1) - np.minimum(distance(x, z, 1), distance(y, z, 1)) + 1, 0
        ),
    ),
    (
        "TripletMarginWithDistanceLoss",
        {"distance_function": lambda a, b: abs(a - b).max(axis=-1)},
        (X, Y, Z),
        lambda x, y, z: np.maximum(abs(x - y).max(1) - abs(x - z).max(1) + 1, 0),
    ),
    ("PoissonNLLLoss", {}, (X, U), lambda x, t: np.exp(x) - t * x),
    (
        "PoissonNLLLoss",
        {"log_input": False, "full": True},
        (U, LARGE),
        lambda x, t: x - t * np.log(x + 1e-8) + t * np.log(t) - t + 0.5 * np.log(2 * math.pi * t),
    ),
    ("GaussianNLLLoss", {}, (X, Y, U), lambda x, y, v: 0.5 * (np.log(v) + (x - y) ** 2 / v)),
    (
        "GaussianNLLLoss",
        {"full": True},
        (X, Y, U[:, 0]),
        lambda x, y, v: 0.5 * (np.log(2 * math.pi * v[:, None]) + (x - y) ** 2 / v[:, None]),
    ),
]


def on(array: Array, dtype: Any = wg.float32) -> wg.Tensor:
    return wg.asarray(array, dtype if array.dtype.kind == "f" else wg.int32)


@pytest.mark.parametrize(("name", "options", "inputs", "formula"), CASES)
def test_formulas_and_reductions(name: str, options: dict[str, Any], inputs: Any, formula: Any) -> None:
    each = formula(*inputs)
    for reduction, expected in (("none", each), ("sum", each.sum()), ("mean", each.mean())):
        loss = getattr(nn, name)(reduction=reduction, **options)
        found = loss(*(on(array) for array in inputs))
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5, atol=1e-5)
        assert not list(loss.parameters())
    half = getattr(nn, name)(**options)(*(on(array, wg.float16) for array in inputs))
    assert half.dtype is wg.float16
    np.testing.assert_allclose(half.item(), each.mean(), rtol=1e-2)
    with pytest.raises(
        wg.ArgumentError, match=r'reduction must be one of "mean", "sum", "none".*not \'max\''
    ):
        getattr(nn, name)(reduction="max", **options)(*(on(array) for array in inputs))


def test_weights_of_classes() -> None:
    weight = np.array([1, 2, 3, 4, 5], np.float32)
    loss = nn.CrossEntropyLoss(weight, ignore_index=2, label_smoothing=0.1)
    expected = F.cross_entropy(
        on(X), on(CLASSES), wg.asarray(weight), ignore_index=2, label_smoothing=0.1
    ).item()
    assert loss(on(X), on(CLASSES)).item() == expected
    assert list(loss.state_dict()) == ["weight"]  # as PyTorch saves them
    assert loss.half().weight.dtype is wg.float16
    logits = nn.BCEWithLogitsLoss(pos_weight=[2.0] * 5)
    expected = F.binary_cross_entropy_with_logits(on(X), on(V), pos_weight=wg.full(5, 2.0)).item()
    assert logits(on(X), on(V)).item() == expected
    np.testing.assert_allclose(
        nn.NLLLoss(weight=weight)(on(X), on(CLASSES)).item(),
        -(X[range(6), CLASSES] * weight[CLASSES]).sum() / weight[CLASSES].sum(),
        rtol=1e-5,
    )
    assert nn.BCELoss(weight=wg.zeros(5))(on(U), on(V)).item() == 0


def test_a_small_variance_counts_as_eps() -> None:
    x = wg.asarray([1.0])
    found = F.gaussian_nll_loss(x, wg.zeros(1), wg.zeros(1), eps=0.5).item()
    np.testing.assert_allclose(found, 0.5 * (math.log(0.5) + 2), rtol=1e-6)
    np.testing.assert_allclose(F.gaussian_nll_loss(x, wg.zeros(1), 2.0).item(), 0.5 * (math.log(2) + 0.5))


# Distances


def test_cosine_similarity() -> None:
    np.testing.assert_allclose(nn.CosineSimilarity()(on(X), on(Y)).numpy(), cosine(X, Y), rtol=1e-5)
    along = F.cosine_similarity(on(X), on(Y[:1]), axis=0).numpy()
    np.testing.assert_allclose(along, cosine(X.T, np.repeat(Y[:1], 6, 0).T), rtol=1e-5)
    zero = wg.zeros((2, 3)).requires_grad_()
    found = F.cosine_similarity(zero, wg.ones((2, 3)))
    found.sum().backward()
    assert found.tolist() == [0.0, 0.0]
    assert zero.grad is not None
    assert np.isfinite(zero.grad.numpy()).all()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_pairwise_distance(p: float) -> None:
    found = nn.PairwiseDistance(p, keepdim=True)(on(X), on(Y))
    np.testing.assert_allclose(found.numpy(), distance(X, Y, p)[:, None], rtol=1e-5)
    assert F.pairwise_distance(on(X, wg.float16), on(Y, wg.float16), p).dtype is wg.float16


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: F.triplet_margin_loss(on(X), on(Y), on(Z), margin=0),
            wg.ArgumentError,
            "margin is a positive",
        ),
        (
            lambda: F.cosine_similarity(on(CLASSES), on(X)),
            wg.DTypeError,
            "cosine_similarity takes .* floats, not int32",
        ),
        (lambda: nn.MSELoss()(on(X), on(Y[:2])), wg.ShapeError, "mse_loss"),
        (lambda: nn.CrossEntropyLoss()(on(X), on(CLASSES[:2])), wg.ShapeError, "class indices in shape"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_targets_other_than_one_and_minus_one_are_as_in_pytorch() -> None:
    x, targets = wg.asarray([0.25, 0.25, 3.0]), wg.asarray([0.0, 2.0, 0.5])
    assert F.hinge_embedding_loss(x, targets, reduction="none").tolist() == [1.0, 1.0, 3.0]
    rows = wg.ones((3, 2))
    assert F.cosine_embedding_loss(rows, rows, targets, reduction="none").tolist() == [0.0, 0.0, 0.0]
