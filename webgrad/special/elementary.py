"""Small functions: entr, expit, logit, sinc, xlog1py, xlogy.

In: tensors of real numbers. Out: tensors of floats. 0 times a logarithm is 0.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg
from webgrad import Tensor

from .elements import floats, of_one, of_two

__all__ = ["entr", "expit", "logit", "sinc", "xlog1py", "xlogy"]


@of_one(lambda x: -1 - wg.log(x))
def entr(x: Tensor) -> Tensor:
    """-x log(x), what x adds to an entropy: 0 at 0, -inf below.

    >>> [round(each, 4) for each in wg.special.entr(wg.asarray([0.0, 0.5, -1.0])).tolist()]
    [0.0, 0.3466, -inf]
    """
    return wg.where(x == 0, 0.0, wg.where(x < 0, -math.inf, -x * wg.log(x)))


@of_two(
    lambda x, y: wg.where((x == 0) & (y <= 0), 0.0, wg.log(y)),
    lambda x, y: x / y,
)
def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """x log(y), and 0 where x is 0, unless y is NaN.

    >>> [round(each, 4) for each in wg.special.xlogy(wg.asarray([0.0, 2.0]), wg.asarray([0.0, 3.0])).tolist()]
    [0.0, 2.1972]
    """
    return wg.where((x == 0) & ~wg.isnan(y), 0.0, x * wg.log(y))


@of_two(
    lambda x, y: wg.where((x == 0) & (y <= -1), 0.0, wg.log1p(y)),
    lambda x, y: x / (y + 1),
)
def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    """x log(1 + y), and 0 where x is 0, unless y is NaN.

    >>> x, y = wg.asarray([0.0, 2.0]), wg.asarray([-1.0, 3.0])
    >>> [round(each, 4) for each in wg.special.xlog1py(x, y).tolist()]
    [0.0, 2.7726]
    """
    return wg.where((x == 0) & ~wg.isnan(y), 0.0, x * wg.log1p(y))


def logit(x: Any, /, *, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of the sigmoid; `eps` first clips x to eps … 1 - eps.

    >>> [round(each, 4) for each in wg.special.logit(wg.asarray([0.0, 0.5, 0.9])).tolist()]
    [-inf, 0.0, 2.1972]
    """
    (values,), result = floats("logit", x)
    if eps is not None:
        values = wg.clip(values, eps, 1 - eps)
    return _logit(values).astype(result, copy=False)


@of_one(lambda x: 1 / (x * (1 - x)))
def _logit(x: Tensor) -> Tensor:
    return wg.log(x / (1 - x))


def expit(x: Any, /) -> Tensor:
    """1 / (1 + exp(-x)), the sigmoid by SciPy's name.

    >>> [round(each, 4) for each in wg.special.expit(wg.asarray([0.0, 2.0])).tolist()]
    [0.5, 0.8808]
    """
    (values,), result = floats("expit", x)
    found: Tensor = wg.sigmoid(values)
    return found.astype(result, copy=False)


def _sinc_slope(x: Tensor) -> Tensor:
    turned = x * math.pi
    slope = (turned * wg.cos(turned) - wg.sin(turned)) / (turned * x)
    return wg.where(wg.abs(x) < 1e-3, x * (-math.pi * math.pi / 3), slope)


def sinc(x: Any, /) -> Tensor:
    """sin(πx) / (πx), and 1 at 0; of complex numbers too.

    >>> [round(each, 4) for each in wg.special.sinc(wg.asarray([0.0, 0.5, 1.5])).tolist()]
    [1.0, 0.6366, -0.2122]
    """
    if getattr(x, "dtype", wg.float32).kind != "c":
        return _sinc(x)
    at_zero = x == 0
    turned = wg.where(at_zero, 1.0, x) * math.pi
    return wg.where(at_zero, 1.0, wg.sin(turned) / turned)


@of_one(_sinc_slope)
def _sinc(x: Tensor) -> Tensor:
    return wg.where(x == 0, 1.0, wg.sin(x * math.pi) / (x * math.pi))
