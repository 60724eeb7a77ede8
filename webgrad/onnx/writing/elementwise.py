"""Rows of primitives that work element by element, and casts."""

from __future__ import annotations

import math
from typing import Any

from ...arrays import np
from ..types import code_of
from .builder import Builder, Value
from .table import PRIMITIVES, Site, primitive

# A primitive, and the operator that does the same
_SAME = """
add Add, subtract Sub, multiply Mul, divide Div, abs Abs, less Less, less_equal LessOrEqual,
greater Greater, greater_equal GreaterOrEqual, equal Equal, where Where, isnan IsNaN, isinf IsInf, exp Exp,
log Log, sin Sin, cos Cos, tan Tan, asin Asin, acos Acos, atan Atan, sinh Sinh, cosh Cosh, tanh Tanh,
asinh Asinh, acosh Acosh, atanh Atanh, erf Erf, sqrt Sqrt, sigmoid Sigmoid, floor Floor, ceil Ceil,
round Round, logical_and And, logical_or Or, logical_xor Xor, logical_not Not
"""


_LONG = ("int64", "uint64")


def _same(operator: str) -> Any:
    return lambda site: site.b.op(operator, *site.inputs)


PRIMITIVES.update((name, _same(operator)) for name, operator in (each.split() for each in _SAME.split(",")))


def like(b: Builder, value: Any, x: Value) -> Value:
    """A number of a value's type."""
    return b.constant(value, x.dtype)


def is_integer(x: Value) -> bool:
    return "int" in x.dtype


def bits_of(x: Value) -> int:
    return np.dtype(x.dtype).itemsize * 8


@primitive("maximum minimum clamp_min clamp_max")
def extreme(site: Site) -> Value:
    is_larger = site.node.op in ("maximum", "clamp_min")
    if site.dtype == "bool":
        return site.b.op("Or" if is_larger else "And", *site.inputs)
    if (
        site.node.op == "clamp_min"
        and site.number(1) == 0
        and site.dtype in ("float16", "float32", "float64")
    ):
        return site.b.op("Relu", site.inputs[0])
    return (larger if is_larger else smaller)(site.b, *site.inputs)


# Of 64-bit integers onnxruntime 1.31 has a Max and Min that compare 32 bits only.


def larger(b: Builder, x: Value, y: Value) -> Value:
    """The larger of two; NaN where one is."""
    return b.op("Where", b.op("Less", x, y), y, x) if x.dtype in _LONG else b.op("Max", x, y)


def smaller(b: Builder, x: Value, y: Value) -> Value:
    """The smaller of two; NaN where one is."""
    return b.op("Where", b.op("Less", y, x), y, x) if x.dtype in _LONG else b.op("Min", x, y)


@primitive("not_equal")
def not_equal(site: Site) -> Value:
    return site.b.op("Not", site.b.op("Equal", *site.inputs))


@primitive("negative")
def negative(site: Site) -> Value:
    (x,) = site.inputs
    return site.b.op("Sub", like(site.b, 0, x), x) if x.dtype.startswith("uint") else site.b.op("Neg", x)


@primitive("sign")
def sign(site: Site) -> Value:
    (x,) = site.inputs
    found = site.b.op("Sign", x)
    return found if is_integer(x) else site.b.op("Where", site.b.op("IsNaN", x), x, found)


@primitive("isfinite")
def isfinite(site: Site) -> Value:
    (x,) = site.inputs
    return site.b.op("Not", site.b.op("Or", site.b.op("IsNaN", x), site.b.op("IsInf", x)))


@primitive("trunc")
def trunc(site: Site) -> Value:
    (x,) = site.inputs
    is_negative = site.b.op("Less", x, like(site.b, 0, x))
    return site.b.op("Where", is_negative, site.b.op("Ceil", x), site.b.op("Floor", x))


# Division of integers and floats, with the sign of the divisor


@primitive("remainder")
def remainder(site: Site) -> Value:
    x, y = site.inputs
    if is_integer(x):
        is_zero, divisor = _nonzero(site.b, y)
        return site.b.op("Where", is_zero, like(site.b, 0, x), site.b.op("Mod", x, divisor))
    return _float_remainder(site.b, x, y)


def _nonzero(b: Builder, y: Value) -> tuple[Value, Value]:
    """Where a divisor is 0, and it with 1 there."""
    is_zero = b.op("Equal", y, like(b, 0, y))
    return is_zero, b.op("Where", is_zero, like(b, 1, y), y)


