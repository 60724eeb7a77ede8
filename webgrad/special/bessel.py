"""Bessel functions of order 0 and 1, and Airy's.

In: tensors of real numbers. Out: tensors of floats. Each has a series for small numbers and one for what is
left of it far away when its wave, or its exponential, is taken out.
"""

from __future__ import annotations

import math

import webgrad as wg
from webgrad import Tensor

from .elements import of_one
from .series import far, series

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
]

TWO_BY_PI = 2 / math.pi
AIRY_FROM, AIRY_TO = 16 / 3, 2 / 3 * 2**1.5  # 2/3 |x|^1.5 where its middle series begins and ends


# Modified functions of the first kind


@of_one(lambda x: i1e(x) - wg.sign(x) * i0e(x))
def i0e(x: Tensor) -> Tensor:
    """exp(-|x|) i0(x).

    >>> [round(each, 4) for each in wg.special.i0e(wg.asarray([0.0, 1.0, 100.0])).tolist()]
    [1.0, 0.4658, 0.0399]
    """
    size = wg.abs(x)
    return wg.where(size < 8, series("i0e", size / 4 - 1), series("i0e_tail", 16 / size - 1) / wg.sqrt(size))


@of_one(lambda x: wg.where(x == 0, 0.5, i0e(x) - i1e(x) * (wg.sign(x) + 1 / x)))
def i1e(x: Tensor) -> Tensor:
    """exp(-|x|) i1(x).

    >>> [round(each, 4) for each in wg.special.i1e(wg.asarray([0.0, 1.0, -100.0])).tolist()]
    [0.0, 0.2079, -0.0397]
    """
    size = wg.abs(x)
    tail = series("i1e_tail", 16 / size - 1) / wg.sqrt(size)
    return wg.where(size < 8, x * series("i1e", size / 4 - 1), wg.copysign(tail, x))


def _grown(scaled: Tensor, x: Tensor) -> Tensor:
    """exp(|x|) times what was scaled, in two steps, since the exponential may be out of range."""
    half = wg.exp(wg.abs(x) * 0.5)
    return wg.where(wg.isinf(x), wg.copysign(math.inf, scaled), half * scaled * half)


@of_one(lambda x: i1(x))
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    >>> [round(each, 4) for each in wg.special.i0(wg.asarray([0.0, 1.0, 5.0])).tolist()]
    [1.0, 1.2661, 27.2399]
    """
    return _grown(i0e(x), x)


@of_one(lambda x: wg.where(x == 0, 0.5, i0(x) - i1(x) / x))
def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1.

    >>> [round(each, 4) for each in wg.special.i1(wg.asarray([0.0, 1.0, -5.0])).tolist()]
    [0.0, 0.5652, -24.3356]
    """
    return _grown(i1e(x), x)


# Modified functions of the second kind


def _k0_near(x: Tensor) -> Tensor:
    return series("k0", x * x * 0.5 - 1) - wg.log(x * 0.5) * i0(x)


def _k1_near(x: Tensor) -> Tensor:
    value = series("k1", x * x * 0.5 - 1) / x + wg.log(x * 0.5) * i1(x)
    return wg.where(x == 0, math.inf, value)


def _k_far(name: str, x: Tensor) -> Tensor:
    return series(name, 4 / x - 1) / wg.sqrt(x)


