"""Element functions that the rows of the op table leave to plain NumPy, in a quick form.

In: arrays, and `out`, which has their broadcast shape and does not share their memory. Out: `out`, or a new
array. The rows stay the truth: these agree with them up to rounding, and in every special value. Floats are
computed in float64 and rounded once, or twice; a long array goes by pieces, so that what is in between stays
in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..arrays import Array, np
from ..native.error_function import END, SERIES, SLOPE, TAIL
from ..native.maps import mapped
from ..ops.references import GELU_CUBIC, GELU_SCALE, float_power
from ..runtime.threads import Scratch

__all__ = ["element_function"]

Function = Callable[..., Any]

PIECE = 1 << 16
_scratch = Scratch()
_DOUBLE = np.dtype(np.float64)


def element_function(name: str, numpy: Function, dtype: np.dtype[Any]) -> Function | None:
    """The function of a map op whose operands have a dtype: takes arrays and `out`. None: only the row has
    one.
    """
    if isinstance(numpy, np.ufunc):
        return numpy
    if name == "power" and dtype.kind == "f":
        return float_power
    if name in _DOUBLES:
        return _DOUBLES[name] if dtype == np.float32 else None
    return _OTHERS.get(name)


# Float functions, by pieces


def _by_pieces(name: str, kernel: Callable[[Array, Array], None]) -> Function:
    """A function of float32 arrays by flat pieces of at most PIECE elements: native code of its name where it
    pays, else the kernel, by NumPy.
    """

    def function(x: Array, out: Array | None = None) -> Array:
        source = np.ravel(x)
        direct = out is not None and out.flags.c_contiguous and out.size == source.size
        result = out if direct else np.empty(np.shape(x), np.float32)
        assert result is not None
        target = result.reshape(-1)
        for start in range(0, source.size, PIECE):
            piece, made = source[start : start + PIECE], target[start : start + PIECE]
            if not mapped(name, piece, made):
                kernel(piece, made)
        if out is None or direct:
            return result
        np.copyto(out, result)
        return out

    return function


def _doubles(count: int, size: int) -> list[Array]:
    return [_scratch.array(number, (size,), _DOUBLE, 8 * PIECE) for number in range(count)]


def _polynomial(coefficients: tuple[float, ...], x: Array, out: Array) -> None:
    """Highest power first."""
    np.multiply(x, coefficients[0], out=out)
    for each in coefficients[1:-1]:
        out += each
        out *= x
    out += coefficients[-1]


def _complement(z: Array, t: Array, tail: Array) -> None:
    """erfc of z, from 0 to END, into `tail`; z becomes exp(-z²)."""
    np.multiply(z, SLOPE, out=t)
    t += 1
    np.reciprocal(t, out=t)
    _polynomial(TAIL, t, tail)
    tail *= t
    np.multiply(z, z, out=z)
    np.negative(z, out=z)
    np.exp(z, out=z)
    tail *= z


def _erfc(x: Array, out: Array) -> None:
    z, t, tail = _doubles(3, x.size)
    np.abs(x, out=z)
    np.minimum(z, END, out=z)
    _complement(z, t, tail)
    np.subtract(2, tail, out=tail, where=np.signbit(x))
    np.copyto(out, tail, casting="same_kind")


def _erf(x: Array, out: Array) -> None:
    z, t, tail = _doubles(3, x.size)
    np.abs(x, out=z)
    small = z < 0.5
    np.minimum(z, END, out=z)
    _complement(z, t, tail)
    np.subtract(1, tail, out=tail)
    np.copysign(tail, x, out=tail)
    if small.any():
        np.multiply(x, x, out=z, dtype=np.float64)
        _polynomial(SERIES, z, t)
        t *= x
        np.copyto(tail, t, where=small)
    np.copyto(out, tail, casting="same_kind")


def _gelu(x: Array, out: Array) -> None:
    """max(x, 0) - |x| Φ(-|x|): no cancellation on either side."""
    z, t, tail = _doubles(3, x.size)
    np.abs(x, out=z)
    np.minimum(z, END * math.sqrt(2), out=z)
    z *= math.sqrt(0.5)
    np.multiply(z, math.sqrt(0.5), out=out, casting="same_kind")  # |x| / 2, where that still matters
    _complement(z, t, tail)
    tail *= out
    np.maximum(x, 0, out=t)
    t -= tail
    np.copyto(out, t, casting="same_kind")


def _gelu_tanh(x: Array, out: Array) -> None:
    """x sigmoid(GELU_SCALE (x + GELU_CUBIC x³)); far out on the left it is 0, at -inf too."""
    wide, u = _doubles(2, x.size)
    near = bool(x.min() >= -10)  # else the divisor may be more than float32 holds; and not so where NaN is
    if near:
        np.copyto(wide, x)
    else:
        np.maximum(x, np.float32(-1e3), out=out)
        np.copyto(wide, out)  # ufuncs that convert go by small buffers: a copy of its own is quicker
    np.multiply(wide, wide, out=u)
    u *= -GELU_SCALE * GELU_CUBIC
    u -= GELU_SCALE
    u *= wide
    np.exp(u, out=u)
    u += 1
    if near:
        np.copyto(out, u, casting="same_kind")
        np.divide(x, out, out=out)
    else:
        np.divide(wide, u, out=u)
        np.copyto(out, u, casting="same_kind")


def _sigmoid(x: Array, out: Array) -> None:
    (wide,) = _doubles(1, x.size)
    np.negative(x, out=out)
    np.copyto(wide, out)
    np.exp(wide, out=wide)
    wide += 1
    np.reciprocal(wide, out=wide)
    np.copyto(out, wide, casting="same_kind")


_KERNELS = {"erf": _erf, "erfc": _erfc, "gelu": _gelu, "gelu_tanh": _gelu_tanh, "sigmoid": _sigmoid}
_DOUBLES: dict[str, Function] = {name: _by_pieces(name, kernel) for name, kernel in _KERNELS.items()}


# Others, of any dtype


def _rsqrt(x: Array, out: Array | None = None) -> Array:
    root: Array = np.sqrt(x, out=out)
    return np.divide(1, root, out=out)


_WORDS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
FEW = 512  # elements up to which one call of NumPy is quicker than several


def _where(condition: Array, a: Array, b: Array, out: Array | None = None) -> Array:
    """By bits, b ^ (a ^ b) · condition: NumPy's own goes element by element, ten times slower."""
    word = _WORDS.get(a.dtype.itemsize)
    shape = np.broadcast(condition, a, b).shape if out is None else out.shape
    if word is None or a.dtype != b.dtype or condition.dtype != np.bool_ or math.prod(shape) <= FEW:
        chosen = np.where(condition, a, b)
        if out is None:
            return chosen
        np.copyto(out, chosen)
        return out
    result = np.empty(shape, a.dtype) if out is None else out
    if result.dtype != a.dtype:
        np.copyto(result, _where(condition, a, b))
        return result
    kept, x, y, bits = condition.view(np.int8), a.view(word), b.view(word), result.view(word)
    if y.ndim == 0 and not y:
        np.multiply(x, kept, out=bits)
    elif x.ndim == 0 and not x:
        np.multiply(y, np.logical_not(condition).view(np.int8), out=bits)
    else:
        np.bitwise_xor(x, y, out=bits)
        np.multiply(bits, kept, out=bits)
        np.bitwise_xor(bits, y, out=bits)
    return result


_OTHERS: dict[str, Function] = {"rsqrt": _rsqrt, "where": _where}
