"""Numbers by rejection and by inversion: gamma, Poisson and binomial draws from uniform and normal ones.

In: parameters as float tensors, a generator's uniform and normal numbers. Out: lazy tensors. Where an
algorithm would try until a proposal is accepted, a fixed number of proposals is drawn along a first axis, and
the first accepted one taken: nothing is read, and that none of them is accepted has a chance below 1e-7.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Protocol

from ..gradients.autograd import custom_gradient
from ..special.gamma import digamma, gammaln
from ..tensor import Tensor
from .array import elementwise, maps, reductions
from .array.creation import arange, asarray
from .array.reshaping import broadcast_to, reshape
from .array.scans import cumsum

__all__ = ["Draws", "binomial", "log_gamma", "poisson"]

_TRIES = {"gamma": 6, "poisson": 14, "binomial": 14}
_FEW = 10.0  # the mean up to which counts are looked up in their cumulated probabilities, …
_COUNTED = 44  # … and how many of these there are
_EXACT = 16  # up to which logarithms of factorials are computed as such
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
_NODES, _REACH = 32, 18.0  # of the quadrature for gamma numbers' slopes: how many, and how far they go


class Draws(Protocol):
    """What is asked of a generator."""

    uniform: Callable[..., Tensor]
    normal: Callable[..., Tensor]


def poisson(draws: Draws, mean: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Counts of events of which `mean` are expected; NaN where it is negative."""
    few = elementwise.clip(mean, None, _FEW)
    places = _along_first(_COUNTED, len(sizes), mean)
    logs = places * maps.log(elementwise.clip(few, 1e-30, None)) - few - _log_factorials(places)
    counted = _looked_up(draws, maps.exp(logs), sizes)
    large = elementwise.clip(mean, _FEW, None)
    root = maps.sqrt(large)
    slope = 0.931 + 2.53 * root
    width = -0.059 + 0.02483 * slope
    scale = 1.1239 + 1.1328 / (slope - 3.4)
    limit = 0.9277 - 3.6224 / (slope - 2)
    tried = _proposed(draws, "poisson", sizes, slope, width, large + 0.43, limit)
    chance = _log_poisson(tried.count, large)
    accepted = tried.at_once | (tried.height(scale) <= chance) & (tried.count >= 0)
    many = _first(accepted & tried.possible, tried.count, maps.floor(large))
    found = elementwise.where(mean <= _FEW, counted, many)
    return elementwise.where(mean >= 0, found, math.nan)