@of_one(lambda x: -modified_bessel_k1(x))
def modified_bessel_k0(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 0: inf at 0, NaN below.

    >>> [round(each, 4) for each in wg.special.modified_bessel_k0(wg.asarray([0.5, 3.0])).tolist()]
    [0.9244, 0.0347]
    """
    return wg.where(x > 2, _k_far("k0e_tail", x) * wg.exp(-x), _k0_near(x))


@of_one(lambda x: -modified_bessel_k0(x) - modified_bessel_k1(x) / x)
def modified_bessel_k1(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 1: inf at 0, NaN below.

    >>> [round(each, 4) for each in wg.special.modified_bessel_k1(wg.asarray([0.5, 3.0])).tolist()]
    [1.6564, 0.0402]
    """
    return wg.where(x > 2, _k_far("k1e_tail", x) * wg.exp(-x), _k1_near(x))


@of_one(lambda x: scaled_modified_bessel_k0(x) - scaled_modified_bessel_k1(x))
def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    """exp(x) modified_bessel_k0(x).

    >>> [round(each, 4) for each in wg.special.scaled_modified_bessel_k0(wg.asarray([0.5, 100.0])).tolist()]
    [1.5241, 0.1252]
    """
    return wg.where(x > 2, _k_far("k0e_tail", x), _k0_near(x) * wg.exp(x))


@of_one(lambda x: scaled_modified_bessel_k1(x) * (1 - 1 / x) - scaled_modified_bessel_k0(x))
def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    """exp(x) modified_bessel_k1(x).

    >>> [round(each, 4) for each in wg.special.scaled_modified_bessel_k1(wg.asarray([0.5, 100.0])).tolist()]
    [2.731, 0.1258]
    """
    return wg.where(x > 2, _k_far("k1e_tail", x), _k1_near(x) * wg.exp(x))


# Functions of the first and second kind


def _waves(order: int, size: Tensor) -> tuple[Tensor, Tensor]:
    """J and Y of that order far away."""
    sine, cosine = wg.sin(size), wg.cos(size)
    turned = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
    t = far(8, size)
    cosines, sines = series(f"j{order}_cosine", t), series(f"j{order}_sine", t) / size
    scale = wg.sqrt(1 / (math.pi * size))  # the angle's cosine and sine have a factor sqrt(2)
    return (
        scale * (cosines * turned[0] - sines * turned[1]),
        scale * (cosines * turned[1] + sines * turned[0]),
    )


@of_one(lambda x: -bessel_j1(x))
def bessel_j0(x: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 0.

    >>> [round(each, 4) for each in wg.special.bessel_j0(wg.asarray([0.0, 1.0, 20.0])).tolist()]
    [1.0, 0.7652, 0.167]
    """
    size = wg.abs(x)
    return wg.where(size < 8, series("j0", x * x / 32 - 1), _waves(0, size)[0])


@of_one(lambda x: wg.where(x == 0, 0.5, bessel_j0(x) - bessel_j1(x) / x))
def bessel_j1(x: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 1.

    >>> [round(each, 4) for each in wg.special.bessel_j1(wg.asarray([0.0, 1.0, 20.0])).tolist()]
    [0.0, 0.4401, 0.0668]
    """
    size = wg.abs(x)
    wave = _waves(1, size)[0]
    return wg.where(size < 8, x * series("j1", x * x / 32 - 1), wg.where(x < 0, -wave, wave))


@of_one(lambda x: -bessel_y1(x))
def bessel_y0(x: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 0: -inf at 0, NaN below.

    >>> [round(each, 4) for each in wg.special.bessel_y0(wg.asarray([0.5, 1.0, 20.0])).tolist()]
    [-0.4445, 0.0883, 0.0626]
    """
    near = series("y0", x * x / 32 - 1) + TWO_BY_PI * wg.log(x) * bessel_j0(x)
    return wg.where(x < 0, math.nan, wg.where(x < 8, near, _waves(0, x)[1]))


@of_one(lambda x: bessel_y0(x) - bessel_y1(x) / x)
def bessel_y1(x: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 1: -inf at 0, NaN below.

    >>> [round(each, 4) for each in wg.special.bessel_y1(wg.asarray([0.5, 1.0, 20.0])).tolist()]
    [-1.4715, -0.7812, -0.1655]
    """
    near = x * series("y1", x * x / 32 - 1) + TWO_BY_PI * (wg.log(x) * bessel_j1(x) - 1 / x)
    near = wg.where(x == 0, -math.inf, near)
    return wg.where(x < 0, math.nan, wg.where(x < 8, near, _waves(1, x)[1]))


@of_one(lambda x: wg.where(wg.abs(x) < 1e-3, x / -3, (x * wg.cos(x) - wg.sin(x)) / (x * x)))
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """The spherical Bessel function of the first kind of order 0, sin(x) / x.

    >>> [round(each, 4) for each in wg.special.spherical_bessel_j0(wg.asarray([0.0, 1.0, 20.0])).tolist()]
    [1.0, 0.8415, 0.0456]
    """
    return wg.where(wg.isinf(x), 0.0, wg.where(x == 0, 1.0, wg.sin(x) / x))


# Airy's


@of_one(None)
def airy_ai(x: Tensor) -> Tensor:
    """Airy's function Ai.

    >>> [round(each, 4) for each in wg.special.airy_ai(wg.asarray([-10.0, 0.0, 5.0])).tolist()]
    [0.0402, 0.355, 0.0001]
    """
    size = wg.abs(x)
    root = wg.sqrt(wg.sqrt(size))
    zeta = size * wg.sqrt(size) * (2 / 3)
    right = series("airy_tail", 2 * AIRY_TO / zeta - 1) * wg.exp(-zeta) / (2 * math.sqrt(math.pi) * root)
    sine, cosine = wg.sin(zeta), wg.cos(zeta)
    t = far(AIRY_FROM, zeta)
    wave = series("airy_sine", t) * (sine + cosine) - series("airy_cosine", t) / zeta * (cosine - sine)
    left = wave / (math.sqrt(2 * math.pi) * root)
    return wg.where(x > 2, right, wg.where(x < -4, left, series("airy", (x + 1) / 3)))
