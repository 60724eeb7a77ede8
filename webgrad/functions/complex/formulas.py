"""Functions of complex numbers, as formulas over their parts.

In: parts, `Pair`s of tensors, in arithmetic also real tensors. Out: a `Pair`, or a tensor of floats or bools.
Fusion makes one kernel of a formula, and both backends compute the same. Results are right to
a few units in the last place of their size; infinities, NaN and signed zeros are those of C's Annex G, as the
array API has them. Gradients are those of PyTorch, ∂L/∂re + i ∂L/∂im: of a holomorphic function the conjugate
of its derivative (`application.py`), since formulas have corners where functions have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ...graph.node import Node
from ...ops import primitives
from ...tensor import Tensor
from ..array.elementwise import abs as absolute
from ..array.elementwise import (
    atan2,
    cos,
    exp,
    exp2,
    expm1,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    maximum,
    minimum,
    round,
    signbit,
    sin,
    sinh,
    sqrt,
    tan,
    where,
)


class Pair(NamedTuple):
    """The parts of complex numbers."""

    re: Tensor
    im: Tensor


def _numbers(x: Tensor, *values: float) -> list[Tensor]:
    """Numbers of x's dtype. A kernel takes few, and these are the same ones for all formulas in it."""
    return [Tensor(_number(each, x.dtype, x.node.sig.device)) for each in values]


@lru_cache(maxsize=256)
def _number(value: float, dtype: Any, device: Any) -> Node:
    return primitives.constant("complex", value, dtype, device)


def _times_i(z: Pair) -> Pair:
    """i z."""
    return Pair(-z.im, z.re)


def _divided_by_i(z: Pair) -> Pair:
    """z / i."""
    return Pair(z.im, -z.re)


def _size(x: Tensor, y: Tensor) -> Tensor:
    """√(x² + y²); infinite if either is, even if the other is NaN."""
    (infinity,) = _numbers(x, math.inf)
    first, second = absolute(x), absolute(y)
    endless = (first == infinity) | (second == infinity)
    return where(endless, infinity, _diagonal(first, second))


def _signed(size: Tensor, like: Tensor) -> Tensor:
    """A magnitude with another number's sign."""
    return where(signbit(like), -size, size)


def _diagonal(x: Tensor, y: Tensor) -> Tensor:
    """√(x² + y²) of what is not negative, which does not overflow on the way."""
    zero, one = _numbers(x, 0.0, 1.0)
    large, small = maximum(x, y), minimum(x, y)
    ratio = where(large == zero, zero, small / large)
    return large * sqrt(one + ratio * ratio)


# Arithmetic: a real operand has no imaginary part, which differs from one of zero


def _add(a: Pair | Tensor, b: Pair | Tensor) -> Pair:
    if isinstance(a, Tensor):
        a, b = b, a
    assert isinstance(a, Pair)
    return Pair(a.re + b, a.im) if isinstance(b, Tensor) else Pair(a.re + b.re, a.im + b.im)


def _subtract(a: Pair | Tensor, b: Pair | Tensor) -> Pair:
    return _add(a, -b if isinstance(b, Tensor) else Pair(-b.re, -b.im))


def _multiply(a: Pair | Tensor, b: Pair | Tensor) -> Pair:
    if isinstance(a, Tensor):
        a, b = b, a
    assert isinstance(a, Pair)
    if isinstance(b, Tensor):
        return Pair(a.re * b, a.im * b)
    return Pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def _divide(a: Pair | Tensor, b: Pair | Tensor) -> Pair:
    """By the larger part of the divisor, so that no square overflows."""
    if isinstance(b, Tensor):
        assert isinstance(a, Pair)
        return Pair(a.re / b, a.im / b)
    zero, one = _numbers(b.re, 0.0, 1.0)
    wide = absolute(b.re) >= absolute(b.im)
    large, small = where(wide, b.re, b.im), where(wide, b.im, b.re)
    ratio = where(large == zero, zero, small / large)
    scale = where(absolute(large) > _HUGE, 0.25, one)
    whole = large * scale + small * scale * ratio
    if isinstance(a, Tensor):
        a = a * scale
        return Pair(where(wide, a, a * ratio) / whole, where(wide, -a * ratio, -a) / whole)
    a = Pair(a.re * scale, a.im * scale)
    real = where(wide, a.re + a.im * ratio, a.re * ratio + a.im) / whole
    return Pair(real, where(wide, a.im - a.re * ratio, a.im * ratio - a.re) / whole)