def _float_remainder(b: Builder, x: Value, y: Value) -> Value:
    """What the division leaves, moved to the side of the divisor; a 0 has its sign."""
    zero = like(b, 0, x)
    rest = b.op("Mod", x, y, fmod=1)
    is_other = b.op("Xor", b.op("Less", rest, zero), b.op("Less", y, zero))
    is_zero = b.op("Equal", rest, zero)
    moved = b.op("Where", b.op("And", is_other, b.op("Not", is_zero)), b.op("Add", rest, y), rest)
    signed = b.op("Where", b.op("Less", y, zero), like(b, -0.0, x), zero)
    return b.op("Where", is_zero, signed, moved)


@primitive("floor_divide")
def floor_divide(site: Site) -> Value:
    b, (x, y) = site.b, site.inputs
    if is_integer(x):
        return _whole_quotient(b, x, y)
    quotient = b.op("Div", b.op("Sub", x, _float_remainder(b, x, y)), y)
    plain = b.op("Div", x, y)
    exact = b.op("Where", b.op("Or", b.op("IsInf", x), b.op("IsInf", y)), plain, b.op("Round", quotient))
    return b.op("Where", b.op("Equal", y, like(b, 0, y)), plain, exact)


def _whole_quotient(b: Builder, x: Value, y: Value) -> Value:
    is_zero, divisor = _nonzero(b, y)
    if x.dtype.startswith("uint"):
        found = b.op("Div", x, divisor)
    else:  # of the lowest number by -1 processors make a trap
        is_minus = b.op("Equal", y, like(b, -1, y))
        divisor = b.op("Where", is_minus, like(b, 1, y), divisor)
        found = b.op("Div", x, divisor)  # towards 0
        is_exact = b.op("Equal", b.op("Mod", x, divisor), like(b, 0, x))
        is_below = b.op("Xor", b.op("Less", x, like(b, 0, x)), b.op("Less", divisor, like(b, 0, x)))
        is_over = b.op("And", is_below, b.op("Not", is_exact))
        found = b.op("Where", is_over, b.op("Sub", found, like(b, 1, x)), found)
        found = b.op("Where", is_minus, b.op("Neg", x), found)
    return b.op("Where", is_zero, like(b, 0, x), found)


@primitive("power")
def power(site: Site) -> Value:
    b, (x, y) = site.b, site.inputs
    if not is_integer(x):
        return b.op("Pow", x, y)
    known = site.number(1)
    if known is not None:
        return _whole_power(b, x, int(known)) if known >= 0 else site.refuse("an integer to a negative power")
    return _power_by_bits(b, x, y)


def _whole_power(b: Builder, x: Value, exponent: int) -> Value:
    result, square = None, x
    while exponent:
        if exponent & 1:
            result = square if result is None else b.op("Mul", result, square)
        exponent >>= 1
        square = b.op("Mul", square, square) if exponent else square
    one = b.op("Sub", x, x)
    return b.op("Add", one, like(b, 1, x)) if result is None else result


def _power_by_bits(b: Builder, x: Value, y: Value) -> Value:
    """Squares of x, multiplied where y has the bit; of negative powers only 1 and -1 have one."""
    zero, one = like(b, 0, y), like(b, 1, y)
    is_negative = b.op("Less", y, zero)
    left = b.op("Where", is_negative, b.op("BitwiseAnd", y, one), y)
    result, square = like(b, 1, x), x
    for _ in range(bits_of(x)):
        has_bit = b.op("Equal", b.op("BitwiseAnd", left, one), one)
        result = b.op("Where", has_bit, b.op("Mul", result, square), result)
        square = b.op("Mul", square, square)
        left = _whole_quotient(b, left, like(b, 2, y))
    if x.dtype.startswith("uint"):
        return result
    is_unit = b.op("Or", b.op("Equal", x, like(b, 1, x)), b.op("Equal", x, like(b, -1, x)))
    is_lost = b.op("And", is_negative, b.op("Not", is_unit))
    return b.op("Where", is_lost, like(b, 0, x), result)


# Bits


@primitive("bitwise_and bitwise_or bitwise_xor bitwise_invert")
def bitwise(site: Site) -> Value:
    word = {"and": "And", "or": "Or", "xor": "Xor", "invert": "Not"}[site.node.op.partition("_")[2]]
    return site.b.op(word if site.inputs[0].dtype == "bool" else f"Bitwise{word}", *site.inputs)


