"""The error function's family, and the normal distribution's: erfcx, erfinv, ndtr, log_ndtr, ndtri.

In: tensors of real numbers. Out: tensors of floats.
"""

from __future__ import annotations

import math

import webgrad as wg
from webgrad import Tensor

from .elements import of_one
from .series import series

__all__ = ["erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

ROOT_HALF = math.sqrt(0.5)
ROOT_PI = math.sqrt(math.pi)
DENSITY = 1 / math.sqrt(2 * math.pi)  # the normal distribution's at 0


@of_one(lambda x: 2 * x * erfcx(x) - 2 / ROOT_PI)
def erfcx(x: Tensor) -> Tensor:
    """exp(x²) erfc(x), which is of an ordinary size where x is large.

    >>> [round(each, 4) for each in wg.special.erfcx(wg.asarray([0.0, 1.0, 100.0])).tolist()]
    [1.0, 0.4276, 0.0056]
    """
    size = wg.abs(x)
    right = series("erfcx", 1 - 4 / (size + 2)) / (size + 2)
    small = wg.minimum(size, 30.0)
    upper = wg.round(small * 8) / 8  # whose square is exact
    square = wg.exp(upper * upper) * wg.exp((small - upper) * (small + upper))
    return wg.where(x < 0, 2 * square - right, right)


def _quantile(x: Tensor, left: Tensor) -> Tensor:
    """erfinv(x), where `left` is 1 - x²."""
    s = wg.sqrt(-wg.log(left))
    near = x * series("erfinv", s / 3 - 1)
    low = 1 / 28
    tail = s * series("erfinv_tail", (1 / s - low) * (2 / (1 / 6 - low)) - 1)
    result = wg.where(s < 6, near, wg.copysign(tail, x))
    return wg.where(left == 0, x * math.inf, result)


@of_one(lambda x: wg.exp(wg.square(erfinv(x))) * (ROOT_PI / 2))
def erfinv(x: Tensor) -> Tensor:
    """The inverse of erf: ±inf at ±1, NaN beyond.

    >>> [round(each, 4) for each in wg.special.erfinv(wg.asarray([-1.0, 0.0, 0.5])).tolist()]
    [-inf, 0.0, 0.4769]
    """
    return _quantile(x, (1 - x) * (1 + x))


@of_one(lambda p: wg.exp(wg.square(ndtri(p)) * 0.5) / DENSITY)
def ndtri(p: Tensor) -> Tensor:
    """The normal distribution's quantile, the inverse of ndtr: ∓inf at 0 and 1, NaN beyond.

    >>> [round(each, 4) for each in wg.special.ndtri(wg.asarray([0.0, 0.025, 0.5])).tolist()]
    [-inf, -1.96, 0.0]
    """
    return _quantile(2 * p - 1, 4 * p * (1 - p)) / ROOT_HALF


@of_one(lambda x: wg.exp(wg.square(x) * -0.5) * DENSITY)
def ndtr(x: Tensor) -> Tensor:
    """The normal distribution's probability up to x.

    >>> [round(each, 4) for each in wg.special.ndtr(wg.asarray([-1.96, 0.0, 1.0])).tolist()]
    [0.025, 0.5, 0.8413]
    """
    return 0.5 * wg.erfc(x * -ROOT_HALF)


@of_one(lambda x: math.sqrt(2) / ROOT_PI / erfcx(x * -ROOT_HALF))
def log_ndtr(x: Tensor) -> Tensor:
    """The logarithm of ndtr, exact where that is small.

    >>> [round(each, 4) for each in wg.special.log_ndtr(wg.asarray([-10.0, 0.0])).tolist()]
    [-53.2313, -0.6931]
    """
    low = wg.log(erfcx(x * -ROOT_HALF) * 0.5) - wg.square(x) * 0.5
    return wg.where(x < -1, low, wg.log1p(wg.erfc(x * ROOT_HALF) * -0.5))
