"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import webgrad as wg

from ...arrays import np
from .table import operator
from .values import is_array, moves, uploaded

__all__: list[str] = []

Binary = Callable[[Any, Any], Any]

# ONNX's name, the version, and webgrad's function of all its inputs
_SAME = """
Abs 1 abs, Acos 7 acos, Acosh 9 acosh, Add 7 add, And 7 logical_and, Asin 7 asin, Asinh 9 asinh, Atan 7 atan,
Atanh 9 atanh, BitwiseAnd 18 bitwise_and, BitwiseNot 18 bitwise_invert, BitwiseOr 18 bitwise_or,
BitwiseXor 18 bitwise_xor, Ceil 1 ceil, Cos 7 cos, Cosh 9 cosh, Erf 9 erf, Exp 1 exp, Floor 1 floor,
Greater 7 greater, GreaterOrEqual 12 greater_equal, Less 7 less, LessOrEqual 12 less_equal, Log 1 log,
Mul 7 multiply, Neg 1 negative, Not 1 logical_not, Or 7 logical_or, Reciprocal 1 reciprocal, Round 11 round,
Sign 9 sign, Sin 7 sin, Sinh 9 sinh, Sqrt 1 sqrt, Sub 7 subtract, Tan 7 tan, Tanh 1 tanh, Xor 7 logical_xor
"""

for _row in _SAME.replace("\n", " ").split(","):
    _name, _since, _function = _row.split()
    operator(_name, int(_since))(getattr(wg, _function))

# ONNX's name, the version, and webgrad's function that goes through any number of inputs
_MANY = "Max 1 maximum, Min 1 minimum, Sum 1 add"


def _of_many(function: Binary) -> Callable[..., Any]:
    def folded(*x: Any) -> Any:
        return reduce(function, x)

    return folded


for _row in _MANY.split(","):
    _name, _since, _function = _row.split()
    operator(_name, int(_since))(_of_many(getattr(wg, _function)))


@operator("Mean")
def mean_of_many(*x: Any) -> Any:
    return reduce(wg.add, x) / len(x)


@operator("Identity", known="x")
def identity(x: Any) -> Any:
    return x


@operator("Equal", 7)
def equal(a: Any, b: Any) -> Any:
    return np.asarray(a == b) if is_array(a) else wg.equal(a, b)


@operator("Div", 7)
def divide(a: Any, b: Any) -> Any:
    """Integers are divided toward zero; what is left is taken off first, so that nothing overflows."""
    if a.dtype.kind not in "iu":
        return wg.divide(a, b)
    return wg.floor_divide(a if a.dtype.kind == "u" else a - wg.fmod(a, b), b)


@operator("Mod", 10)
def modulo(a: Any, b: Any, *, fmod: int = 0) -> Any:
    return wg.fmod(a, b) if fmod else wg.remainder(a, b)


@operator("Pow", 7, known="exponent")
def power(base: Any, exponent: Any) -> Any:
    """The result has the type of the base. A known power is a number, so that squares are products."""
    if is_array(exponent) and exponent.size == 1 and exponent.ndim <= base.ndim:
        number = exponent.item()
        if base.dtype.kind == "f" or isinstance(number, int):
            return wg.power(base, number)
    exponent = uploaded(exponent, base.device) if is_array(exponent) else exponent
    if base.dtype.kind == "f" or exponent.dtype.kind != "f":
        return wg.power(base, exponent.astype(base.dtype))
    return wg.power(base.astype(exponent.dtype), exponent).astype(base.dtype)


@operator("BitShift", 11)
def bit_shift(a: Any, b: Any, *, direction: str) -> Any:
    return wg.left_shift(a, b) if direction == "LEFT" else wg.right_shift(a, b)


@operator("Where", 9)
@moves
def where(condition: Any, a: Any, b: Any) -> Any:
    return wg.where(condition, a, b)


@operator("IsNaN", 9)
def is_nan(x: Any) -> Any:
    return np.isnan(x) if is_array(x) else wg.isnan(x)


@operator("IsInf", 10)
def is_infinite(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    if is_array(x):  # floats of 8 bits
        return is_infinite(
            wg.asarray(x.astype(np.float32), device="cpu"),
            detect_negative=detect_negative,
            detect_positive=detect_positive,
        )
    found = wg.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@operator("Clip", 11)
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    return wg.clip(x, low, high)


@operator("Clip", 1)
def clip_to_numbers(
    x: Any, *, min: float | None = None, max: float | None = None, consumed_inputs: Any = ()
) -> Any:
    return wg.clip(x, min, max)


# Before version 7 an operand is broadcast only if an attribute says so, at an axis


def _of_old(function: Binary) -> Callable[..., Any]:
    def broadcast_at(
        a: Any, b: Any, *, axis: int | None = None, broadcast: int = 0, consumed_inputs: Any = ()
    ) -> Any:
        if broadcast and axis is not None:
            trailing = a.ndim - axis % a.ndim - b.ndim
            b = wg.reshape(b, (*b.shape, *[1] * trailing))
        return function(a, b)

    return broadcast_at


_OLD: dict[str, Binary] = {
    "Add": wg.add, "And": wg.logical_and, "Div": divide, "Equal": equal, "Greater": wg.greater,
    "Less": wg.less, "Mul": wg.multiply, "Or": wg.logical_or, "Pow": partial(power), "Sub": wg.subtract,
    "Xor": wg.logical_xor,
}  # fmt: skip

for _name, _binary in _OLD.items():
    operator(_name, 1)(_of_old(_binary))