_HUGE = 1e37  # beyond it, numbers are scaled before they are added


def _sign(z: Pair) -> Pair:
    """z / |z|; 0 of 0, and of an infinity its direction."""
    zero, one = _numbers(z.re, 0.0, 1.0)
    large = maximum(absolute(z.re), absolute(z.im))
    re, im = (where(isinf(each), _signed(one, each), each / large) for each in z)
    size = sqrt(re * re + im * im)
    return Pair(where(large == zero, zero, re / size), where(large == zero, zero, im / size))


# Powers and exponentials


def _exp(z: Pair, power: Callable[[Tensor], Tensor] = exp) -> Pair:
    return _spun(z.re, z.im, Pair(cos(z.im), sin(z.im)), power)


def _spun(x: Tensor, angle: Tensor, turn: Pair, power: Callable[[Tensor], Tensor] = exp) -> Pair:
    """e^x times the rotation `turn`: in two steps where e^x would overflow; for angle 0 it stays real."""
    zero, one, infinity = _numbers(x, 0.0, 1.0, math.inf)
    far = absolute(x) > _EXPONENT
    half = power(where(far, x * 0.5, x))
    rest = where(far, half, one)
    lost = ~isfinite(angle)
    vanishing, endless = lost & (x == -infinity), lost & (x == infinity)
    real = where(vanishing, zero, where(endless, infinity, half * turn.re * rest))
    return Pair(real, where(vanishing, zero, where(angle == zero, angle, half * turn.im * rest)))


_EXPONENT = 80.0  # up to which e^x is in the range of every float


def _expm1(z: Pair) -> Pair:
    """e^z - 1, exact near 0: the real part is (e^re - 1) cos(im) - (1 - cos(im))."""
    zero, one = _numbers(z.re, 0.0, 1.0)
    turn = Pair(cos(z.im), sin(z.im))
    whole = _spun(z.re, z.im, turn)
    rest = where(turn.re > zero, turn.im * turn.im / (one + turn.re), one - turn.re)
    less = expm1(z.re)
    real = where(absolute(z.re) < one, less * turn.re - rest, whole.re - one)
    return Pair(where(z.im == zero, where(z.re == zero, zero, less), real), whole.im)


def _log(z: Pair) -> Pair:
    return Pair(_log_size(z, None), atan2(z.im, z.re))


def _log1p(z: Pair) -> Pair:
    """log(1 + z), exact near 0."""
    (one,) = _numbers(z.re, 1.0)
    more = Pair(z.re + one, z.im)
    return Pair(_log_size(more, z), atan2(more.im, more.re))


def _log_size(z: Pair, less: Pair | None) -> Tensor:
    """log |z|: of the larger part, and what the other adds. Near 1 of 1 + (|z|² - 1); `less` is z - 1."""
    zero, one, half, infinity = _numbers(z.re, 0.0, 1.0, 0.5, math.inf)
    first, second = absolute(z.re), absolute(z.im)
    large, small = maximum(first, second), minimum(first, second)
    ratio = where(small == large, one, small / large)
    near = (large > half) & (large < 2.0)
    beyond = where(near, (large - one) * (large + one) + small * small, ratio * ratio)
    if less is not None:
        nearer = (absolute(less.re) < half) & (second < half)
        near = near | nearer
        beyond = where(nearer, less.re * (less.re + 2.0) + z.im * z.im, beyond)
    size = half * log1p(beyond) + where(near, zero, log(where(near, one, large)))
    return where((first == infinity) | (second == infinity), infinity, size)


def _power(a: Pair, b: Pair) -> Pair:
    """e^(b log a); 0 to a power of positive real part is 0, and anything to the power of 0 is 1."""
    zero, one, undefined = _numbers(a.re, 0.0, 1.0, math.nan)
    nought = (a.re == zero) & (a.im == zero)
    result = _exp(_multiply(b, _log(Pair(where(nought, one, a.re), a.im))))
    whole = (b.re == zero) & (b.im == zero)
    none = where(b.re > zero, zero, undefined)
    real = where(whole, one, where(nought, none, result.re))
    return Pair(real, where(whole, zero, where(nought, none, result.im)))