@primitive("left_shift right_shift")
def shift(site: Site) -> Value:
    """Of signed integers through unsigned ones; by all bits or more what NumPy gives: zeros, or the sign."""
    b, (x, y) = site.b, site.inputs
    bits = bits_of(x)
    is_far = b.op("Not", b.op("Less", b.cast(y, "uint64"), b.constant(bits, "uint64")))
    plain = f"uint{max(bits, 32)}"
    count = b.op("Where", is_far, like(b, 0, y), y)
    if site.node.op == "left_shift":
        moved = b.raw("BitShift", [b.cast(x, plain), b.cast(count, plain)], plain, 0, {"direction": "LEFT"})
        return b.op("Where", is_far, like(b, 0, x), b.cast(moved, x.dtype))
    if x.dtype.startswith("uint"):
        moved = b.raw("BitShift", [b.cast(x, plain), b.cast(count, plain)], plain, 0, {"direction": "RIGHT"})
        return b.op("Where", is_far, like(b, 0, x), b.cast(moved, x.dtype))
    is_negative = b.op("Less", x, like(b, 0, x))
    size = b.cast(b.op("Where", is_negative, b.op("BitwiseNot", x), x), plain)
    moved = b.raw("BitShift", [size, b.cast(count, plain)], plain, 0, {"direction": "RIGHT"})
    near = b.op("Where", is_far, like(b, 0, x), b.cast(moved, x.dtype))
    return b.op("Where", is_negative, b.op("BitwiseNot", near), near)


# Functions that are composed


@primitive("rsqrt")
def rsqrt(site: Site) -> Value:
    return site.b.op("Reciprocal", site.b.op("Sqrt", *site.inputs))


@primitive("exp2")
def exp2(site: Site) -> Value:
    (x,) = site.inputs
    return site.b.op("Pow", like(site.b, 2, x), x)


@primitive("log2 log10")
def other_log(site: Site) -> Value:
    (x,) = site.inputs
    base = 2 if site.node.op == "log2" else 10
    return site.b.op("Mul", site.b.op("Log", x), like(site.b, 1 / math.log(base), x))


@primitive("expm1")
def expm1(site: Site) -> Value:
    """By tanh(x / 2) near 0, where exp(x) - 1 would lose its digits."""
    b, (x,) = site.b, site.inputs
    half = b.op("Tanh", b.op("Mul", x, like(b, 0.5, x)))
    near = b.op("Div", b.op("Add", half, half), b.op("Sub", like(b, 1, x), half))
    far = b.op("Sub", b.op("Exp", x), like(b, 1, x))
    return b.op("Where", b.op("Less", b.op("Abs", x), like(b, 0.5, x)), near, far)


@primitive("log1p")
def log1p(site: Site) -> Value:
    """log(u) x / (u - 1) with u = 1 + x: the two errors of u cancel."""
    b, (x,) = site.b, site.inputs
    one = like(b, 1, x)
    u = b.op("Add", x, one)
    rest = b.op("Sub", u, one)
    is_tiny = b.op("Equal", rest, like(b, 0, x))
    scaled = b.op("Div", b.op("Mul", b.op("Log", u), x), b.op("Where", is_tiny, one, rest))
    far = b.op("Where", b.op("IsInf", u), b.op("Log", u), scaled)
    far = b.op("Where", b.op("Equal", u, like(b, 0, x)), b.op("Log", u), far)
    return b.op("Where", is_tiny, x, far)


@primitive("atan2")
def atan2(site: Site) -> Value:
    """By the smaller of both over the larger, then by octant and signs."""
    b, (y, x) = site.b, site.inputs
    zero = like(b, 0, x)
    tall, wide = b.op("Abs", y), b.op("Abs", x)
    is_steep = b.op("Greater", tall, wide)
    large, small = b.op("Max", tall, wide), b.op("Min", tall, wide)
    both = b.op("And", b.op("IsInf", x), b.op("IsInf", y))
    flat = b.op("Div", small, b.op("Where", b.op("Equal", large, zero), like(b, 1, x), large))
    angle = b.op("Atan", b.op("Where", both, like(b, 1, x), flat))
    angle = b.op("Where", is_steep, b.op("Sub", like(b, math.pi / 2, x), angle), angle)
    angle = b.op("Where", _is_minus(b, x), b.op("Sub", like(b, math.pi, x), angle), angle)
    found = b.op("Where", _is_minus(b, y), b.op("Neg", angle), angle)
    return b.op("Where", b.op("Or", b.op("IsNaN", x), b.op("IsNaN", y)), b.op("Add", x, y), found)


