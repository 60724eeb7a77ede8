"""The incomplete gamma functions: gammainc and gammaincc.

In: tensors of real numbers. Out: tensors of floats. What is left of the integrals when their largest value is
taken out falls from 1 without a turn, on the side where it is smaller: below the mean from 0, above it to
infinity. It is added up by the double exponential rule, whose points are one more axis.
"""

from __future__ import annotations

import math

import webgrad as wg
from webgrad import Tensor

from .elements import of_two
from .gamma import gammaln

__all__ = ["gammainc", "gammaincc"]

POINTS = {wg.float32: (40, -3.2, 4.6), wg.float64: (128, -4.0, 5.4)}  # how many, and from where to where
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)


def _density(a: Tensor, x: Tensor) -> Tensor:
    """x**a exp(-x) / gamma(a), for a from 1 on: by how far x is from a, so that large ones are as exact."""
    far = (x - a) / a
    share = 1 / a
    rest = wg.zeros_like(a)
    for each in reversed(STIRLING):
        rest = rest * share * share + each
    near = gammaln(a) - (a - 0.5) * wg.log(a) + a - 0.5 * math.log(2 * math.pi)
    stirling = wg.where(a > 8, rest * share, near)
    return wg.sqrt(a / (2 * math.pi)) * wg.exp(-a * (far - wg.log1p(far)) - stirling)


def _integral(a: Tensor, x: Tensor) -> Tensor:
    """The smaller one of the two integrals by x**a exp(-x), for a from 1 on."""
    count, low, high = POINTS[x.dtype]
    w = wg.linspace(low, high, count, dtype=x.dtype, device=x.device)
    y = wg.exp(w - wg.exp(-w))
    weight = y * (1 + wg.exp(-w)) * ((high - low) / (count - 1))
    scale = 1 / (wg.abs(x - a) + wg.sqrt(a))
    v = wg.expand_dims(scale, -1) * y
    first, second = wg.expand_dims(a, -1), wg.expand_dims(x, -1)
    side = wg.where(second < first, -1.0, 1.0)
    power = side * first * v - second * wg.expm1(side * wg.minimum(v, 80.0))
    return wg.sum(wg.exp(power) * weight, -1) * scale


def _shares(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """gammainc and gammaincc."""
    safe = wg.where((a > 0) & wg.isfinite(a), a, 1.0)
    at = wg.where((x > 0) & wg.isfinite(x), x, 1.0)
    up = safe + 1  # where the integrand begins at 0
    smaller = _density(up, at) * _integral(up, at)
    step = wg.exp(safe * wg.log(at) - at - gammaln(up))  # what gammainc loses on the way up
    below = wg.where(at < up, smaller, 1 - smaller) + step
    above = wg.where(at < up, 1 - smaller, smaller) - step
    zero, far = (x == 0) | (a == math.inf), (x == math.inf) | (a == 0)
    wrong = (a < 0) | (x < 0) | (zero & far) | (a != a) | (x != x)
    lower = wg.where(zero, 0.0, wg.where(far, 1.0, wg.clip(below, 0.0, 1.0)))
    upper = wg.where(zero, 1.0, wg.where(far, 0.0, wg.clip(above, 0.0, 1.0)))
    return wg.where(wrong, math.nan, lower), wg.where(wrong, math.nan, upper)


def _slope(a: Tensor, x: Tensor) -> Tensor:
    return wg.exp(-x + (a - 1) * wg.log(x) - gammaln(a))


@of_two(None, _slope)
def gammainc(a: Tensor, x: Tensor) -> Tensor:
    """The share of the gamma function's integral that lies below x; igamma elsewhere. Its gradient is by x.

    >>> [round(each, 4) for each in wg.special.gammainc(wg.asarray([0.5, 2.0]), 1.0).tolist()]
    [0.8427, 0.2642]
    """
    return _shares(a, x)[0]


@of_two(None, lambda a, x: -_slope(a, x))
def gammaincc(a: Tensor, x: Tensor) -> Tensor:
    """The share of the gamma function's integral that lies above x; igammac elsewhere. Its gradient is by x.

    >>> [round(each, 4) for each in wg.special.gammaincc(wg.asarray([0.5, 2.0]), 1.0).tolist()]
    [0.1573, 0.7358]
    """
    return _shares(a, x)[1]
