"""The gamma function's family: gammaln, digamma, polygamma, zeta, multigammaln, betaln.

In: tensors of real numbers. Out: tensors of floats. Numbers below 0 go through the reflection formulas.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg
from webgrad import Tensor

from .elements import floats, of_one, of_two
from .series import far, series

__all__ = ["betaln", "digamma", "gammaln", "multigammaln", "polygamma", "zeta"]

ROOT, ROOT_REST = 1.4616321325302124, 1.243814982893e-08  # digamma's, as a float32 and what it lacks
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
DIRECT = 10  # terms of a zeta function that are added up before Euler and Maclaurin's formula
BERNOULLI = tuple(  # Bernoulli's numbers by the factorials of their places
    number / math.factorial(2 * at + 2)
    for at, number in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
    )
)
MOST_TERMS = 4096  # below 0 a zeta function is added up term by term


def _raised(x: Tensor, limit: float) -> Tensor:
    """Where the functions are looked up: 1 - x below 0, x + 1 up to `limit`, else x."""
    return wg.where(x < 0, 1 - x, wg.where(x < limit, x + 1, x))


def _part(x: Tensor) -> Tensor:
    """What is after the point, from -1/2 to 1/2."""
    return x - wg.round(x)


@of_one(lambda x: digamma(x))
def gammaln(x: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function; lgamma elsewhere.

    >>> [round(each, 4) for each in wg.special.gammaln(wg.asarray([0.5, 3.0, 5.0])).tolist()]
    [0.5724, 0.6931, 3.1781]
    """
    z = _raised(x, 0.5)
    near = (z - 1) * (z - 2) * series("lgamma", (z - 2) / (z + 2) * (5 / 3))
    beyond = (z - 0.5) * (wg.log(z) - 1) + (HALF_LOG_2_PI - 0.5) + series("lgamma_tail", far(8, z)) / z
    core = wg.where(z < 8, near, beyond)
    reflected = math.log(math.pi) - wg.log(wg.abs(wg.sin(_part(x) * math.pi))) - core
    result = wg.where(x < 0, reflected, wg.where(x < 0.5, core - wg.log(x), core))
    return wg.where(wg.isinf(x), math.inf, result)


@of_one(lambda x: polygamma(1, x))
def digamma(x: Tensor) -> Tensor:
    """The derivative of gammaln; -inf at 0, inf at -0.0, NaN at whole numbers below.

    >>> [round(each, 4) for each in wg.special.digamma(wg.asarray([0.5, 1.0, 5.0])).tolist()]
    [-1.9635, -0.5772, 1.5061]
    """
    z = _raised(x, 1.0)
    near = (z - ROOT - ROOT_REST) * series("digamma", (z - 3) / (z + 3) * 2)
    beyond = wg.log(z) - 0.5 / z + series("digamma_tail", far(9, z)) / (z * z)
    core = wg.where(z < 9, near, beyond)
    part = _part(x)
    reflected = wg.where(part == 0, math.nan, core - math.pi / wg.tan(part * math.pi))
    return wg.where(x < 0, reflected, wg.where(x < 1, core - 1 / x, core))


def polygamma(n: int, x: Any, /) -> Tensor:
    """The n-th derivative of digamma, for whole numbers n from 0.

    >>> [round(each, 4) for each in wg.special.polygamma(1, wg.asarray([0.5, 1.0, 5.0])).tolist()]
    [4.9348, 1.6449, 0.2213]
    """
    if n < 0:
        raise wg.ArgumentError(f"special.polygamma: n is a whole number from 0, not {n!r}")
    if n == 0:
        return digamma(x)
    (values,), result = floats("polygamma", x)
    found: Tensor = _polygamma(n, values)
    return found.astype(result, copy=False)


