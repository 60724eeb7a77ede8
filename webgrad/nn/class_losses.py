"""Losses of classes as modules: margins, several classes at once, sequences without an alignment.

In: scores and classes. Out: one number (the mean or the sum), or with reduction="none" one for each sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg

from . import functional as F
from .function_modules import Applied
from .linear import Linear
from .losses import WeightedLoss
from .module import Module

__all__ = [
    "CTCLoss",
    "LinearCrossEntropyLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
]


class SoftMarginLoss(Applied):
    """log(1 + exp(-t x)), t being 1 or -1.

    >>> round(wg.nn.SoftMarginLoss()(wg.zeros(2), wg.ones(2)).item(), 4)
    0.6931
    """

    function = staticmethod(F.soft_margin_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class MultiMarginLoss(WeightedLoss):
    """Σ max(0, margin - x[t] + x[i])^p / C over the classes i other than the target t.

    >>> wg.nn.MultiMarginLoss()(wg.asarray([[0.5, 1.0]]), wg.asarray([1])).item()
    0.25
    """

    function = staticmethod(F.multi_margin_loss)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__({"weight": weight}, p=p, margin=margin, reduction=reduction)


class MultiLabelMarginLoss(Applied):
    """Σ max(0, 1 - x[t] + x[i]) / C over the classes t of a sample and all others i.

    >>> x = wg.asarray([[0.25, 0.5, 0.0, 0.75]])
    >>> wg.nn.MultiLabelMarginLoss()(x, wg.asarray([[3, 0, -1, 1]])).item()
    0.75
    """

    function = staticmethod(F.multilabel_margin_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes of -(t log σ(x) + (1 - t) log σ(-x)).

    >>> round(wg.nn.MultiLabelSoftMarginLoss()(wg.zeros((1, 3)), wg.ones((1, 3))).item(), 4)
    0.6931
    """

    function = staticmethod(F.multilabel_soft_margin_loss)

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__({"weight": weight}, reduction=reduction)


class CTCLoss(Applied):
    """-log of the probability of all alignments of targets with log-probabilities (T, N, C).

    >>> loss = wg.nn.CTCLoss(reduction="sum")
    >>> log_probs = wg.log_softmax(wg.zeros((4, 1, 3)), axis=-1)
    >>> round(loss(log_probs, wg.asarray([[1, 2]]), [4], [2]).item(), 4)
    1.6864
    """

    function = staticmethod(F.ctc_loss)

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)


class LinearCrossEntropyLoss(Module):
    """`CrossEntropyLoss` of a linear layer's scores, with the layer inside.

    >>> wg.nn.LinearCrossEntropyLoss(3, 5)(wg.zeros((2, 3)), wg.asarray([0, 4])).shape
    ()
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: Sequence[int] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device, dtype)
        self.register_buffer("weight", weight)
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing

    def forward(self, x: wg.Tensor, target: wg.Tensor) -> wg.Tensor:
        """The loss of features x (N, in_features) beside their classes (N, *out_features)."""
        scores = self.linear(x)
        return F.cross_entropy(
            scores.reshape((*scores.shape[:-1], self.num_classes, *self.out_features)),
            target,
            self.weight,
            ignore_index=-100 if self.ignore_index is None else self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
        )
