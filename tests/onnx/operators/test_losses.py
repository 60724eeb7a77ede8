"""Losses of classes against their formulas."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.onnx.operators.single import run, run_one

GENERATOR = np.random.default_rng(10)


def expected_of(scores: Any, labels: Any, weights: Any, ignored: int | None, reduction: str) -> Any:
    """Of the logarithms of probabilities along axis 1."""
    picked = -np.take_along_axis(scores, np.clip(labels, 0, 4)[:, None], 1)[:, 0]
    each = np.ones(5) if weights is None else weights
    factors = each[np.clip(labels, 0, 4)] * (1.0 if ignored is None else labels != ignored)
    loss = picked * factors
    if reduction == "none":
        return loss
    return loss.sum() / factors.sum() if reduction == "mean" else loss.sum()


@pytest.mark.parametrize(
    ("behind", "weighted", "ignored", "reduction"),
    list(itertools.product([(), (2, 3)], [False, True], [None, 2, -1], ["none", "mean", "sum"])),
)
def test_losses(behind: tuple[int, ...], weighted: bool, ignored: int | None, reduction: str) -> None:
    scores = GENERATOR.standard_normal((4, 5, *behind), np.float32)
    labels = GENERATOR.integers(0, 5, (4, *behind))
    labels.flat[0] = 2 if ignored is None else ignored
    weights = np.abs(GENERATOR.standard_normal(5, np.float32)) + 0.1 if weighted else None
    settings: dict[str, Any] = {"reduction": reduction}
    settings |= {} if ignored is None else {"ignore_index": ignored}
    logs = scores - np.log(np.exp(scores.astype(np.float64)).sum(1, keepdims=True))
    loss, shown = run("SoftmaxCrossEntropyLoss", scores, labels, weights, outputs=2, **settings)
    np.testing.assert_allclose(loss, expected_of(logs, labels, weights, ignored, reduction), 1e-4, 1e-5)
    np.testing.assert_allclose(shown, logs, 1e-4, 1e-5)
    plain = run_one("NegativeLogLikelihoodLoss", scores, labels, weights, **settings)
    np.testing.assert_allclose(plain, expected_of(scores, labels, weights, ignored, reduction), 1e-4, 1e-5)
