"""Losses with margins against their formulas, class by class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.nn import functional as F

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(4, 5)).astype(np.float32)


@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(p: int) -> None:
    target, weight = [0, 4, 2, 2], RANDOM.uniform(0.5, 2, 5).astype(np.float32)
    wanted = [
        sum(weight[t] * max(0, 0.7 - row[t] + row[i]) ** p for i in range(5) if i != t) / 5
        for row, t in zip(X, target, strict=True)
    ]
    found = F.multi_margin_loss(wg.asarray(X), wg.asarray(target), p, 0.7, wg.asarray(weight), "none")
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)


def test_multilabel_margin_loss_reads_classes_up_to_the_first_that_is_none() -> None:
    targets = [[3, 0, -1, 1, 1], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4], [2, 2, -1, 0, 0]]
    wanted = []
    for row, target in zip(X, targets, strict=True):
        own = target[: target.index(-1)] if -1 in target else target
        others = [i for i in range(5) if i not in own]
        wanted.append(sum(max(0, 1 - row[t] + row[i]) for t in own for i in others) / 5)
    found = F.multilabel_margin_loss(wg.asarray(X), wg.asarray(targets), "none").numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_soft_margins() -> None:
    signs = np.sign(RANDOM.normal(size=(4, 5))).astype(np.float32)
    found = F.soft_margin_loss(wg.asarray(X * 50), wg.asarray(signs), "none").numpy()
    np.testing.assert_allclose(found, np.logaddexp(0, -signs * X * 50), rtol=1e-5, atol=1e-6)
    marks = (signs > 0).astype(np.float32)
    each = marks * np.logaddexp(0, -X) + (1 - marks) * np.logaddexp(0, X)
    found = F.multilabel_soft_margin_loss(wg.asarray(X), wg.asarray(marks), reduction="sum").item()
    np.testing.assert_allclose(found, each.mean(-1).sum(), rtol=1e-5)


def test_pdist_is_the_distance_of_each_pair() -> None:
    wanted = [np.abs(X[i] - X[j]).max() for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose(F.pdist(wg.asarray(X), float("inf")).numpy(), wanted, rtol=1e-5)
    same: Any = wg.zeros((2, 3)).requires_grad_()
    F.pdist(same).sum().backward()
    assert not same.grad.numpy().any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.multi_margin_loss(x, wg.asarray([0, 1])), "takes scores"),
        (lambda x: F.multi_margin_loss(x, wg.asarray([0] * 4), p=3), "p is 1 or 2"),
        (lambda x: F.multilabel_margin_loss(x, wg.asarray([[0]])), "takes scores"),
        (lambda x: F.soft_margin_loss(x, x, "most"), "reduction must be one of"),
        (lambda x: F.pdist(x[0]), "takes rows"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(wg.asarray(X))
