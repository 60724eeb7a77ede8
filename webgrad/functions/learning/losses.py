"""Losses: how far predictions are from targets; PyTorch's names, arguments and results.

In: predictions and targets as tensors. Out: one number (the mean or the sum), or with reduction="none" one
for each target. 16-bit floats are computed in float32 and rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...dtypes import DType
from ...errors import ArgumentError, DeviceError, DTypeError, ShapeError
from ...gradients.own import own_gradient
from ...ops import primitives
from ...ops.shapes import broadcast, check_kind
from ...tensor import Tensor
from ..array.creation import as_tensor
from ..array.elementwise import abs as absolute
from ..array.elementwise import clip, exp, log, log1p, where
from ..array.reductions import average, converted, floating, fold, shift_of
from ..pure import pure
from .activations import log_of_sigmoid

_REDUCTIONS: dict[str, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    "mean": average,
    "sum": lambda loss, axes: fold("sum", loss, axes),
    "none": lambda loss, axes: loss,
}


def _check_reduction(op: str, reduction: str, *more: str) -> None:
    if reduction not in (*_REDUCTIONS, *more):
        names = ", ".join(f'"{each}"' for each in (*_REDUCTIONS, *more))
        raise ArgumentError(f"{op}: reduction must be one of {names}, not {reduction!r}")


def _reduced(loss: Tensor, reduction: str, dtype: DType) -> Tensor:
    """One number from the losses, or the losses themselves, in the dtype of the predictions."""
    return converted(_REDUCTIONS[reduction](loss, tuple(range(loss.ndim))), dtype)


# Classes


@pure
def cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """-log softmax(logits) at the target's classes; classes are along axis 1, of one sample along axis 0.

    The target holds class indices, or probabilities in the shape of the logits. The loss of a class index
    out of range, other than `ignore_index`, is NaN: an error would have to wait for the values.

    >>> round(wg.cross_entropy(wg.zeros((2, 4)), wg.asarray([0, 3])).item(), 4)
    1.3863
    """
    op = "cross_entropy"
    _check_reduction(op, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"{op}: label_smoothing must be between 0 and 1, not {label_smoothing}")
    logits, target = as_tensor(op, logits), as_tensor(op, target)
    axis = _class_axis(op, logits)
    wide = floating(op, logits)
    largest = shift_of(wide, (axis,))
    total = log(fold("sum", exp(wide - largest), (axis,), keepdims=True))
    weights = _class_weights(op, weight, logits, axis)
    if target.dtype.kind == "f":
        loss = _expected(op, total - (wide - largest), target, weights, axis, label_smoothing)
        return _reduced(loss, reduction, logits.dtype)
    labels = _labels(op, wide, target, weights, axis, ignore_index)
    loss = labels.loss(total - (labels.picked(wide, axis) - largest))
    if label_smoothing:
        costs = total - (wide - largest)
        evenly = labels.kept(fold("sum", costs if weights is None else costs * weights, (axis,)))
        loss = loss * (1 - label_smoothing) + evenly * (label_smoothing / logits.shape[axis])
    return labels.reduced(loss, reduction, logits.dtype)


@pure
def nll_loss(
    log_probabilities: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probabilities of the target's classes; classes are along axis 1.

    >>> wg.nll_loss(wg.asarray([[-1.0, -2.0], [-3.0, -4.0]]), wg.asarray([0, 1])).item()
    2.5
    """
    op = "nll_loss"
    _check_reduction(op, reduction)
    scores, target = as_tensor(op, log_probabilities), as_tensor(op, target)
    axis = _class_axis(op, scores)
    wide = floating(op, scores)
    labels = _labels(op, wide, target, _class_weights(op, weight, scores, axis), axis, ignore_index)
    return labels.reduced(labels.loss(-labels.picked(wide, axis)), reduction, scores.dtype)