def binomial(draws: Draws, n: Tensor, chance: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """How many of n trials succeed; NaN for what is no chance or no number of trials."""
    q = elementwise.where(chance > 0.5, 1 - chance, chance)
    is_few = n * q <= _FEW
    counted = elementwise.clip(_counted_trials(draws, n, elementwise.where(is_few, q, 0.0), sizes), None, n)
    many = _many_trials(draws, elementwise.where(is_few, 40.0, n), elementwise.where(is_few, 0.5, q), sizes)
    found = elementwise.where(is_few, counted, many)
    found = elementwise.where(chance > 0.5, n - found, found)
    return elementwise.where((q >= 0) & (n >= 0), found, math.nan)


def _counted_trials(draws: Draws, n: Tensor, q: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Binomial counts by cumulated probabilities, each of which is its predecessor times a ratio."""
    places = _along_first(_COUNTED, len(sizes), n)
    ratios = (n - places + 1) / elementwise.clip(places, 1.0, None) * (q / (1 - q))
    ratios = elementwise.where(places == 0, 1.0, elementwise.clip(ratios, 1e-30, None))
    logs = cumsum(broadcast_to(maps.log(ratios), (_COUNTED, *sizes)), axis=0)
    return _looked_up(draws, maps.exp(n * maps.log1p(-q) + logs), sizes)


def _many_trials(draws: Draws, n: Tensor, q: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Hörmann's transformed rejection."""
    spread = maps.sqrt(n * q * (1 - q))
    slope = 1.15 + 2.53 * spread
    width = -0.0873 + 0.0248 * slope + 0.01 * q
    limit = 0.92 - 4.2 / slope
    tried = _proposed(draws, "binomial", sizes, slope, width, n * q + 0.5, limit)
    top = maps.floor((n + 1) * q)
    inside = (tried.count >= 0) & (tried.count <= n)
    chance = _log_binomial(elementwise.clip(tried.count, 0.0, n), n, q) - _log_binomial(top, n, q)
    height = tried.height((2.83 + 5.1 / slope) * spread)
    return _first(inside & (tried.at_once | (height <= chance)), tried.count, top)


def _looked_up(draws: Draws, chances: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """How many cumulated chances along the first axis a uniform number is not below."""
    unit = draws.uniform(sizes, dtype=chances.dtype, device=chances.device)
    cumulated = cumsum(broadcast_to(chances, (chances.shape[0], *sizes)), axis=0)
    return reductions.sum((unit >= cumulated).astype(chances.dtype), axis=0)


def _proposed(
    draws: Draws, op: str, sizes: tuple[int, ...], slope: Tensor, width: Tensor, centre: Tensor, limit: Tensor
) -> _Proposals:
    every = (_TRIES[op], *sizes)
    unit = draws.uniform(every, dtype=slope.dtype, device=slope.device) - 0.5
    other = draws.uniform(every, dtype=slope.dtype, device=slope.device)
    return _Proposals(unit, other, slope, width, centre, limit)


def log_gamma(draws: Draws, alpha: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Logarithms of gamma numbers, which go as far below 0 as small concentrations need."""

    @custom_gradient
    def draw(alpha: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        logs = _log_gamma_numbers(draws, alpha.detach(), sizes)
        return logs, lambda gradient: gradient * _slope_of_log_gamma(alpha.detach(), logs.detach())

    logs: Tensor = draw(broadcast_to(alpha, sizes))
    return logs


def _log_gamma_numbers(draws: Draws, alpha: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Marsaglia and Tsang's squeeze of a cubed normal number; below 1 by a number of one more."""
    every, where = (_TRIES["gamma"], *sizes), {"dtype": alpha.dtype, "device": alpha.device}
    is_small = alpha < 1
    d = elementwise.where(is_small, alpha + 1, alpha) - 1 / 3
    normal = draws.normal(every, **where)
    cubed = (1 + normal / maps.sqrt(9 * d)) ** 3
    logs = maps.log(elementwise.clip(cubed, 1e-30, None))
    unit = maps.log(1 - draws.uniform(every, **where))
    accepted = (cubed > 0) & (unit < 0.5 * normal * normal + d * (1 - cubed + logs))
    found = maps.log(d) + _first(accepted, logs, 0.0)
    less = maps.log(1 - draws.uniform(sizes, **where)) / alpha
    found = elementwise.where(is_small, found + less, found)
    return elementwise.where(alpha >= 0, found, math.nan)


class _Proposals:
    """Proposals of Hörmann's transformed rejection: from a hat function over a table mountain."""

    def __init__(
        self, unit: Tensor, other: Tensor, slope: Tensor, width: Tensor, centre: Tensor, limit: Tensor
    ) -> None:
        inner = 0.5 - abs(unit)
        self.other, self.hat = other, width / (inner * inner) + slope
        self.count = maps.floor((2 * width / inner + slope) * unit + centre)
        self.at_once = (inner >= 0.07) & (other <= limit)
        self.possible = (inner >= 0.013) | (other <= inner)

    def height(self, scale: Tensor) -> Tensor:
        """The logarithm of a height under the hat, which is to be below that of the chance."""
        return maps.log(self.other * scale / self.hat)


def _along_first(count: int, rank: int, like: Tensor) -> Tensor:
    """The numbers below a count along a new first axis of `rank` others."""
    return reshape(arange(count, dtype=like.dtype, device=like.device), (count, *[1] * rank))


def _first(accepted: Tensor, values: Tensor, otherwise: Any) -> Tensor:
    """Along the first axis the value that is accepted first."""
    count = values.shape[0]
    places = _along_first(count, values.ndim - 1, values)
    first = reductions.min(elementwise.where(accepted, places, float(count)), axis=0)
    found = reductions.sum(elementwise.where(places == first, values, 0.0), axis=0)
    return elementwise.where(first == count, otherwise, found)


# Logarithms of probabilities, as sums of small terms: differences of large ones would lose their digits


def _log_factorials(x: Tensor) -> Tensor:
    return gammaln(x + 1)


def _stirling(x: Tensor) -> Tensor:
    """What Stirling's formula lacks of the logarithm of x!, for x from 1."""
    small, inverse = elementwise.clip(x, None, _EXACT), 1 / elementwise.clip(x, _EXACT, None)
    exact = _log_factorials(small) - (small + 0.5) * maps.log(small) + small - _HALF_LOG_2_PI
    return elementwise.where(x < _EXACT, exact, inverse / 12 - inverse**3 / 360)


def _deviance(x: Tensor, mean: Tensor) -> Tensor:
    """x log(x / mean) + mean - x."""
    part = (x - mean) / mean
    return mean * ((1 + part) * maps.log1p(part) - part)


def _log_poisson(x: Tensor, mean: Tensor) -> Tensor:
    """The logarithm of the chance of a count where `mean` are expected."""
    some = elementwise.clip(x, 1.0, None)
    found = -_stirling(some) - _deviance(some, mean) - 0.5 * maps.log(some) - _HALF_LOG_2_PI
    return elementwise.where(x < 1, -mean, found)


def _log_binomial(x: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """The logarithm of the chance of x successes in n trials."""
    some = elementwise.clip(x, 1.0, n - 1)
    rest = n - some
    tails = _stirling(n) - _stirling(some) - _stirling(rest)
    shape = 0.5 * maps.log(n / (some * rest)) - _HALF_LOG_2_PI
    found = tails - _deviance(some, n * p) - _deviance(rest, n * (1 - p)) + shape
    found = elementwise.where(x < 1, n * maps.log1p(-p), found)
    return elementwise.where(x > n - 1, n * maps.log(p), found)


# How a gamma number changes with its concentration


@functools.cache
def _quadrature() -> tuple[list[float], list[float]]:
    """Places from 0 to `_REACH`, close to each other near 0, and weights, by Gauss and Legendre's method."""
    places, weights = [], []
    for at in range(_NODES):
        x = math.cos(math.pi * (at + 0.75) / (_NODES + 0.5))
        for _ in range(8):  # Newton's method, on Legendre's polynomial
            last, value = 1.0, x
            for degree in range(2, _NODES + 1):
                last, value = value, ((2 * degree - 1) * x * value - (degree - 1) * last) / degree
            slope = _NODES * (x * value - last) / (x * x - 1)
            x -= value / slope
        half = (x + 1) / 2
        places.append(_REACH * half * half)
        weights.append(2 * _REACH * half / ((1 - x * x) * slope * slope))
    return places, weights


def _slope_of_log_gamma(alpha: Tensor, logs: Tensor) -> Tensor:
    """The derivative of log x by the concentration, at a fixed value of the cumulative distribution.

    It is the integral of p(t) (log t - digamma(alpha)) over the side of x on which there is less, by x p(x).
    With t = x exp(-u) (or exp(u) above x) the integrand falls smoothly over a length that is known. For small
    concentrations it falls over two lengths; there the longer part is integrated by its formula.
    """
    alpha = broadcast_to(alpha, logs.shape)
    x = maps.exp(logs)
    is_small = (alpha < 1) & (x < 1)
    sign = elementwise.where(is_small | (x < alpha), 1.0, -1.0)
    gap = abs(alpha - x)
    length = elementwise.where(is_small, 1.0, 2 / (gap + maps.sqrt(gap * gap + 2 * x)))
    steps, weights = (
        reshape(asarray(each, alpha.dtype, device=alpha.device), (_NODES, *[1] * alpha.ndim))
        for each in _quadrature()
    )
    u = length * steps
    turned = sign * u
    falling = maps.exp(-alpha * turned - x * maps.expm1(-turned))
    rest = maps.exp(x - alpha * u) * maps.expm1(-x * maps.exp(-u))
    height = elementwise.where(is_small, rest, falling) * (logs - digamma(alpha) - turned)
    total = length * reductions.sum(height * weights, axis=0)
    apart = maps.exp(x) * (logs - digamma(alpha + 1)) / alpha
    return -sign * (total + elementwise.where(is_small, apart, 0.0))