def _sqrt(z: Pair) -> Pair:
    """By the part that has no difference in it; scaled, so that the size does not overflow."""
    zero, one, half, infinity = _numbers(z.re, 0.0, 1.0, 0.5, math.inf)
    huge = maximum(absolute(z.re), absolute(z.im)) > _HUGE
    scale, back = where(huge, 0.25, one), where(huge, 2.0, one)
    re, im = absolute(z.re) * scale, absolute(z.im) * scale
    root = sqrt((re + _size(re, im)) * half)
    other = where(root == zero, zero, half * im / root)
    level = isfinite(z.im)
    # an infinite real part leaves nothing of the other one, an infinite imaginary part is all there is
    root, other = root * back, where((re == infinity) & level, zero, other * back)
    ahead = z.re >= zero
    endless = im == infinity
    real = where(endless, infinity, where(ahead, root, other))
    return Pair(real, _signed(where(endless, infinity, where(ahead, other, root)), z.im))


# Hyperbolic functions; those of i z are the circular ones of z, times ±i


def _hyperbolic(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """sinh and cosh of x clamped so that they are finite, and the factor that they then lack."""
    one, half, limit = _numbers(x, 1.0, 0.5, _EXPONENT)
    size = absolute(x)
    kept = minimum(size, limit)
    less = expm1(kept)  # sinh is exact near 0 only by this
    whole = less + one
    return _signed(half * (less + less / whole), x), half * (whole + one / whole), exp(size - kept)


def _sinh(z: Pair) -> Pair:
    (zero,) = _numbers(z.re, 0.0)
    sine, cosine, factor = _hyperbolic(z.re)
    lost = ~isfinite(z.im) & ((z.re == zero) | isinf(z.re))
    real = where(lost, z.re, sine * cos(z.im) * factor)
    return Pair(real, where(z.im == zero, z.im, cosine * sin(z.im) * factor))


def _cosh(z: Pair) -> Pair:
    zero, infinity = _numbers(z.re, 0.0, math.inf)
    sine, cosine, factor = _hyperbolic(z.re)
    lost = ~isfinite(z.im)
    real = where(lost & isinf(z.re), infinity, cosine * cos(z.im) * factor)
    imaginary = where(lost & (z.re == zero), zero, sine * sin(z.im) * factor)
    return Pair(real, where(z.im == zero, where(signbit(z.re), -z.im, z.im), imaginary))


def _tanh(z: Pair) -> Pair:
    """Where e^2|re| is all there is, the limit; else over 1 + tan² and 1 + sinh²."""
    zero, one, undefined = _numbers(z.re, 0.0, 1.0, math.nan)
    far = absolute(z.re) > _LIMIT
    slope = tan(where(isinf(z.re) & ~isfinite(z.im), zero, z.im))
    steep = one + slope * slope
    s = sinh(where(far, zero, z.re))
    below = one + steep * s * s
    limit = where(isnan(slope), undefined, _signed(one, z.re))
    real = where(far, limit, steep * sqrt(one + s * s) * s / below)
    imaginary = where(far, 4.0 * slope / steep * exp(-2.0 * absolute(z.re)), slope / below)
    imaginary = where(isinf(z.re), _signed(zero, z.im), imaginary)
    return Pair(where(z.re == zero, z.re, real), where(z.im == zero, z.im, imaginary))


_LIMIT = 20.0


# Inverse functions


class Arc(NamedTuple):
    """The terms of the arc sine and the arc cosine: an angle's two legs, and a height."""

    along: Tensor
    across: Tensor
    height: Tensor


def _arc(z: Pair) -> Arc:
    """From the distances to ±1, whose half sum is a ≥ 1: sin(re) = x/a, cosh(im) = a, without differences.

    a - 1 and a - x are each of two forms: y² n where z is on the near side of 1, else the sum w.
    """
    zero, one, half, infinity = _numbers(z.re, 0.0, 1.0, 0.5, math.inf)
    far = (absolute(z.re) > _FAR) | (absolute(z.im) > _FAR)
    scale = where(far, 0.25, one)
    x, y = absolute(z.re) * scale, absolute(z.im) * scale
    apart = absolute(x - one)
    right = where(isinf(x) | isinf(y), infinity, _diagonal(x + one, y))
    left = _diagonal(apart, y)
    a = half * (right + left)
    sum_right, sum_left = right + x + one, left + apart
    n = half * (one / sum_right + one / where(sum_left == zero, one, sum_left))
    w = half * (y * y / sum_right + sum_left)
    inside = x < one
    above = where(inside, y * (y * n), w)
    root = where(inside, y * sqrt(n * (a + one)), sqrt(w * (a + one)))
    across = where(inside, sqrt(w * (a + x)), y * sqrt(n * (a + x)))
    height = log1p(where(far, right, above + root)) + where(far, math.log(8.0), zero)
    return Arc(x, where(far, y, across), height)


_FAR = 1e17  # adding 1 to more than this changes nothing


def _asin(z: Pair) -> Pair:
    (zero,) = _numbers(z.re, 0.0)
    arc = _arc(z)
    real = where(z.re == zero, z.re, _signed(atan2(arc.along, arc.across), z.re))
    return Pair(real, _signed(arc.height, z.im))


def _acos(z: Pair) -> Pair:
    zero, one = _numbers(z.re, 0.0, 1.0)
    arc = _arc(z)
    across = where(z.re == zero, one, arc.across)
    return Pair(atan2(across, _signed(arc.along, z.re)), _signed(arc.height, -z.im))


def _acosh(z: Pair) -> Pair:
    """The arc cosine, rotated to the right half plane."""
    angle, height = _acos(z)
    return Pair(absolute(height), _signed(angle, z.im))


def _atanh(z: Pair) -> Pair:
    """¼ log1p(4 re / ((1 - re)² + im²)), and half an angle; at ±1 and far away the limits."""
    zero, one, two, four, undefined = _numbers(z.re, 0.0, 1.0, 2.0, 4.0, math.nan)
    x, y = absolute(z.re), absolute(z.im)
    far = (x > _FAR) | (y > _FAR)
    close = (x == one) & (y < _CLOSE)
    less = one - x
    real = log1p(where(close, two / y - one, four * x / (less * less + y * y))) / where(close, two, four)
    size = _size(x, y)
    real = where(far, where(isinf(size), zero, x / size / size), real)
    right = where(isnan(z.im) | (isnan(z.re) & ~isinf(z.im)), undefined, math.pi / 2)
    angle = where(far, right, atan2(two * y, less * (one + x) - y * y) / two)
    return Pair(where(z.re == zero, z.re, _signed(real, z.re)), _signed(angle, z.im))


_CLOSE = 1e-9


def _through(function: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """f(i z) / i: of sinh the sine, of tanh the tangent, of asin the inverse of sinh."""
    return lambda z: _divided_by_i(function(_times_i(z)))


# Comparisons


def _equal(a: Pair, b: Pair) -> Tensor:
    return (a.re == b.re) & (a.im == b.im)


def _not_equal(a: Pair, b: Pair) -> Tensor:
    return (a.re != b.re) | (a.im != b.im)


def _scaled(z: Pair, factor: float) -> Pair:
    return Pair(z.re * factor, z.im * factor)


ARITHMETIC: dict[str, Callable[..., Pair]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
}
FORMULAS: dict[str, Callable[..., Pair | Tensor]] = {
    "power": _power,
    "negative": lambda z: Pair(-z.re, -z.im),
    "abs": lambda z: _size(z.re, z.im),
    "sign": _sign,
    "round": lambda z: Pair(round(z.re), round(z.im)),
    "equal": _equal,
    "not_equal": _not_equal,
    "isnan": lambda z: isnan(z.re) | isnan(z.im),
    "isinf": lambda z: isinf(z.re) | isinf(z.im),
    "isfinite": lambda z: isfinite(z.re) & isfinite(z.im),
    "exp": _exp,
    "exp2": lambda z: _exp(Pair(z.re, z.im * math.log(2)), exp2),
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "log2": lambda z: _scaled(_log(z), 1 / math.log(2)),
    "log10": lambda z: _scaled(_log(z), 1 / math.log(10)),
    "sqrt": _sqrt,
    "rsqrt": lambda z: _divide(_numbers(z.re, 1.0)[0], _sqrt(z)),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "asinh": _through(_asin),
    "acosh": _acosh,
    "atanh": _atanh,
    "sin": _through(_sinh),
    "cos": lambda z: _cosh(_times_i(z)),
    "tan": _through(_tanh),
    "asin": _asin,
    "acos": _acos,
    "atan": _through(_atanh),
}