def _class_axis(op: str, scores: Tensor) -> int:
    if scores.ndim == 0:
        raise ShapeError(
            f"{op}: one number is not a score of classes; predictions are (classes,) or (samples, classes, …)"
        )
    axis = min(scores.ndim - 1, 1)
    if scores.shape[axis] == 0:
        raise ShapeError(f"{op}: predictions of shape {scores.shape} have no classes along axis {axis}")
    return axis


def _class_weights(op: str, weight: Any, scores: Tensor, axis: int) -> Tensor | None:
    """One weight per class, in a shape that broadcasts with the scores."""
    if weight is None:
        return None
    weight = as_tensor(op, weight)
    if weight.shape != (scores.shape[axis],):
        raise ShapeError(
            f"{op}: weight must have one number per class, shape {(scores.shape[axis],)}, not {weight.shape}"
        )
    shape = (weight.size, *[1] * (scores.ndim - axis - 1))
    return Tensor(primitives.reshape(floating(f"{op} (its weight)", weight).node, shape))


@dataclass(frozen=True, slots=True)
class _Labels:
    """Class indices as losses need them. None: every target counts, or counts once."""

    index: Tensor  # ignored ones are 0
    classes: int
    valid: Tensor | None  # which of them count
    weight: Tensor | None  # of each one's class

    def picked(self, scores: Tensor, axis: int) -> Tensor:
        """The score of each target's class, with a class axis of size 1."""
        shape = self.index.shape
        along = primitives.reshape(self.index.node, (*shape[:axis], 1, *shape[axis:]))
        return Tensor(primitives.take_along(scores.node, along, axis))

    def kept(self, values: Tensor) -> Tensor:
        """0 where a target is ignored."""
        return values if self.valid is None else where(self.valid, values, 0.0)

    def loss(self, costs: Tensor) -> Tensor:
        """Each target's cost times its weight, without the class axis."""
        flat = Tensor(primitives.reshape(costs.node, self.index.shape))
        for outside in self._outside():
            flat = where(outside, math.nan, flat)
        return self.kept(flat if self.weight is None else flat * self.weight)

    def _outside(self) -> Iterator[Tensor]:
        """Masks of targets out of range; an unsigned one, say, is never below 0."""
        low, high = self.index.dtype.limits
        if low < 0:
            yield self.index < 0
        if self.classes <= high:
            yield self.index >= self.classes

    def reduced(self, loss: Tensor, reduction: str, dtype: DType) -> Tensor:
        """The loss reduced to one number, or not; the mean weighs each target."""
        if reduction != "mean" or (self.valid is None and self.weight is None):
            return _reduced(loss, reduction, dtype)
        axes = tuple(range(loss.ndim))
        if self.weight is not None:
            counted = self.kept(self.weight)
        else:
            assert self.valid is not None
            counted = converted(self.valid, loss.dtype)
        return converted(fold("sum", loss, axes) / fold("sum", counted, axes), dtype)


def _labels(
    op: str, scores: Tensor, target: Tensor, weights: Tensor | None, axis: int, ignore_index: int
) -> _Labels:
    shape = (*scores.shape[:axis], *scores.shape[axis + 1 :])
    if target.shape != shape:
        raise ShapeError(
            f"{op}: the target of predictions of shape {scores.shape}, whose classes are along axis {axis}, "
            f"must hold class indices in shape {shape}, not {target.dtype.name} in shape {target.shape}"
        )
    check_kind(f"{op} (its target)", "iu", target.dtype)
    if target.device is not scores.device:
        raise DeviceError(
            f"{op}: the predictions are on {scores.device.name}, the target on {target.device.name}: "
            f"move one with x.to_device({scores.device.name!r})"
        )
    low, high = target.dtype.limits
    # An unsigned target, say, is never -100.
    valid = target != ignore_index if low <= ignore_index <= high else None
    index = target if valid is None else where(valid, target, 0)
    if weights is None:
        return _Labels(index, scores.shape[axis], valid, None)
    flat = primitives.reshape(weights.node, (weights.size,))
    return _Labels(index, scores.shape[axis], valid, Tensor(primitives.take(flat, index.node, 0)))


