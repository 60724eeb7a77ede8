"""torch.nn.functional: losses and distances.

In: predictions, targets, and torch's arguments, the old ones (`size_average`, `reduce`) too. Out: one number,
or with reduction="none" one for each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import webgrad as wg

from ..binding import bind
from ..pointwise import floats
from ..promotion import matched
from ..tensor import Array
from ._reduction import reduction_of

__all__ = ["OPTIONS", "functions"]

F = wg.nn.functional

OPTIONS = {
    "$reduced": 'size_average=None, reduce=None, reduction="mean"',
    "$how": "reduction=reduction_of(size_average, reduce, reduction)",
    "$plain": 'reduction="mean"',
}
ROWS = """
[function]
mse_loss(input, target, $reduced, weight=None) = weighed(F.mse_loss, input, target, weight, $how)
l1_loss(input, target, $reduced, weight=None) = weighed(F.l1_loss, input, target, weight, $how)
huber_loss(input, target, $plain, delta=1.0, weight=None) = weighed(F.huber_loss, input, target, weight,
    reduction=reduction, delta=delta)
smooth_l1_loss(input, target, $reduced, beta=1.0) = weighed(F.smooth_l1_loss, input, target, None, $how,
    beta=beta)
kl_div(input, target, $reduced, log_target=False) = divergence(input, target, $how, log_target=log_target)
cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction="mean", label_smoothing=0.0) = F.cross_entropy(input, target, weight,
    ignore_index=ignore_index, $how, label_smoothing=label_smoothing)
nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean") =
    F.nll_loss(input, target, weight, ignore_index=ignore_index, $how)
binary_cross_entropy(input, target, weight=None, $reduced) = F.binary_cross_entropy(input, same_size(input,
    target), weight, $how)
binary_cross_entropy_with_logits(input, target, weight=None, $reduced, pos_weight=None) =
    F.binary_cross_entropy_with_logits(input, same_size(input, target), weight, $how, pos_weight=pos_weight)
poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None,
    reduction="mean") = F.poisson_nll_loss(*together(input, target), log_input, full, eps, $how)
gaussian_nll_loss(input, target, var, full=False, eps=1e-06, $plain) = F.gaussian_nll_loss(input, target, var,
    full, eps, reduction)
hinge_embedding_loss(input, target, margin=1.0, $reduced) = F.hinge_embedding_loss(floats(input), target,
    margin, $how)
margin_ranking_loss(input1, input2, target, margin=0, $reduced) =
    F.margin_ranking_loss(*together(input1, input2), target, margin, $how)
cosine_embedding_loss(input1, input2, target, margin=0, $reduced) =
    F.cosine_embedding_loss(*together(input1, input2), target, margin, $how)
triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, $reduced) =
    F.triplet_margin_loss(floats(anchor), floats(positive), floats(negative), margin, p, eps, swap, $how)
triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0,
    swap=False, $plain) = F.triplet_margin_with_distance_loss(floats(anchor), floats(positive),
    floats(negative), distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)
soft_margin_loss(input, target, $reduced) = F.soft_margin_loss(floats(input), target, $how)
multi_margin_loss(input, target, p=1, margin=1.0, weight=None, $reduced) = F.multi_margin_loss(input, target,
    p, margin, weight, $how)
multilabel_margin_loss(input, target, $reduced) = F.multilabel_margin_loss(input, target, $how)
multilabel_soft_margin_loss(input, target, weight=None, $reduced) = F.multilabel_soft_margin_loss(input,
    target, weight, $how)
ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, $plain, zero_infinity=False) =
    F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, $plain,
    ignore_index=None, label_smoothing=0.0, options=None) = F.cross_entropy(scores(input, linear_weight,
    linear_bias, target, ignore_index), target, weight, reduction=reduction, ignore_index=-100 if
    ignore_index is None else ignore_index, label_smoothing=label_smoothing)
cosine_similarity(x1, x2, dim=1, eps=1e-08) = F.cosine_similarity(*together(x1, x2), dim, eps)
pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False) = F.pairwise_distance(*together(x1, x2), p, eps,
    keepdim)
pdist(input, p=2.0) = F.pdist(input, p)
"""


def scores(x: Any, weight: Any, bias: Any, target: Any, ignore_index: int | None) -> Any:
    """Features (…, in) times a weight (classes, …, in): the classes come behind the samples."""
    if x.ndim == 1 and weight.ndim > 2:
        raise RuntimeError("expected a batch of inputs where linear_weight has more than two dimensions")
    if ignore_index is not None and target.dtype.kind == "f":
        raise RuntimeError("ignore_index is not supported for floating point target")
    found = wg.tensordot(x, weight, ((-1,), (weight.ndim - 1,)))
    return found if bias is None else found + bias


def together(first: Any, second: Any) -> tuple[Any, Any]:
    """Two tensors, promoted, as floats."""
    one, two = matched(first, second)
    return floats(one), floats(two)


def spread(name: str, x: Any, target: Any) -> tuple[Any, Any]:
    """Predictions and targets of one dtype and one shape; that they differed is said."""
    if isinstance(target, Array):
        if tuple(x.shape) != tuple(target.shape):
            warnings.warn(
                f"Using a target size ({target.shape}) that is different to the input size ({x.shape}). This "
                "will likely lead to incorrect results due to broadcasting. Please ensure they have the same "
                "size.",
                stacklevel=5,
            )
            x, target = wg.broadcast_arrays(x, target)
        x, target = matched(x, target)
    return floats(x), target


def weighed(function: Callable[..., Any], x: Any, target: Any, weight: Any, **options: Any) -> Any:
    """A loss of differences, each of them weighed where there are weights."""
    x, target = spread(function.__name__, x, target)
    if weight is None:
        return function(x, target, **options)
    reduction = options.pop("reduction")
    loss = function(x, target, reduction="none", **options) * weight
    if reduction == "mean":
        return wg.sum(loss) / wg.sum(wg.broadcast_to(weight, tuple(loss.shape)))
    return wg.sum(loss) if reduction == "sum" else loss


def divergence(x: Any, target: Any, reduction: str, log_target: bool) -> Any:
    """kl_div, whose batches may be one number."""
    x, target = (
        wg.reshape(each, (1,)) if not each.ndim and reduction == "batchmean" else each
        for each in wg.broadcast_arrays(*matched(x, target))
    )
    return F.kl_div(x, target, reduction=reduction, log_target=log_target)


def same_size(x: Any, target: Any) -> Any:
    """The target, which must have the shape of the predictions."""
    if isinstance(target, Array) and tuple(target.shape) != tuple(x.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({x.shape}) is "
            "deprecated. Please ensure they have the same size."
        )
    return target


functions = bind(ROWS, globals(), OPTIONS)
