"""Element by element: torch's functions of one, two and three tensors.

In: tensors and numbers. Out: tensors of the broadcast shape. Two tensors are promoted as torch promotes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from . import return_types as _return_types
from .binding import bind
from .defaults import float_dtype
from .promotion import castable, matched, result_type, wrapped
from .tensor import Array

__all__ = ["functions"]

return_types: Any = _return_types  # whose names a table makes

ROWS = """
[function method in_place out]
abs absolute(input) = wg.abs(input)
acos arccos(input) = wg.acos(floats(input))
acosh arccosh(input) = wg.acosh(floats(input))
asin arcsin(input) = wg.asin(floats(input))
asinh arcsinh(input) = wg.asinh(floats(input))
atan arctan(input) = wg.atan(floats(input))
atanh arctanh(input) = wg.atanh(floats(input))
ceil(input) = wg.ceil(input)
cos(input) = wg.cos(floats(input))
cosh(input) = wg.cosh(floats(input))
deg2rad(input) = wg.deg2rad(floats(input))
erf(input) = wg.erf(floats(input))
erfc(input) = wg.erfc(floats(input))
exp(input) = wg.exp(floats(input))
exp2(input) = wg.exp2(floats(input))
expm1(input) = wg.expm1(floats(input))
floor(input) = wg.floor(input)
frac(input) = fraction(input)
log(input) = wg.log(floats(input))
log10(input) = wg.log10(floats(input))
log1p(input) = wg.log1p(floats(input))
log2(input) = wg.log2(floats(input))
neg negative(input) = negated(input)
rad2deg(input) = wg.rad2deg(floats(input))
reciprocal(input) = wg.reciprocal(floats(input))
round(input, *, decimals=0) = rounded(input, decimals)
rsqrt(input) = wg.rsqrt(floats(input))
sigmoid(input) = wg.sigmoid(floats(input)) if input.dtype.kind != "c" else wg.reciprocal(1 + wg.exp(-input))
sign(input) = real_sign(input)
sgn(input) = input.clone() if input.dtype is wg.bool else wg.sign(input)
sin(input) = wg.sin(floats(input))
sinh(input) = wg.sinh(floats(input))
sqrt(input) = wg.sqrt(floats(input))
square(input) = numbers("square", input) ** 2
tan(input) = wg.tan(floats(input))
tanh(input) = wg.tanh(floats(input))
trunc fix(input) = wg.trunc(input)
conj_physical(input) = wg.conj(input)
bitwise_not(input) = wg.bitwise_invert(input)
logical_not(input) = wg.logical_not(input.bool())
nan_to_num(input, nan=None, posinf=None, neginf=None) = wg.nan_to_num(input, 0.0 if nan is None else nan,
    posinf, neginf)
clamp clip(input, min=None, max=None) = clamped(input, min, max)
clamp_min(input, min) = clamped(input, min, None)
clamp_max(input, max) = clamped(input, None, max)
add(input, other, *, alpha=1) = input + scaled(input, other, alpha)
sub subtract(input, other, *, alpha=1) = difference(input, scaled(input, other, alpha))
mul multiply(input, other) = input * other
div divide true_divide(input, other, *, rounding_mode=None) = quotient(input, other, rounding_mode)
floor_divide(input, other) = input // other
remainder(input, other) = input % other
fmod(input, other) = pair(wg.fmod, input, other)
gcd(input, other) = pair(wg.gcd, input, other)
lcm(input, other) = pair(wg.lcm, input, other)
heaviside(input, values) = step(input, values)
ldexp(input, other) = input * wg.exp2(floats(other))
igamma(input, other) = pair(wg.special.gammainc, input, other)
igammac(input, other) = pair(wg.special.gammaincc, input, other)
pow(input, exponent) = raised(input, exponent)
float_power(input, exponent) = raised(doubled(input), doubled(exponent))
atan2 arctan2(input, other) = float_pair(wg.atan2, input, other)
copysign(input, other) = float_pair(wg.copysign, input, other)
hypot(input, other) = pair(wg.hypot, input, other)
nextafter(input, other) = pair(wg.nextafter, input, other)
bitwise_and(input, other) = input & other
bitwise_or(input, other) = input | other
bitwise_xor(input, other) = input ^ other
bitwise_left_shift(input, other) = input << other
bitwise_right_shift(input, other) = input >> other
logical_and(input, other) = wg.logical_and(true_of(input), true_of(other))
logical_or(input, other) = wg.logical_or(true_of(input), true_of(other))
logical_xor(input, other) = wg.logical_xor(true_of(input), true_of(other))
eq(input, other) = input == other
ne not_equal(input, other) = input != other
lt less(input, other) = input < other
le less_equal(input, other) = input <= other
gt greater(input, other) = input > other
ge greater_equal(input, other) = input >= other
addcmul(input, tensor1, tensor2, *, value=1) = input + scaled(input, tensor1 * tensor2, value)
addcdiv(input, tensor1, tensor2, *, value=1) = input + scaled(input, tensor1 / tensor2, value)
lerp(input, end, weight) = input + weight * (end - input)