def _expected(
    op: str, costs: Tensor, target: Tensor, weights: Tensor | None, axis: int, label_smoothing: float
) -> Tensor:
    """The expected cost under the target's probabilities."""
    if target.shape != costs.shape:
        raise ShapeError(
            f"{op}: a target of {target.dtype.name} must hold probabilities in the shape of the predictions, "
            f"{costs.shape}; it has shape {target.shape}. Class indices are integers"
        )
    shares = floating(op, target)
    if label_smoothing:
        shares = shares * (1 - label_smoothing) + label_smoothing / costs.shape[axis]
    weighted = costs * shares
    return fold("sum", weighted if weights is None else weighted * weights, (axis,))


# Regression


def _compared(
    op: str, prediction: Any, target: Any, reduction: str, *more: str, kinds: str = "f"
) -> tuple[Tensor, Any, DType]:
    """Both in the dtype to compute in, and the dtype of the result. A number may stand for the target."""
    _check_reduction(op, reduction, *more)
    prediction = as_tensor(op, prediction)
    if isinstance(target, (bool, int, float)):
        return floating(op, prediction, kinds), float(target), prediction.dtype
    target = as_tensor(op, target)
    if target.shape != prediction.shape:
        raise ShapeError(
            f"{op}: predictions of shape {prediction.shape} and a target of shape {target.shape}; they must "
            "be equal: reshape one, or use broadcast_to"
        )
    wide = floating(op, prediction, kinds)
    same = converted(target, wide.dtype) if target.dtype.kind not in kinds else floating(op, target, kinds)
    return wide, same, prediction.dtype


@pure
def mse_loss(prediction: Tensor, target: Any, *, reduction: str = "mean") -> Tensor:
    """The squared difference.

    >>> wg.mse_loss(wg.asarray([1.0, 2.0]), wg.asarray([1.0, 4.0])).item()
    2.0
    """
    x, y, dtype = _compared("mse_loss", prediction, target, reduction)
    difference = x - y
    return _reduced(difference * difference, reduction, dtype)


@pure
def l1_loss(prediction: Tensor, target: Any, *, reduction: str = "mean") -> Tensor:
    """The absolute difference.

    >>> wg.l1_loss(wg.asarray([1.0, 2.0]), wg.asarray([1.0, 4.0])).item()
    1.0
    """
    x, y, dtype = _compared("l1_loss", prediction, target, reduction, kinds="fc")
    apart = absolute(x - y)
    return _reduced(apart, reduction, apart.dtype if dtype.kind == "c" else dtype)


