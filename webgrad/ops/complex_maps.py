"""Functions of complex numbers, as formulas over their parts.

In: nodes of one complex dtype. Out: a node: complex, or of floats or bools. Fusion makes one kernel of a
formula as of any other, both devices compute the same, and gradients are those of real functions:
∂L/∂re + i ∂L/∂im. Infinities, NaN and signed zeros follow C's Annex G, as the array API has them, as far as
the standard's own tables of special cases go; where they leave a sign or a NaN open, so do these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..graph.node import Node
from ..tensor import Tensor
from . import primitives
from .elementwise import (
    abs as absolute,
)
from .elementwise import (
    asinh,
    atan2,
    copysign,
    cos,
    cosh,
    exp,
    expm1,
    hypot,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    maximum,
    minimum,
    round,
    sin,
    sinh,
    sqrt,
    tan,
    where,
)
from .primitives import reshape, slice_

__all__ = ["FORMULAS", "matrix_product", "product_over", "running_product"]


class Pair(NamedTuple):
    """The parts of complex numbers."""

    re: Tensor
    im: Tensor


def _pair(x: Node) -> Pair:
    real, imaginary = primitives.parts(x)
    return Pair(Tensor(real), Tensor(imaginary))


def _node(value: Pair | Tensor) -> Node:
    return primitives.join(value.re.node, value.im.node) if isinstance(value, Pair) else value.node


def _turned(z: Pair) -> Pair:
    """i z."""
    return Pair(-z.im, z.re)


def _turned_back(z: Pair) -> Pair:
    """z / i."""
    return Pair(z.im, -z.re)


def _conjugate(z: Pair) -> Pair:
    return Pair(z.re, -z.im)


# Arithmetic


def _add(a: Pair, b: Pair) -> Pair:
    return Pair(a.re + b.re, a.im + b.im)


def _subtract(a: Pair, b: Pair) -> Pair:
    return Pair(a.re - b.re, a.im - b.im)


def _multiply(a: Pair, b: Pair) -> Pair:
    return Pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def _divide(a: Pair, b: Pair) -> Pair:
    """By the larger part of the divisor, so that no square overflows."""
    wide = absolute(b.re) >= absolute(b.im)
    large, small = where(wide, b.re, b.im), where(wide, b.im, b.re)
    ratio = where(b.re == 0, where(b.im == 0, 0.0, b.re / b.im), small / large)
    whole = large + small * ratio
    real = where(wide, a.re + a.im * ratio, a.re * ratio + a.im) / whole
    imaginary = where(wide, a.im - a.re * ratio, a.im * ratio - a.re) / whole
    return Pair(real, imaginary)


def _negative(z: Pair) -> Pair:
    return Pair(-z.re, -z.im)


def _sign(z: Pair) -> Pair:
    """z / |z|; 0 of 0."""
    size = hypot(z.re, z.im)
    zero = size == 0
    return Pair(where(zero, 0.0, z.re / size), where(zero, 0.0, z.im / size))


def _scaled(z: Pair, factor: float) -> Pair:
    return Pair(z.re * factor, z.im * factor)


# Powers and exponentials


def _exp(z: Pair) -> Pair:
    """In two steps where e^re alone would overflow; a real number stays real, whatever its exponential is."""
    far = absolute(z.re) > _EXPONENT
    half = exp(where(far, z.re * 0.5, z.re))
    rest = where(far, half, 1.0)
    vanishing = (z.re == -math.inf) & ~isfinite(z.im)
    real = where(vanishing, 0.0, half * cos(z.im) * rest)
    imaginary = where(vanishing, 0.0, half * sin(z.im) * rest)
    endless = (z.re == math.inf) & ~isfinite(z.im)
    return Pair(where(endless, math.inf, real), where(z.im == 0, z.im, imaginary))


_EXPONENT = 80.0  # up to which e^x is in float32's range


def _expm1(z: Pair) -> Pair:
    """e^z - 1, exact near 0."""
    half = sin(z.im * 0.5)
    whole = _exp(z)
    small = absolute(z.re) < 1
    real = where(small, expm1(where(small, z.re, 0.0)) * cos(z.im) - 2 * half * half, whole.re - 1)
    return Pair(where(z.im == 0, where(z.re == 0, 0.0, expm1(z.re)), real), whole.im)


def _log_size(z: Pair) -> Tensor:
    """log |z|, exact near 1 too, where it is that of 1 + (|z|² - 1)."""
    first, second = absolute(z.re), absolute(z.im)
    large, small = maximum(first, second), minimum(first, second)
    near = (large > 0.5) & (large < 2)
    close = where(near, large, 1.0)
    less = where(near, small, 0.0)
    return where(near, 0.5 * log1p((close - 1) * (close + 1) + less * less), log(hypot(z.re, z.im)))


def _log(z: Pair) -> Pair:
    return Pair(_log_size(z), atan2(z.im, z.re))


def _log1p(z: Pair) -> Pair:
    """log(1 + z), exact near 0."""
    near = (absolute(z.re) < 0.5) & (absolute(z.im) < 0.5)
    re, im = where(near, z.re, 0.0), where(near, z.im, 0.0)
    size = where(near, 0.5 * log1p(re * (re + 2) + im * im), _log_size(Pair(z.re + 1, z.im)))
    return Pair(size, atan2(z.im, z.re + 1))


def _power(a: Pair, b: Pair) -> Pair:
    """e^(b log a); 0 to a power of positive real part is 0, and anything to the power of 0 is 1."""
    zero = (a.re == 0) & (a.im == 0)
    result = _exp(_multiply(b, _log(Pair(where(zero, 1.0, a.re), a.im))))
    nothing = zero & (b.re > 0)
    one = (b.re == 0) & (b.im == 0)
    undefined = zero & ~nothing & ~one
    real = where(nothing, 0.0, where(undefined, math.nan, result.re))
    imaginary = where(nothing | one, 0.0, where(undefined, math.nan, result.im))
    return Pair(where(one, 1.0, real), imaginary)


def _sqrt(z: Pair) -> Pair:
    """By the part that has no difference in it; scaled, so that the size does not overflow."""
    first, second = absolute(z.re), absolute(z.im)
    huge = maximum(first, second) > _HUGE
    scale = where(huge, 0.25, 1.0)
    re, im = z.re * scale, z.im * scale
    root = sqrt((absolute(re) + hypot(re, im)) * 0.5)
    other = where(root == 0, 0.0, absolute(im) / (2 * where(root == 0, 1.0, root)))
    back = where(huge, 2.0, 1.0)
    ahead = z.re >= 0
    real = where(ahead, root, other) * back
    imaginary = copysign(where(ahead, other, root) * back, z.im)
    endless = isinf(z.im)
    left = (z.re == -math.inf) & isfinite(z.im)
    right = (z.re == math.inf) & isfinite(z.im)
    real = where(endless, math.inf, where(left, 0.0, where(right, math.inf, real)))
    imaginary = where(left, copysign(_like(math.inf, z.im), z.im), where(right, 0.0 * z.im, imaginary))
    return Pair(real, where(endless, z.im, imaginary))


_HUGE = 1e37


def _like(value: float, x: Tensor) -> Tensor:
    """A number of x's dtype."""
    return Tensor(primitives.constant("complex", value, x.dtype, x.node.sig.device))


