"""Arithmetic beyond the operators: common divisors, steps, remainders, powers of two, angles in degrees.

In: tensors; other operands may be numbers. Out: tensors of the broadcast shape, in the promoted dtype.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...ops import primitives
from ...ops.shapes import check_kind
from ...tensor import Tensor
from ..complex.parts import imag
from .creation import as_tensor
from .elementwise import (
    abs,
    exp2,
    floor_divide,
    isinf,
    isnan,
    logaddexp,
    maximum,
    minimum,
    remainder,
    trunc,
    where,
)
from .elementwise import bitcast as bits_of
from .rows import operands


def _both(op: str, x1: Any, x2: Any, kinds: str) -> tuple[Tensor, Tensor]:
    first, second = primitives.common(op, operands(op, x1, x2))
    check_kind(op, kinds, first.sig.dtype)
    return Tensor(first), Tensor(second)


def fmod(x1: Any, x2: Any, /) -> Tensor:
    """What is left of x1 after division by x2, with the sign of x1; `remainder` has the sign of x2.

    >>> wg.fmod(wg.asarray([7.0, -7.0]), 3.0).tolist()
    [1.0, -1.0]
    """
    first, second = _both("fmod", x1, x2, "iuf")
    if first.dtype.kind == "f":
        rest = remainder(abs(first), abs(second))
        return where(first < 0, -rest, rest)
    rest = remainder(first, second)  # not of values without signs: the lowest integer has none
    if first.dtype.kind == "u":
        return rest
    return where((rest != 0) & ((rest < 0) != (first < 0)), rest - second, rest)


def fmax(x1: Any, x2: Any, /) -> Tensor:
    """The larger of two; of a NaN and a number the number.

    >>> wg.fmax(wg.asarray([1.0, wg.nan]), 2.0).tolist()
    [2.0, 2.0]
    """
    return _without_nan(maximum, *_both("fmax", x1, x2, "biuf"))


def fmin(x1: Any, x2: Any, /) -> Tensor:
    """The smaller of two; of a NaN and a number the number.

    >>> wg.fmin(wg.asarray([1.0, wg.nan]), 2.0).tolist()
    [1.0, 2.0]
    """
    return _without_nan(minimum, *_both("fmin", x1, x2, "biuf"))


def _without_nan(function: Any, first: Tensor, second: Tensor) -> Tensor:
    if first.dtype.kind != "f":
        found: Tensor = function(first, second)
        return found
    return where(isnan(first), second, where(isnan(second), first, function(first, second)))


def gcd(x1: Any, x2: Any, /) -> Tensor:
    """The greatest common divisor of integers.

    >>> wg.gcd(wg.asarray([12, -9, 0]), wg.asarray([8, 6, 5])).tolist()
    [4, 3, 5]
    """
    first, second = (abs(each) for each in _both("gcd", x1, x2, "iu"))
    large, small = maximum(first, second), minimum(first, second)
    for _ in range(_DIVISIONS[large.dtype.bits]):
        done = small == 0
        rest = remainder(large, where(done, 1, small))
        large, small = where(done, large, small), where(done, 0, rest)
    return large


# Euclid's algorithm takes at most so many divisions of numbers of so many bits: the worst are Fibonacci's.
_DIVISIONS = {8: 13, 16: 24, 32: 47, 64: 93}


def lcm(x1: Any, x2: Any, /) -> Tensor:
    """The least common multiple of integers; 0 where one is 0.

    >>> wg.lcm(wg.asarray([4, 3, 0]), wg.asarray([6, 5, 7])).tolist()
    [12, 15, 0]
    """
    first, second = (abs(each) for each in _both("lcm", x1, x2, "iu"))
    divisor = gcd(first, second)
    return floor_divide(first, where(divisor == 0, 1, divisor)) * second


def heaviside(x1: Any, x2: Any, /) -> Tensor:
    """0 where x1 is negative, 1 where it is positive, x2 where it is 0; NaN of NaN.

    >>> wg.heaviside(wg.asarray([-2.0, 0.0, 3.0]), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    step, middle = _both("heaviside", x1, x2, "biuf")
    if step.dtype.kind == "b":
        return step | middle
    found = where(step == 0, middle, where(step < 0, 0, 1).astype(step.dtype))
    return where(isnan(step), step, found) if step.dtype.kind == "f" else found


def logaddexp2(x1: Any, x2: Any, /) -> Tensor:
    """log2(2 ** x1 + 2 ** x2), which does not overflow on the way.

    >>> wg.logaddexp2(wg.asarray([3.0]), wg.asarray([3.0])).tolist()
    [4.0]
    """
    first, second = _both("logaddexp2", x1, x2, "f")
    wide = dtypes.float64 if first.dtype is dtypes.float64 else dtypes.float32
    scale = math.log(2)
    found = logaddexp(first.astype(wide) * scale, second.astype(wide) * scale) / scale
    return found.astype(first.dtype, copy=False)


def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians.

    >>> round(wg.deg2rad(wg.asarray(180.0)).item(), 5)
    3.14159
    """
    return _floats("deg2rad", x) * (math.pi / 180)


def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees.

    >>> round(wg.rad2deg(wg.asarray(wg.pi)).item(), 3)
    180.0
    """
    return _floats("rad2deg", x) * (180 / math.pi)


def _floats(op: str, x: Any) -> Tensor:
    given = as_tensor(op, x)
    check_kind(op, "biuf", given.dtype)
    return given if given.dtype.kind == "f" else given.astype(dtypes.float32)


def ldexp(x1: Any, x2: Any, /) -> Tensor:
    """x1 times 2 to the power of x2.

    >>> wg.ldexp(wg.asarray([1.0, 3.0]), wg.asarray([4, -1])).tolist()
    [16.0, 1.5]
    """
    x = _floats("ldexp", x1)
    power = as_tensor("ldexp", x2).astype(dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32)
    half = trunc(power / 2)  # in two steps: 2 ** x2 alone may overflow where the product does not
    return (x * exp2(half) * exp2(power - half)).astype(x.dtype, copy=False)


def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissas, from 1/2 up to but without 1, and the powers of 2, int32, that they are multiplied by.

    >>> [each.tolist() for each in wg.frexp(wg.asarray([8.0, 0.75]))]
    [[0.5, 0.75], [4, 0]]
    """
    x = as_tensor("frexp", x)
    check_kind("frexp", "f", x.dtype)
    wide = x if x.dtype is dtypes.float64 else x.astype(dtypes.float32)
    odd = isnan(wide) | isinf(wide) | (wide == 0)
    safe = where(odd, 1.0, abs(wide)).detach()
    bits, width, bias = (dtypes.int64, 52, 1022) if wide.dtype is dtypes.float64 else (dtypes.int32, 23, 126)
    smallest = 2.0 ** (2 - bias)
    small = safe < smallest
    lifted = where(small, safe * 2.0**width, safe)  # numbers that have no exponent of their own
    power = (bits_of(lifted, bits) >> width) - bias - where(small, width, 0)
    power = where(odd, 0, power.astype(dtypes.int32))
    half = floor_divide(power, 2)
    scale = (exp2((-half).astype(wide.dtype)), exp2((half - power).astype(wide.dtype)))
    return (wide * scale[0] * scale[1]).astype(x.dtype, copy=False), power


def isposinf(x: Tensor) -> Tensor:
    """Whether it is positive infinity.

    >>> wg.isposinf(wg.asarray([wg.inf, -wg.inf, 1.0])).tolist()
    [True, False, False]
    """
    return as_tensor("isposinf", x) == math.inf


def isneginf(x: Tensor) -> Tensor:
    """Whether it is negative infinity.

    >>> wg.isneginf(wg.asarray([wg.inf, -wg.inf, 1.0])).tolist()
    [False, True, False]
    """
    return as_tensor("isneginf", x) == -math.inf


def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part is 0.

    >>> wg.isreal(wg.asarray([1 + 0j, 2j])).tolist()
    [True, False]
    """
    x = as_tensor("isreal", x)
    return imag(x) == 0 if x.dtype.kind == "c" else x == x if x.dtype.kind != "f" else (x == x) | isnan(x)