[function method out]
maximum(input, other) = pair(wg.maximum, input, other)
minimum(input, other) = pair(wg.minimum, input, other)
fmax(input, other) = pair(wg.fmax, input, other)
fmin(input, other) = pair(wg.fmin, input, other)
logaddexp(input, other) = pair(wg.logaddexp, input, other)
logaddexp2(input, other) = pair(wg.logaddexp2, input, other)
frexp(input) = return_types.frexp(*wg.frexp(input))
isneginf(input) = wg.isneginf(input)
isposinf(input) = wg.isposinf(input)

[function method]
angle(input) = wg.angle(input)
conj(input) = wg.conj(input)
isreal(input) = wg.isreal(input)
resolve_conj resolve_neg(input) = input
isfinite(input) = wg.isfinite(input)
isinf(input) = wg.isinf(input)
isnan(input) = wg.isnan(input)
signbit(input) = wg.signbit(input)
isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) = pair(wg.isclose, input, other, rtol, atol,
    equal_nan)
allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) = wg.allclose(input, other, rtol, atol,
    equal_nan)
equal(input, other) = wg.array_equal(input, other)
positive(input) = +input
rsub(input, other, *, alpha=1) = scaled(input, other, 1) - scaled(input, input, alpha)

[function]
result_type(tensor1, tensor2) = type_of(tensor1, tensor2)
promote_types(type1, type2) = wg.promote(type1, type2)
can_cast(from_, to) = castable(from_, to)
real(input) = wg.real(input)
imag(input) = imaginary(input)
view_as_real(input) = wg.view_as_real(input)
view_as_complex(input) = wg.view_as_complex(input)
complex(real, imag) = wg.complex(real, imag)
polar(abs, angle) = wg.polar(abs, angle)
"""


def floats(x: Any) -> Any:
    """Integers and bools as floats of the default dtype."""
    if isinstance(x, Array) and x.dtype.kind in "iub":
        return x.astype(float_dtype())
    return x


def numbers(name: str, x: Any) -> Any:
    """A tensor of numbers; bools count as integers."""
    return x.long() if x.dtype is wg.bool else x


def pair(function: Callable[..., Any], first: Any, second: Any, *more: Any) -> Any:
    """A function of two operands, promoted."""
    return function(*matched(first, second), *more)


def float_pair(function: Callable[..., Any], first: Any, second: Any) -> Any:
    """A function of two floats, promoted."""
    other = float(second) if second.__class__ is int else second
    return function(*(floats(each) for each in matched(first, other)))


def true_of(x: Any) -> Any:
    """Whether elements are not zero."""
    if not isinstance(x, Array):
        raise TypeError(
            f"a logical operation takes tensors, not a {type(x).__name__}: use torch.tensor({x!r})"
        )
    return x.bool()


def scaled(like: Any, other: Any, alpha: Any) -> Any:
    """alpha * other; floats scale no integers."""
    if alpha == 1:
        return other
    if like.dtype is wg.bool and isinstance(other, Array) and other.dtype is wg.bool:
        if isinstance(alpha, float):
            raise RuntimeError("For boolean input tensors, argument alpha must be a boolean.")
        return other & bool(alpha)
    whole = like.dtype.kind in "iu" and not (isinstance(other, Array) and other.dtype.kind in "fc")
    if whole and isinstance(alpha, float) and not isinstance(other, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return other * alpha


def difference(first: Any, second: Any) -> Any:
    """first - second, which torch has not for bools."""
    if isinstance(second, Array) and first.dtype is wg.bool and second.dtype is wg.bool:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    return first - second


def negated(x: Any) -> Any:
    """-x, which torch has not for bools."""
    if x.dtype is wg.bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
            "mask, use the `~` or `logical_not()` operator instead."
        )
    return -x


def real_sign(x: Any) -> Any:
    """The sign of real numbers; of bools they are themselves."""
    if x.dtype.kind == "c":
        raise RuntimeError("Unlike NumPy, torch.sign doesn't support complex numbers: use torch.sgn")
    return x.clone() if x.dtype is wg.bool else wg.sign(x)


def rounded(x: Any, decimals: int) -> Any:
    """To even, at so many decimals."""
    if not decimals:
        return wg.round(x)
    scale = 10.0 ** abs(decimals)
    return wg.round(x * scale) / scale if decimals > 0 else wg.round(x / scale) * scale


def clamped(x: Any, least: Any, most: Any) -> Any:
    """Between two bounds, either of which may be missing; the upper one wins."""
    if least is None and most is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if not isinstance(least, Array) and not isinstance(most, Array):
        if x.dtype.kind in "iub" and (isinstance(least, float) or isinstance(most, float)):
            x = floats(x)
        elif x.dtype is wg.bool:
            x = x.long()
        return wg.clip(x, *(wrapped(each, x.dtype) for each in (least, most)))
    for bound, limit in ((least, wg.maximum), (most, wg.minimum)):
        if bound is not None:
            x = pair(limit, x, bound if isinstance(bound, Array) else wg.full((), bound, x.dtype))
    return x


def quotient(first: Any, second: Any, rounding: str | None) -> Any:
    """A quotient, as it is, rounded down, or towards zero."""
    if rounding is None:
        return first / second
    if rounding == "floor":
        return first // second
    if rounding != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '"
            + str(rounding)
            + "'"
        )
    first, second = matched(first, second)
    down = first // second
    if down.dtype.kind == "f":
        return wg.trunc(first / second)
    return down + ((down * second != first) & ((first < 0) != (second < 0))).astype(down.dtype)


def fraction(x: Any) -> Any:
    """x - trunc(x)."""
    if x.dtype.kind not in "f":
        raise RuntimeError(f"frac is for floats, not {x.dtype.name}")
    return x - wg.trunc(x)


def step(x: Any, values: Any) -> Any:
    """0, 1, or the values at 0; torch promotes nothing here."""
    if x.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return wg.heaviside(x, values)


def imaginary(x: Any) -> Any:
    """The imaginary parts, which only complex numbers have."""
    if x.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return wg.imag(x)


def raised(base: Any, exponent: Any) -> Any:
    """base ** exponent, either of which may be a number."""
    return base**exponent


def doubled(x: Any) -> Any:
    """In double precision."""
    if not isinstance(x, Array):
        return complex(x) if isinstance(x, complex) else float(x)
    return x.astype(wg.complex128 if x.dtype.kind == "c" else wg.float64)


def type_of(first: Any, second: Any) -> Any:
    """The dtype of first + second, where numbers count as tensors without dimensions."""
    if isinstance(first, Array) and isinstance(second, Array):
        return result_type(first, second)
    if not isinstance(first, Array):
        first, second = second, first
    return (first[:0] * second).dtype if first.ndim else (first * second).dtype


functions = bind(ROWS, globals())