# Circular and hyperbolic functions, and their inverses: those of i z are the others' of z, turned


def _sinh(z: Pair) -> Pair:
    real = where(z.im == 0, sinh(z.re), sinh(z.re) * cos(z.im))
    imaginary = where(z.im == 0, z.im, cosh(z.re) * sin(z.im))
    return Pair(where((z.re == 0) | (isinf(z.re) & ~isfinite(z.im)), z.re, real), imaginary)


def _cosh(z: Pair) -> Pair:
    real = where(z.im == 0, cosh(z.re), cosh(z.re) * cos(z.im))
    zero = copysign(_like(0.0, z.re), z.re) * copysign(_like(1.0, z.im), z.im)
    imaginary = where((z.im == 0) | (z.re == 0), zero, sinh(z.re) * sin(z.im))
    return Pair(where(isinf(z.re) & ~isfinite(z.im), math.inf, real), imaginary)


def _tanh(z: Pair) -> Pair:
    """Where e^2|re| is all there is, the limit; else over 1 + tan² and 1 + sinh²."""
    far, endless = absolute(z.re) > _LIMIT, isinf(z.re)
    x = where(far, 0.0, z.re)
    slope = tan(z.im)
    steep = 1 + slope * slope
    s = sinh(x)
    below = 1 + steep * s * s
    limit = where(endless | isfinite(z.im), copysign(_like(1.0, z.re), z.re), math.nan)
    real = where(z.re == 0, z.re, where(far, limit, steep * sqrt(1 + s * s) * s / below))
    wave = 4 * sin(z.im) * cos(z.im) * exp(-2 * absolute(z.re))
    imaginary = where(endless, copysign(_like(0.0, z.im), z.im), where(far, wave, slope / below))
    return Pair(real, where(z.im == 0, z.im, imaginary))


