"""Losses as modules, by PyTorch's names: how far predictions are from targets.

In: predictions and targets. Out: one number (the mean or the sum), or with reduction="none" one for each.
Weights of classes are buffers, so that they move with the module and are saved, as PyTorch does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import webgrad as wg

from . import functional as F
from .function_modules import Applied

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "NLLLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class WeightedLoss(Applied):
    """A loss with tensors beside its options."""

    tensors: ClassVar[tuple[str, ...]] = ("weight",)

    def __init__(self, tensors: dict[str, Any], **options: Any) -> None:
        super().__init__(**options)
        for name, value in tensors.items():
            tensor = value if value is None or isinstance(value, wg.Tensor) else wg.asarray(value)
            self.register_buffer(name, tensor)

    def forward(self, x: wg.Tensor, target: Any) -> Any:
        """The loss of predictions x beside their targets."""
        options = {name: getattr(self, name) for name in (*self._options, *self.tensors)}
        return type(self).function(x, target, **options)


class MSELoss(Applied):
    """(x - t)².

    >>> wg.nn.MSELoss()(wg.asarray([1.0, 2.0]), wg.asarray([1.0, 4.0])).item()
    2.0
    """

    function = staticmethod(F.mse_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class L1Loss(Applied):
    """|x - t|.

    >>> wg.nn.L1Loss()(wg.asarray([1.0, 2.0]), wg.asarray([1.0, 4.0])).item()
    1.0
    """

    function = staticmethod(F.l1_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class SmoothL1Loss(Applied):
    """½ (x - t)² / beta below beta, else |x - t| - ½ beta.

    >>> wg.nn.SmoothL1Loss()(wg.asarray([1.0, 2.0]), wg.asarray([1.0, 4.0])).item()
    0.75
    """

    function = staticmethod(F.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction, beta=beta)


class HuberLoss(Applied):
    """½ (x - t)² up to delta, from there on delta (|x - t| - ½ delta).

    >>> wg.nn.HuberLoss()(wg.asarray([1.0, 2.0]), wg.asarray([1.0, 4.0])).item()
    0.75
    """

    function = staticmethod(F.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class CrossEntropyLoss(WeightedLoss):
    """-log softmax(x) at the target's classes, which lie along axis 1; or by the target's probabilities.

    >>> round(wg.nn.CrossEntropyLoss()(wg.zeros((2, 4)), wg.asarray([0, 3])).item(), 4)
    1.3863
    """

    function = staticmethod(F.cross_entropy)

    def __init__(
        self,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            {"weight": weight},
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
        )


class NLLLoss(WeightedLoss):
    """-x at the target's classes, which lie along axis 1; x are logarithms of probabilities.

    >>> wg.nn.NLLLoss()(wg.asarray([[-1.0, -2.0], [-3.0, -4.0]]), wg.asarray([0, 1])).item()
    2.5
    """

    function = staticmethod(F.nll_loss)

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__({"weight": weight}, ignore_index=ignore_index, reduction=reduction)


class BCELoss(WeightedLoss):
    """-(t log x + (1 - t) log(1 - x)), each logarithm no less than -100.

    >>> round(wg.nn.BCELoss()(wg.asarray([0.5]), wg.asarray([1.0])).item(), 4)
    0.6931
    """

    function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__({"weight": weight}, reduction=reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """-(pos_weight · t log σ(x) + (1 - t) log(1 - σ(x))), σ being the sigmoid.

    >>> round(wg.nn.BCEWithLogitsLoss()(wg.zeros(3), wg.ones(3)).item(), 4)
    0.6931
    """

    function = staticmethod(F.binary_cross_entropy_with_logits)
    tensors = ("weight", "pos_weight")

    def __init__(self, weight: Any = None, *, pos_weight: Any = None, reduction: str = "mean") -> None:
        super().__init__({"weight": weight, "pos_weight": pos_weight}, reduction=reduction)


class KLDivLoss(Applied):
    """t (log t - x): how far exp(x) is from t. reduction="batchmean" is the mathematical one.

    >>> wg.nn.KLDivLoss(reduction="batchmean")(wg.asarray([[0.0, -1.0]]), wg.asarray([[1.0, 0.0]])).item()
    0.0
    """

    function = staticmethod(F.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)


class CosineEmbeddingLoss(Applied):
    """1 - cos(x₁, x₂) where the target is 1; max(0, cos(x₁, x₂) - margin) where it is -1.

    >>> x = wg.asarray([[1.0, 0.0]])
    >>> round(wg.nn.CosineEmbeddingLoss()(x, x, wg.asarray([-1])).item(), 4)
    1.0
    """

    function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class HingeEmbeddingLoss(Applied):
    """x where the target is 1; max(0, margin - x) where it is -1.

    >>> wg.nn.HingeEmbeddingLoss()(wg.asarray([0.25, 0.25]), wg.asarray([1, -1])).item()
    0.5
    """

    function = staticmethod(F.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class MarginRankingLoss(Applied):
    """max(0, -t (x₁ - x₂) + margin).

    >>> wg.nn.MarginRankingLoss()(wg.asarray([1.0]), wg.asarray([2.0]), wg.asarray([1.0])).item()
    1.0
    """

    function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class TripletMarginLoss(Applied):
    """max(0, |anchor - positive| - |anchor - negative| + margin), by p-norms.

    >>> a, n = wg.zeros((1, 2)), wg.asarray([[3.0, 4.0]])
    >>> wg.nn.TripletMarginLoss(margin=6.0, eps=0.0)(a, a, n).item()
    1.0
    """

    function = staticmethod(F.triplet_margin_loss)

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)


class PoissonNLLLoss(Applied):
    """exp(x) - t x; or x - t log(x + eps) if x is not a logarithm.

    >>> wg.nn.PoissonNLLLoss()(wg.zeros(2), wg.ones(2)).item()
    1.0
    """

    function = staticmethod(F.poisson_nll_loss)

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(log_input=log_input, full=full, eps=eps, reduction=reduction)


class GaussianNLLLoss(Applied):
    """½ (log v + (x - t)² / v), v being a variance, no less than eps.

    >>> wg.nn.GaussianNLLLoss()(wg.zeros(2), wg.ones(2), wg.ones(2)).item()
    0.5
    """

    function = staticmethod(F.gaussian_nll_loss)

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(full=full, eps=eps, reduction=reduction)


class TripletMarginWithDistanceLoss(Applied):
    """`TripletMarginLoss` by a distance of the user's own.

    >>> loss = wg.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: abs(a - b).sum(axis=-1))
    >>> loss(wg.zeros((1, 2)), wg.zeros((1, 2)), wg.ones((1, 2))).item()
    0.0
    """

    function = staticmethod(F.triplet_margin_with_distance_loss)

    def __init__(
        self,
        *,
        distance_function: Callable[[wg.Tensor, wg.Tensor], wg.Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)


class CosineSimilarity(Applied):
    """x₁·x₂ / (|x₁| |x₂|) along dim.

    >>> wg.nn.CosineSimilarity()(wg.asarray([[2.0, 0.0]]), wg.asarray([[4.0, 0.0]])).tolist()
    [1.0]
    """

    function = staticmethod(F.cosine_similarity)

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__(dim=dim, eps=eps)


class PairwiseDistance(Applied):
    """The p-norm of x₁ - x₂ + eps along the last axis.

    >>> wg.nn.PairwiseDistance(eps=0.0)(wg.asarray([[3.0, 4.0]]), wg.zeros((1, 2))).tolist()
    [5.0]
    """

    function = staticmethod(F.pairwise_distance)

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__(p=p, eps=eps, keepdim=keepdim)
