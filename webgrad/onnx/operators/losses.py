"""Losses of classes along axis 1."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .table import Call, operator

_NOWHERE = -(1 << 30)  # a class that no label has


@operator("NegativeLogLikelihoodLoss", 12)
def negative_log_likelihood(
    log_probabilities: Any,
    labels: Any,
    weight: Any = None,
    *,
    ignore_index: int = _NOWHERE,
    reduction: str = "mean",
) -> Any:
    return wg.nll_loss(log_probabilities, labels, weight, ignore_index=ignore_index, reduction=reduction)


@operator("SoftmaxCrossEntropyLoss", 12)
def softmax_cross_entropy(
    scores: Any,
    labels: Any,
    weights: Any = None,
    *,
    ignore_index: int = _NOWHERE,
    reduction: str = "mean",
    call: Call,
) -> Any:
    loss = wg.cross_entropy(scores, labels, weights, ignore_index=ignore_index, reduction=reduction)
    return loss if call.outputs < 2 else (loss, wg.log_softmax(scores, axis=1))