_LIMIT = 20.0


# Where a part is infinite or NaN, the size is infinite or NaN, and the angle that of z; what stands there for
# other numbers is anything that has a gradient.


def _bounded(z: Pair) -> Tensor:
    return isfinite(z.re) & isfinite(z.im)


def _either(bounded: Tensor, inside: Pair, outside: Pair) -> Pair:
    return Pair(where(bounded, inside.re, outside.re), where(bounded, inside.im, outside.im))


def _outside(z: Pair, bounded: Tensor) -> tuple[Pair, Tensor]:
    """z where it is not bounded, and its size there."""
    size = where(isinf(z.re) | isinf(z.im), _like(math.inf, z.re), math.nan)
    return Pair(where(bounded, 1.0, z.re), where(bounded, 1.0, z.im)), size


def _asinh(z: Pair) -> Pair:
    return _turned_back(_asin(_turned(z)))


def _asin(z: Pair) -> Pair:
    """Kahan's, by the roots of 1 - z and 1 + z."""
    less, more = _sqrt(Pair(1 - z.re, -z.im)), _sqrt(Pair(1 + z.re, z.im))
    real = atan2(z.re, less.re * more.re - less.im * more.im)
    inside = Pair(real, copysign(asinh(less.re * more.im - less.im * more.re), z.im))
    bounded = _bounded(z)
    out, size = _outside(z, bounded)
    angle = where(out.re == 0, out.re, atan2(out.re, absolute(out.im)))
    return _either(bounded, inside, Pair(angle, copysign(size, z.im)))


def _acos(z: Pair) -> Pair:
    less, more = _sqrt(Pair(1 - z.re, -z.im)), _sqrt(Pair(1 + z.re, z.im))
    inside = Pair(2 * atan2(less.re, more.re), asinh(more.re * less.im - more.im * less.re))
    bounded = _bounded(z)
    out, size = _outside(z, bounded)
    angle = where(out.re == 0, math.pi / 2, atan2(absolute(out.im), out.re))
    return _either(bounded, inside, Pair(angle, -copysign(size, z.im)))


def _acosh(z: Pair) -> Pair:
    less, more = _sqrt(Pair(z.re - 1, z.im)), _sqrt(Pair(z.re + 1, z.im))
    inside = Pair(asinh(less.re * more.re + less.im * more.im), 2 * atan2(less.im, more.re))
    bounded = _bounded(z)
    out, size = _outside(z, bounded)
    angle = where(out.re == 0, copysign(_like(math.pi / 2, z.im), z.im), atan2(out.im, out.re))
    return _either(bounded, inside, Pair(size, angle))


def _atanh(z: Pair) -> Pair:
    """¼ log1p(4 re / ((1 - re)² + im²)), and half the angle of 1 - z² turned; π/2 far away."""
    x = absolute(z.re)
    apart = (1 - x) * (1 - x) + z.im * z.im
    real = copysign(0.25 * log1p(4 * (x / apart)), z.re)
    inside = Pair(real, 0.5 * atan2(2 * z.im, (1 - x) * (1 + x) - z.im * z.im))
    endless = isinf(z.re) | isinf(z.im)
    zero = where(endless | (z.re == 0), copysign(_like(0.0, z.re), z.re), math.nan)
    quarter = where(endless & ~isnan(z.im), copysign(_like(math.pi / 2, z.im), z.im), math.nan)
    return _either(_bounded(z), inside, Pair(zero, quarter))