@wg.custom_gradient
def _polygamma(n: int, x: Tensor) -> Any:
    with wg.no_grad():
        sign = 1.0 if n % 2 else -1.0
        right = sign * math.factorial(n) * _hurwitz(float(n + 1), wg.where(x > 0, x, 1 - x))
        part = _part(x)
        left = -math.pi * _cotangent_derivative(n, 1 / wg.tan(part * math.pi)) - sign * right
        left = wg.where(part == 0, sign * math.inf, left)
        value = wg.where(x <= 0, left, right)
    return value, lambda g: g * polygamma(n + 1, x)


def _cotangent_derivative(n: int, cotangent: Tensor) -> Tensor:
    """The n-th derivative of cot(πx), a polynomial of the cotangent."""
    powers = [0.0, 1.0]
    for _ in range(n):
        slopes = [at * each * -math.pi for at, each in enumerate(powers)][1:]  # by the cotangent, times -π
        powers = [
            (slopes[at] if at < len(slopes) else 0.0) + (slopes[at - 2] if at >= 2 else 0.0)
            for at in range(len(slopes) + 2)
        ]
    result = wg.full_like(cotangent, powers[-1])
    for each in reversed(powers[:-1]):
        result = result * cotangent + each
    return result


def _hurwitz(s: Any, q: Tensor, direct: int = DIRECT) -> Tensor:
    """The sum of (q + k)**-s over all k from 0, for q above -direct and s above 1."""
    total = q**-s
    for k in range(1, direct):
        total = total + (q + k) ** -s
    a = q + direct
    share = 1 / a
    square = share * share
    rest = wg.zeros_like(a)
    for at in reversed(range(len(BERNOULLI))):
        rest = rest * square * ((s + 2 * at + 1) * (s + 2 * at + 2)) + BERNOULLI[at]
    result: Tensor = total + a ** (1 - s) / (s - 1) + a**-s * (0.5 + rest * share * s)
    return result


@of_two(None, lambda s, q: -s * zeta(s + 1, q))
def zeta(s: Tensor, q: Tensor) -> Tensor:
    """Hurwitz' zeta function, the sum of (q + k)**-s over all k from 0; inf at s = 1, NaN below.

    Where q is a whole number up to 0 it is infinite, and at others below 0 a number if s is whole. It has a
    gradient by q. How many terms there are is known when q is: it is read.

    >>> [round(each, 4) for each in wg.special.zeta(wg.asarray([2.0, 3.0]), 1.0).tolist()]
    [1.6449, 1.2021]
    """
    least = wg.min(wg.where(wg.isfinite(q), q, 1.0)).item() if q.numel() else 0.0
    if least < -MOST_TERMS:
        raise wg.ArgumentError(f"special.zeta: q is {least}, and the least that is added up is {-MOST_TERMS}")
    direct = DIRECT + max(0, math.ceil(-least))
    value = _hurwitz(s, q, direct)
    value = wg.where((q < 0) & (wg.round(s) != s), math.nan, value)
    value = wg.where((q <= 0) & (wg.round(q) == q), math.inf, value)
    value = wg.where(s < 1, math.nan, value)
    return wg.where(s == 1, math.inf, value)


def multigammaln(x: Any, d: int, /) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension d; mvlgamma elsewhere.

    >>> round(wg.special.multigammaln(wg.asarray(3.0), 2).item(), 4)
    1.5502
    """
    if d < 1:
        raise wg.ArgumentError(f"special.multigammaln: the dimension is a whole number from 1, not {d!r}")
    (values,), result = floats("multigammaln", x)
    total = wg.zeros_like(values) + d * (d - 1) / 4 * math.log(math.pi)
    for at in range(d):
        total = total + gammaln(values - at / 2)
    return total.astype(result, copy=False)


def betaln(a: Any, b: Any, /) -> Tensor:
    """The logarithm of the absolute value of the beta function.

    >>> round(wg.special.betaln(wg.asarray(2.0), 3.0).item(), 4)
    -2.4849
    """
    (first, second), result = floats("betaln", a, b)
    return (gammaln(first) + gammaln(second) - gammaln(first + second)).astype(result, copy=False)
