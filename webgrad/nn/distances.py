"""Distances between vectors, and the losses that are made of them or of likelihoods; PyTorch's names.

In: tensors of floats. Out: one number for each pair (of losses their mean, unless told otherwise). 16-bit
floats are computed in float32 and rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg

from .checks import check_floats

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "pairwise_distance",
    "pdist",
    "poisson_nll_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

_REDUCTIONS: dict[str, Callable[[wg.Tensor], wg.Tensor]] = {
    "mean": wg.mean,
    "sum": wg.sum,
    "none": lambda loss: loss,
}


_LEAST_SQUARE = 1e-12  # added to squares of lengths in cosine_embedding_loss, as in PyTorch


def wide_floats(name: str, *tensors: wg.Tensor) -> list[wg.Tensor]:
    """Tensors of floats in the dtype that their loss is computed in."""
    for each in tensors:
        check_floats(name, each)
    return [each.astype(each.dtype.wide, copy=False) for each in tensors]


def _vectors(name: str, *tensors: wg.Tensor) -> list[wg.Tensor]:
    """The same, where complex numbers will do."""
    return [each if each.dtype.kind == "c" else wide_floats(name, each)[0] for each in tensors]


def check_reduction(name: str, reduction: str) -> None:
    """Raise where a reduction is none."""
    if reduction not in _REDUCTIONS:
        names = ", ".join(f'"{each}"' for each in _REDUCTIONS)
        raise wg.ArgumentError(f"{name}: reduction must be one of {names}, not {reduction!r}")


def reduced(name: str, loss: wg.Tensor, reduction: str, like: wg.Tensor) -> wg.Tensor:
    """The mean or the sum of a loss, or the loss itself, in the dtype of its input."""
    check_reduction(name, reduction)
    found = _REDUCTIONS[reduction](loss)
    return found if like.dtype.kind == "c" else found.astype(like.dtype, copy=False)


# Distances


@wg.pure
def cosine_similarity(x1: wg.Tensor, x2: wg.Tensor, axis: int = 1, eps: float = 1e-8) -> wg.Tensor:
    """The cosine of the angle between vectors along an axis: x₁·x₂ / (|x₁| |x₂|), no norm less than eps.

    >>> wg.nn.functional.cosine_similarity(wg.asarray([[3.0, 4.0]]), wg.asarray([[4.0, 3.0]])).tolist()
    [0.9599999785423279]
    """
    pair = wg.broadcast_arrays(*wide_floats("cosine_similarity", x1, x2))
    a, b = pair
    # The root of what is never 0, for the gradient's sake
    lengths = [wg.sqrt(wg.clip((each * each).sum(axis=axis), min=eps * eps)) for each in pair]
    return ((a * b).sum(axis=axis) / (lengths[0] * lengths[1])).astype(x1.dtype, copy=False)


def pdist(x: wg.Tensor, p: float = 2.0) -> wg.Tensor:
    """The distance of every pair of rows of x (n, d), the first before the second: n (n - 1) / 2 p-norms.

    >>> wg.nn.functional.pdist(wg.asarray([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    (wide,) = wide_floats("pdist", x)
    if x.ndim != 2:
        raise wg.ShapeError(f"pdist takes rows (n, d), not {x.shape}")
    if p < 0:
        raise wg.ArgumentError(f"pdist: p is 0 or more, not {p!r}")
    first, second = wg.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    apart = wg.take(wide, first, axis=0) - wg.take(wide, second, axis=0)
    return wg.vector_norm(apart, axis=-1, ord=p).astype(x.dtype, copy=False)


@wg.pure
def pairwise_distance(
    x1: wg.Tensor, x2: wg.Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> wg.Tensor:
    """The p-norm of x₁ - x₂ + eps along the last axis.

    >>> wg.nn.functional.pairwise_distance(wg.asarray([[3.0, 4.0]]), wg.zeros((1, 2)), eps=0.0).tolist()
    [5.0]
    """
    a, b = _vectors("pairwise_distance", x1, x2)
    found = wg.vector_norm(a - b + eps, axis=-1, ord=p, keepdims=keepdim)
    return found if x1.dtype.kind == "c" else found.astype(x1.dtype, copy=False)


# Losses of distances


@wg.pure
def cosine_embedding_loss(
    x1: wg.Tensor, x2: wg.Tensor, target: wg.Tensor, margin: float = 0.0, reduction: str = "mean"
) -> wg.Tensor:
    """1 - cos(x₁, x₂) where the target is 1; max(0, cos(x₁, x₂) - margin) where it is -1; else 0.

    >>> x = wg.asarray([[1.0, 0.0]])
    >>> round(wg.nn.functional.cosine_embedding_loss(x, x, wg.asarray([-1])).item(), 4)
    1.0
    """
    a, b = wide_floats("cosine_embedding_loss", x1, x2)
    squares = [(each * each).sum(axis=-1) + _LEAST_SQUARE for each in (a, b)]
    cosine = (a * b).sum(axis=-1) / wg.sqrt(squares[0] * squares[1])
    apart = wg.where(target == -1, wg.clip(cosine - margin, min=0.0), 0.0)
    loss = wg.where(target == 1, 1.0 - cosine, apart)
    return reduced("cosine_embedding_loss", loss, reduction, x1)


@wg.pure
def hinge_embedding_loss(
    x: wg.Tensor, target: wg.Tensor, margin: float = 1.0, reduction: str = "mean"
) -> wg.Tensor:
    """x where the target is 1; max(0, margin - x) where it is -1; for other targets both, as in PyTorch.

    >>> x = wg.asarray([0.25, 0.25])
    >>> wg.nn.functional.hinge_embedding_loss(x, wg.asarray([1, -1]), reduction="none").tolist()
    [0.25, 0.75]
    """
    (wide,) = wide_floats("hinge_embedding_loss", x)
    near = wg.where(target == -1, 0.0, wide)
    loss = near + wg.where(target == 1, 0.0, wg.clip(margin - wide, min=0.0))
    return reduced("hinge_embedding_loss", loss, reduction, x)


@wg.pure
def margin_ranking_loss(
    x1: wg.Tensor, x2: wg.Tensor, target: wg.Tensor, margin: float = 0.0, reduction: str = "mean"
) -> wg.Tensor:
    """max(0, -t (x₁ - x₂) + margin): with a target t of 1 the first should be larger, with -1 the second.

    >>> one, two = wg.asarray([1.0]), wg.asarray([2.0])
    >>> wg.nn.functional.margin_ranking_loss(one, two, wg.asarray([1.0])).item()
    1.0
    """
    a, b = wide_floats("margin_ranking_loss", x1, x2)
    loss = wg.clip((b - a) * target + margin, min=0.0)
    return reduced("margin_ranking_loss", loss, reduction, x1)


@wg.pure
def triplet_margin_loss(
    anchor: wg.Tensor,
    positive: wg.Tensor,
    negative: wg.Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> wg.Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d being `pairwise_distance`.

    >>> a, n = wg.zeros((1, 2)), wg.asarray([[3.0, 4.0]])
    >>> wg.nn.functional.triplet_margin_loss(a, a, n, margin=6.0, eps=0.0).item()
    1.0
    """
    wide = _vectors("triplet_margin_loss", anchor, positive, negative)
    loss = _triplets(wide, margin, swap, lambda a, b: pairwise_distance(a, b, p, eps))
    return reduced("triplet_margin_loss", loss, reduction, anchor)


def triplet_margin_with_distance_loss(
    anchor: wg.Tensor,
    positive: wg.Tensor,
    negative: wg.Tensor,
    *,
    distance_function: Callable[[wg.Tensor, wg.Tensor], wg.Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> wg.Tensor:
    """`triplet_margin_loss` by a distance of the user's own.

    >>> near, far = wg.zeros((1, 2)), wg.full((1, 2), 0.25)
    >>> distance = lambda a, b: wg.abs(a - b).sum(axis=-1)
    >>> F = wg.nn.functional
    >>> F.triplet_margin_with_distance_loss(near, near, far, distance_function=distance).item()
    0.5
    """
    wide = _vectors("triplet_margin_with_distance_loss", anchor, positive, negative)
    loss = _triplets(wide, margin, swap, distance_function or pairwise_distance)
    return reduced("triplet_margin_with_distance_loss", loss, reduction, anchor)


def _triplets(
    tensors: Sequence[wg.Tensor],
    margin: float,
    swap: bool,
    distance: Callable[[wg.Tensor, wg.Tensor], wg.Tensor],
) -> wg.Tensor:
    if margin <= 0:
        raise wg.ArgumentError(f"triplet_margin_loss: the margin is a positive number, not {margin}")
    anchor, positive, negative = tensors
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:  # the positive may be nearer to the negative than the anchor is
        far = wg.minimum(far, distance(positive, negative))
    return wg.clip(near - far + margin, min=0.0)


# Losses of likelihoods


@wg.pure
def poisson_nll_loss(
    x: wg.Tensor,
    target: wg.Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> wg.Tensor:
    """exp(x) - t x, or x - t log(x + eps) if x is not a logarithm; `full` adds Stirling's term where t > 1.

    >>> wg.nn.functional.poisson_nll_loss(wg.zeros(2), wg.ones(2)).item()
    1.0
    """
    wide, t = wide_floats("poisson_nll_loss", x, target)
    loss = wg.exp(wide) - t * wide if log_input else wide - t * wg.log(wide + eps)
    if full:
        large = wg.maximum(t, 1.0)
        stirling = large * wg.log(large) - large + 0.5 * wg.log(2 * math.pi * large)
        loss = loss + wg.where(t > 1, stirling, 0.0)
    return reduced("poisson_nll_loss", loss, reduction, x)


@wg.pure
def gaussian_nll_loss(
    x: wg.Tensor,
    target: wg.Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> wg.Tensor:
    """½ (log v + (x - t)² / v), v being max(var, eps); `full` adds ½ log 2π.

    >>> wg.nn.functional.gaussian_nll_loss(wg.zeros(2), wg.ones(2), wg.ones(2)).item()
    0.5
    """
    wide, t = wide_floats("gaussian_nll_loss", x, target)
    if isinstance(var, wg.Tensor):
        (variance,) = wide_floats("gaussian_nll_loss", var)
        if variance.ndim == wide.ndim - 1 and variance.shape == wide.shape[:-1]:
            variance = variance.reshape((*variance.shape, 1))
    else:
        variance = wg.full_like(wide, float(var))
    # A variance below eps is eps, with the gradient of the variance itself, as in PyTorch.
    kept = variance + (wg.maximum(variance, eps) - variance).detach()
    loss = 0.5 * (wg.log(kept) + wg.square(wide - t) / kept)
    return reduced("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction, x)