def _through(function: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """f(i z) / i: of sinh the sine, of tanh the tangent, of atanh the arc tangent."""
    return lambda z: _turned_back(function(_turned(z)))


# Questions


def _equal(a: Pair, b: Pair) -> Tensor:
    return (a.re == b.re) & (a.im == b.im)


def _not_equal(a: Pair, b: Pair) -> Tensor:
    return (a.re != b.re) | (a.im != b.im)


_ROWS: dict[str, Callable[..., Pair | Tensor]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "negative": _negative,
    "abs": lambda z: hypot(z.re, z.im),
    "sign": _sign,
    "round": lambda z: Pair(round(z.re), round(z.im)),
    "equal": _equal,
    "not_equal": _not_equal,
    "isnan": lambda z: isnan(z.re) | isnan(z.im),
    "isinf": lambda z: isinf(z.re) | isinf(z.im),
    "isfinite": lambda z: isfinite(z.re) & isfinite(z.im),
    "exp": _exp,
    "exp2": lambda z: _exp(_scaled(z, math.log(2))),
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "log2": lambda z: _scaled(_log(z), 1 / math.log(2)),
    "log10": lambda z: _scaled(_log(z), 1 / math.log(10)),
    "sqrt": _sqrt,
    "rsqrt": lambda z: _divide(Pair(z.re * 0 + 1, z.im * 0), _sqrt(z)),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "sin": _through(_sinh),
    "cos": lambda z: _cosh(_turned(z)),
    "tan": _through(_tanh),
    "asin": _asin,
    "acos": _acos,
    "atan": _through(_atanh),
}


def _of_nodes(formula: Callable[..., Pair | Tensor]) -> Callable[..., Node]:
    return lambda *nodes: _node(formula(*map(_pair, nodes)))


FORMULAS = {name: _of_nodes(formula) for name, formula in _ROWS.items()}


# Products of many


def matrix_product(a: Node, b: Node) -> Node:
    """(…, m, k) @ (…, k, n): four products of the parts."""
    first, second = _pair(a), _pair(b)
    return _node(
        Pair(
            first.re @ second.re - first.im @ second.im,
            first.re @ second.im + first.im @ second.re,
        )
    )


def product_over(x: Node, axes: tuple[int, ...]) -> Node:
    """The product over axes: halves multiplied with each other until one is left."""
    rest = tuple(axis for axis in range(len(x.sig.shape)) if axis not in axes)
    sides = tuple(x.sig.shape[axis] for axis in rest)
    count = math.prod(x.sig.shape[axis] for axis in axes)
    line = reshape(primitives.permute(x, (*rest, *axes)), (*sides, count))
    if not count:
        return primitives.expand(primitives.constant("prod", 1, x.sig.dtype, x.sig.device), sides)
    while count > 1:
        half = count // 2
        pairs = [_cut(line, at * half, (at + 1) * half) for at in (0, 1)]
        product = FORMULAS["multiply"](*pairs)
        odd = [_cut(line, 2 * half, count)] if count % 2 else []
        line = primitives.concat([product, *odd], len(sides))
        count = half + count % 2
    return reshape(line, sides)


def running_product(x: Node, axis: int) -> Node:
    """Running products along an axis: each element by what stands 1, 2, 4 … before it, in turn."""
    rank, length = len(x.sig.shape), x.sig.shape[axis]
    last = (*(each for each in range(rank) if each != axis), axis)
    line = primitives.permute(x, last)
    step = 1
    while step < length:
        product = FORMULAS["multiply"](_cut(line, step, length), _cut(line, 0, length - step))
        line = primitives.concat([_cut(line, 0, step), product], rank - 1)
        step *= 2
    return primitives.permute(line, tuple(last.index(each) for each in range(rank)))


def _cut(line: Node, start: int, stop: int) -> Node:
    *sides, _ = line.sig.shape
    return slice_(line, (*((0, side, 1) for side in sides), (start, stop, 1)))