def _is_minus(b: Builder, x: Value) -> Value:
    """Whether a number has a minus: of a 0 its reciprocal says it."""
    zero = like(b, 0, x)
    below = b.op("Less", b.op("Reciprocal", x), zero)
    return b.op("Where", b.op("Equal", x, zero), below, b.op("Less", x, zero))


# A Chebyshev fit of log(erfc(x) exp(x²) / t) over t = 1 / (1 + x / 2), x from 0 up (Numerical Recipes, 6.2)
_ERFC = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


@primitive("erfc")
def erfc(site: Site) -> Value:
    """1 - erf(x) near 0; else by the fit, so that small values keep their digits."""
    b, (x,) = site.b, site.inputs
    wide = b.cast(x, "float32") if x.dtype != "float64" else site.refuse("erfc of float64: use float32")
    size = b.op("Abs", wide)
    t = b.op("Reciprocal", b.op("Add", like(b, 1, wide), b.op("Mul", size, like(b, 0.5, wide))))
    total = like(b, _ERFC[-1], wide)
    for each in _ERFC[-2::-1]:
        total = b.op("Add", b.op("Mul", total, t), like(b, each, wide))
    tail = b.op("Mul", t, b.op("Exp", b.op("Sub", total, b.op("Mul", size, size))))
    far = b.op("Where", b.op("Less", wide, like(b, 0, wide)), b.op("Sub", like(b, 2, wide), tail), tail)
    near = b.op("Sub", like(b, 1, wide), b.op("Erf", wide))
    found = b.op("Where", b.op("Less", size, like(b, 0.5, wide)), near, far)
    return b.cast(found, x.dtype)


@primitive("gelu gelu_tanh")
def gelu(site: Site) -> Value:
    b, (x,) = site.b, site.inputs
    how = "none" if site.node.op == "gelu" else "tanh"
    if b.opset >= 20:
        return b.op("Gelu", x, approximate=how)
    half = b.op("Mul", x, like(b, 0.5, x))
    if how == "none":
        inner = b.op("Erf", b.op("Mul", x, like(b, math.sqrt(0.5), x)))
    else:
        cube = b.op("Mul", b.op("Mul", x, x), x)
        sum_ = b.op("Add", x, b.op("Mul", cube, like(b, 0.044715, x)))
        inner = b.op("Tanh", b.op("Mul", sum_, like(b, math.sqrt(2 / math.pi), x)))
    return b.op("Mul", half, b.op("Add", inner, like(b, 1, x)))


# Casts


@primitive("cast")
def cast(site: Site) -> Value:
    (x,) = site.inputs
    wanted = site.dtype
    if is_integer(x) or x.dtype == "bool" or not wanted.startswith(("int", "uint")):
        return site.b.cast(x, wanted)
    return _whole(site.b, x, wanted)


def _whole(b: Builder, x: Value, wanted: str) -> Value:
    """Floats as integers: NaN is 0, and what is beyond the type is its end, which C leaves open."""
    wide = b.cast(x, "float32") if x.dtype in ("float16", "bfloat16") else x
    safe = b.op("Where", b.op("IsNaN", wide), like(b, 0, wide), wide)
    limits = np.iinfo(wanted)
    if limits.bits < 64:
        ends = [like(b, float(side), wide) for side in (-(2**62), 2**62)]
        whole = b.cast(b.op("Clip", safe, *ends), "int64")
        low, high = b.constant(limits.min), b.constant(limits.max)
        return b.cast(smaller(b, larger(b, whole, low), high), wanted)
    top = float(limits.max) + 1 if wanted == "int64" else 2.0**64
    is_high = b.op("GreaterOrEqual", safe, like(b, top, safe))
    low = b.op("Max", safe, like(b, float(limits.min), safe))
    inside = b.cast(b.op("Where", is_high, like(b, 0, safe), low), wanted)
    high = b.constant(limits.max, wanted)
    if wanted == "uint64":
        return b.raw("Add", [inside, b.raw("Mul", [b.cast(is_high, wanted), high], wanted)], wanted)
    return b.op("Where", is_high, high, inside)


@primitive("bitcast")
def bitcast(site: Site) -> Value:
    if site.b.opset < 26:
        site.refuse("bits as another type (wg.bitcast) are an operator since opset 26: give opset=26")
    return site.b.raw("BitCast", site.inputs, site.dtype, attributes={"to": code_of(np.dtype(site.dtype))})


@primitive("random_bits")
def random_bits(site: Site) -> Value:
    site.refuse(
        "random numbers are others in every runtime. Pass them as an input, or call model.eval() where it is "
        "dropout"
    )