@pure
def huber_loss(prediction: Tensor, target: Any, *, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half the squared difference up to `delta`, from there on a line of slope delta.

    >>> wg.huber_loss(wg.asarray([0.0, 0.0]), wg.asarray([1.0, 3.0]), reduction="none").tolist()
    [0.5, 2.5]
    """
    x, y, dtype = _compared("huber_loss", prediction, target, reduction)
    if delta <= 0:
        raise ArgumentError(f"huber_loss: delta must be a positive number, not {delta}")
    return _reduced(_parabola_then_line(x - y, delta), reduction, dtype)


def _parabola_then_line(x: Tensor, bound: float) -> Tensor:
    """½ x² up to a bound, from there on its tangent. With x in bounds as a factor no branch is infinite."""
    inside = clip(x, -bound, bound)
    return inside * (x - inside * 0.5)


@pure
def smooth_l1_loss(prediction: Tensor, target: Any, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The absolute difference, with a parabola below `beta`; with a beta of 0 `l1_loss`.

    >>> wg.smooth_l1_loss(wg.asarray([0.0, 0.0]), wg.asarray([1.0, 3.0]), reduction="none").tolist()
    [0.5, 2.5]
    """
    x, y, dtype = _compared("smooth_l1_loss", prediction, target, reduction)
    if beta < 0:
        raise ArgumentError(f"smooth_l1_loss: beta must be 0 or more, not {beta}")
    loss = absolute(x - y) if beta == 0 else _parabola_then_line(x - y, beta) / beta
    return _reduced(loss, reduction, dtype)


# Probabilities


@pure
def binary_cross_entropy_with_logits(
    logits: Tensor,
    target: Any,
    weight: Tensor | None = None,
    *,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))); `pos_weight` multiplies the first term.

    >>> round(wg.binary_cross_entropy_with_logits(wg.zeros(3), wg.ones(3)).item(), 4)
    0.6931
    """
    op = "binary_cross_entropy_with_logits"
    x, t, dtype = _compared(op, logits, target, reduction)
    missed = -log_of_sigmoid(x)
    if pos_weight is not None:
        missed = missed * ((_broadcastable(op, "pos_weight", pos_weight, x) - 1.0) * t + 1.0)
    return _reduced(_weighted(op, (1.0 - t) * x + missed, weight), reduction, dtype)


@pure
def binary_cross_entropy(
    probabilities: Tensor, target: Any, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """-(t log p + (1 - t) log(1 - p)), each logarithm clamped to -100; p is between 0 and 1.

    >>> round(wg.binary_cross_entropy(wg.asarray([0.5]), wg.asarray([1.0])).item(), 4)
    0.6931
    """
    op = "binary_cross_entropy"
    p, t, dtype = _compared(op, probabilities, target, reduction)
    own, less = Tensor(p.node), -p
    loss = (t - 1.0) * _logarithm(log1p, less, lambda: less + 1.0) - t * _logarithm(log, own, lambda: own)
    return _reduced(_weighted(op, loss, weight), reduction, dtype)


def _logarithm(function: Callable[[Tensor], Tensor], x: Tensor, argument: Callable[[], Tensor]) -> Tensor:
    """A logarithm no less than -100, whose slope is 1 / argument, no steeper than 1e12, as in PyTorch."""
    return own_gradient(lambda: clip(function(x), min=-100.0), (x, lambda g: g / clip(argument(), min=1e-12)))


def _broadcastable(op: str, name: str, value: Any, x: Tensor) -> Tensor:
    value = as_tensor(op, value)
    if broadcast(f"{op} (its {name})", [value.shape, x.shape]) != x.shape:
        raise ShapeError(
            f"{op}: {name} of shape {value.shape} must broadcast to the predictions' shape {x.shape}"
        )
    return floating(f"{op} (its {name})", value)


def _weighted(op: str, loss: Tensor, weight: Any) -> Tensor:
    return loss if weight is None else loss * _broadcastable(op, "weight", weight, loss)


@pure
def kl_div(
    log_probabilities: Tensor, target: Any, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """t (log t - x): how far the distribution exp(x) is from t. "batchmean" is the sum over the batch's size.

    >>> wg.kl_div(wg.asarray([[0.0, -1.0]]), wg.asarray([[1.0, 0.0]]), reduction="batchmean").item()
    0.0
    """
    x, t, dtype = _compared("kl_div", log_probabilities, target, reduction, "batchmean")
    if not isinstance(t, Tensor):
        raise DTypeError("kl_div: the target is a tensor of probabilities, not a number")
    if log_target:
        loss = exp(t) * (t - x)
    else:
        loss = t * log(where(t == 0.0, 1.0, t)) - t * x  # 0 log 0 is 0
    if reduction == "batchmean":
        if x.ndim == 0:
            raise ShapeError(
                'kl_div: reduction="batchmean" needs a batch along axis 0, and one number has none'
            )
        return converted(fold("sum", loss, tuple(range(x.ndim))) / x.shape[0], dtype)
    return _reduced(loss, reduction, dtype)
