"""Dropout: some elements or channels become zero, by chance, while training.

In: a tensor of floats and a probability. Out: one of the same shape and dtype. The masks are drawn from
webgrad.random, so they follow its seed, and a captured function draws new ones at each call.
"""

from __future__ import annotations

import math

import webgrad as wg

from .checks import check_floats

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

_SELU_FLOOR = -1.7580993408473766  # selu at minus infinity


def check_probability(name: str, p: float) -> None:
    """Raise where p is not a probability."""
    if not 0 <= p <= 1:
        raise wg.ArgumentError(f"{name}: p is the probability that an element is dropped, 0 to 1, not {p!r}")


def _checked(name: str, x: wg.Tensor, p: float) -> None:
    check_probability(name, p)
    check_floats(name, x)


@wg.pure
def _dropped(x: wg.Tensor, p: float, shape: tuple[int, ...]) -> wg.Tensor:
    """Zero where a mask of this shape says so, the others larger, so that the mean stays."""
    keep = wg.random.bernoulli(1 - p, shape, device=x.device)
    return wg.where(keep, x if p == 1 else x * (1 / (1 - p)), 0.0)


def dropout(x: wg.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> wg.Tensor:
    """Each element is zero with probability p, and else divided by 1 - p; x itself if not training.

    >>> wg.nn.functional.dropout(wg.ones(3), p=1.0).tolist()
    [0.0, 0.0, 0.0]
    """
    _checked("dropout", x, p)
    return _dropped(x, p, x.shape) if training and p else x


def _channels(name: str, x: wg.Tensor, axes: int) -> tuple[int, ...]:
    """One element for each channel: of x (N, C, …), or (C, …) without a batch."""
    if x.ndim not in (axes + 1, axes + 2):
        raise wg.ShapeError(
            f"{name} takes x (N, C, …) or (C, …) of {axes + 2} or {axes + 1} axes, not {x.shape}"
        )
    return (*x.shape[:-axes], *[1] * axes)


def dropout1d(x: wg.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> wg.Tensor:
    """`dropout` of whole channels of x (N, C, L).

    >>> wg.nn.functional.dropout1d(wg.ones((2, 3, 4)), training=False).shape
    (2, 3, 4)
    """
    _checked("dropout1d", x, p)
    shape = _channels("dropout1d", x, 1)
    return _dropped(x, p, shape) if training and p else x


def dropout2d(x: wg.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> wg.Tensor:
    """`dropout` of whole channels of x (N, C, H, W).

    >>> wg.nn.functional.dropout2d(wg.ones((2, 3, 4, 4)), training=False).sum().item()
    96.0
    """
    _checked("dropout2d", x, p)
    shape = _channels("dropout2d", x, 2)
    return _dropped(x, p, shape) if training and p else x


def dropout3d(x: wg.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> wg.Tensor:
    """`dropout` of whole channels of x (N, C, D, H, W).

    >>> wg.nn.functional.dropout3d(wg.ones((2, 3, 2, 2, 2)), p=0.0).shape
    (2, 3, 2, 2, 2)
    """
    _checked("dropout3d", x, p)
    shape = _channels("dropout3d", x, 3)
    return _dropped(x, p, shape) if training and p else x


def alpha_dropout(x: wg.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> wg.Tensor:
    """Dropout for `selu`: elements go to its floor, and all are scaled so that mean and variance stay.

    >>> wg.nn.functional.alpha_dropout(wg.ones(3), p=1.0, training=True).tolist()
    [0.0, 0.0, 0.0]
    """
    _checked("alpha_dropout", x, p)
    return _floored(x, p, x.shape) if training and p else x


def feature_alpha_dropout(
    x: wg.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> wg.Tensor:
    """`alpha_dropout` of whole channels of x (N, C, …).

    >>> wg.nn.functional.feature_alpha_dropout(wg.ones((2, 3, 4)), training=False).shape
    (2, 3, 4)
    """
    _checked("feature_alpha_dropout", x, p)
    if x.ndim < 2:
        raise wg.ShapeError(f"feature_alpha_dropout takes x (N, C, …), not {x.shape}")
    return _floored(x, p, (*x.shape[:2], *[1] * (x.ndim - 2))) if training and p else x


@wg.pure
def _floored(x: wg.Tensor, p: float, shape: tuple[int, ...]) -> wg.Tensor:
    keep = wg.random.bernoulli(1 - p, shape, device=x.device)
    if p == 1:
        return wg.where(keep, x, 0.0)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SELU_FLOOR**2))
    return wg.where(keep, x * scale, _SELU_FLOOR * scale) - _SELU_FLOOR * p * scale
