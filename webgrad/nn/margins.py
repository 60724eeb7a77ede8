"""Losses with margins, over one class or several; PyTorch's names, arguments and results.

In: scores (N, C) or (C,), and classes as integers, or marks of every class. Out: one number (the mean or the
sum), or with reduction="none" one for each sample.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .distances import check_reduction, reduced, wide_floats

__all__ = [
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
]


def soft_margin_loss(x: wg.Tensor, target: wg.Tensor, reduction: str = "mean") -> wg.Tensor:
    """log(1 + exp(-t x)), t being 1 or -1.

    >>> round(wg.nn.functional.soft_margin_loss(wg.zeros(2), wg.ones(2)).item(), 4)
    0.6931
    """
    (wide,) = wide_floats("soft_margin_loss", x)
    return reduced("soft_margin_loss", wg.softplus(-(wide * target), 1.0, 1e30), reduction, x)


def multi_margin_loss(
    x: wg.Tensor,
    target: wg.Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: wg.Tensor | None = None,
    reduction: str = "mean",
) -> wg.Tensor:
    """Σ max(0, margin - x[t] + x[i])^p / C over the classes i other than the target t of scores (N, C).

    >>> wg.nn.functional.multi_margin_loss(wg.asarray([[0.5, 1.0]]), wg.asarray([1])).item()
    0.25
    """
    op = "multi_margin_loss"
    check_reduction(op, reduction)
    (wide,) = wide_floats(op, x)
    if not x.ndim:  # one sample of one class
        x, wide = wg.unsqueeze(x, 0), wg.unsqueeze(wide, 0)
    if x.ndim > 2 or target.shape not in (x.shape[:-1], (1,) if x.ndim == 1 else x.shape[:-1]):
        raise wg.ShapeError(f"{op} takes scores (N, C) and classes (N,), not {x.shape} and {target.shape}")
    if p not in (1, 2):
        raise wg.ArgumentError(f"{op}: p is 1 or 2, not {p!r}")
    classes = x.shape[-1]
    if weight is not None and weight.shape != (classes,):
        raise wg.ShapeError(f"{op}: weight has one number for each of {classes} classes, not {weight.shape}")
    index = target.reshape((*x.shape[:-1], 1))
    missed = wg.clip(margin - wg.take_along_axis(wide, index, -1) + wide, min=0.0) ** p
    if weight is not None:
        missed = missed * wg.take(weight, index, axis=0)
    others = wg.arange(classes, device=x.device) != index
    loss = wg.where(others, missed, 0.0).sum(axis=-1) / classes
    return reduced(op, loss, reduction, x)


def multilabel_margin_loss(x: wg.Tensor, target: wg.Tensor, reduction: str = "mean") -> wg.Tensor:
    """Σ max(0, 1 - x[t] + x[i]) / C over the classes t of a sample and all others i.

    The target has the scores' shape: the classes of each sample, and behind them -1.

    >>> x = wg.asarray([[0.25, 0.5, 0.0, 0.75]])
    >>> wg.nn.functional.multilabel_margin_loss(x, wg.asarray([[3, 0, -1, 1]])).item()
    0.75
    """
    op = "multilabel_margin_loss"
    check_reduction(op, reduction)
    (wide,) = wide_floats(op, x)
    if not x.ndim:
        x, wide, target = (each.reshape((1,)) for each in (x, wide, target))
    if x.ndim > 2 or target.shape != x.shape:
        raise wg.ShapeError(
            f"{op} takes scores (N, C) and classes (N, C), -1 behind them, not {x.shape} and {target.shape}"
        )
    classes = x.shape[-1]
    named = wg.cumsum((target < 0).astype(wg.int32), -1) == 0  # those before the first -1
    index = wg.where(named, target, 0)
    marks = wg.arange(classes, device=x.device)
    is_own = (wg.unsqueeze(named, -1) & (wg.unsqueeze(index, -1) == marks)).any(axis=-2)
    gaps = 1.0 - wg.unsqueeze(wg.take_along_axis(wide, index, -1), -1) + wg.unsqueeze(wide, -2)
    counted = wg.unsqueeze(named, -1) & ~wg.unsqueeze(is_own, -2)
    loss = wg.where(counted, wg.clip(gaps, min=0.0), 0.0).sum(axis=(-2, -1)) / classes
    return reduced(op, loss, reduction, x)


def multilabel_soft_margin_loss(
    x: wg.Tensor, target: wg.Tensor, weight: Any = None, reduction: str = "mean"
) -> wg.Tensor:
    """The mean over classes of -(t log σ(x) + (1 - t) log σ(-x)), t being 1 or 0 for every class.

    >>> round(wg.nn.functional.multilabel_soft_margin_loss(wg.zeros((1, 3)), wg.ones((1, 3))).item(), 4)
    0.6931
    """
    op = "multilabel_soft_margin_loss"
    (wide,) = wide_floats(op, x)
    each = -(target * wg.logsigmoid(wide) + (1 - target) * wg.logsigmoid(-wide))
    if weight is not None:
        each = each * weight
    return reduced(op, each.mean(axis=-1), reduction, x)
