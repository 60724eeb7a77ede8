"""Element functions in LLVM's text: computed in float64 and rounded once, as `cpu/functions.py` does.

In: float32 numbers, LANES of them at least. Out: as many results; the last LANES may be computed twice. Only
what exponentials dominate is worth it, and only where native code is in use already, or would have paid by
now: starting LLVM takes as long as millions of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from ..arrays import Array
from ..ops.references import GELU_CUBIC, GELU_SCALE
from .calls import call, is_plain, pointer
from .compiler import compiled, is_available, is_started
from .error_function import END, SERIES, SLOPE, TAIL
from .jobs import FIRST_FIELD
from .text import FLOATS, LANES, Function

__all__ = ["FUNCTIONS", "map_module", "mapped"]

DOUBLES, LONGS = f"<{LANES} x double>", f"<{LANES} x i64>"
X, OUT, COUNT = range(FIRST_FIELD, FIRST_FIELD + 3)
TERMS = 12  # of the series of exp(r), |r| ≤ ln 2 / 2: an error of 1e-14
WORTH = 1 << 24  # numbers that NumPy has computed when LLVM is started for the next ones
LENT = 1 << 12  # numbers from which other threads may have the interpreter
_ROUND = 1.5 * 2.0**52  # added, it leaves a whole number in the lower bits
_MOST = 700.0  # exponents, either way: beyond, nothing is left of a float32
_SIGN = -(1 << 63)
_ARGUMENTS = struct.Struct("4q")
_by_numpy = 0  # numbers so far


def _all(number: float) -> str:
    bits = struct.unpack("<Q", struct.pack("<d", number))[0]
    return f"splat (double 0x{bits:016X})"


# Arithmetic of DOUBLES


def _do(f: Function, name: str, a: str, b: str) -> str:
    return f(f"{name} {DOUBLES} {a}, {b}")


def _choose(f: Function, test: str, a: str, b: str, one: str, other: str) -> str:
    """`one` where a test of a and b holds, else `other`; unordered tests hold for NaN."""
    holds = f(f"fcmp {test} {DOUBLES} {a}, {b}")
    return f(f"select <{LANES} x i1> {holds}, {DOUBLES} {one}, {DOUBLES} {other}")


def _at_most(f: Function, x: str, limit: float) -> str:
    return _choose(f, "ogt", x, _all(limit), _all(limit), x)


def _at_least(f: Function, x: str, limit: float) -> str:
    return _choose(f, "olt", x, _all(limit), _all(limit), x)


def _bits(f: Function, x: str) -> str:
    return f(f"bitcast {DOUBLES} {x} to {LONGS}")


def _size(f: Function, x: str) -> str:
    """|x|."""
    return f(f"bitcast {LONGS} {f(f'and {LONGS} {_bits(f, x)}, splat (i64 {~_SIGN})')} to {DOUBLES}")


def _signed(f: Function, size: str, x: str) -> str:
    """A number that is not negative, with the sign of x."""
    sign = f(f"and {LONGS} {_bits(f, x)}, splat (i64 {_SIGN})")
    return f(f"bitcast {LONGS} {f(f'or {LONGS} {_bits(f, size)}, {sign}')} to {DOUBLES}")


def _polynomial(f: Function, coefficients: Sequence[float], x: str) -> str:
    """Highest power first."""
    total = _all(coefficients[0])
    for each in coefficients[1:]:
        total = f.fma(total, x, _all(each), DOUBLES)
    return total


def _exponential(f: Function, x: str) -> str:
    """exp of numbers within ±_MOST; NaN stays."""
    shifted = f.fma(x, _all(1 / math.log(2)), _all(_ROUND), DOUBLES)
    whole = _do(f, "fsub", shifted, _all(_ROUND))
    rest = f.fma(whole, _all(-math.log(2)), x, DOUBLES)
    series = _polynomial(f, [1 / math.factorial(power) for power in reversed(range(TERMS))], rest)
    power = f(f"shl {LONGS} {_bits(f, shifted)}, splat (i64 52)")
    result = f(f"bitcast {LONGS} {f(f'add {LONGS} {_bits(f, series)}, {power}')} to {DOUBLES}")
    return _choose(f, "uno", x, x, x, result)


def _complement(f: Function, z: str) -> str:
    """erfc of z, from 0 to END."""
    t = _do(f, "fdiv", _all(1.0), f.fma(z, _all(SLOPE), _all(1.0), DOUBLES))
    tail = _do(f, "fmul", _polynomial(f, TAIL, t), t)
    square = _do(f, "fmul", z, f(f"fneg {DOUBLES} {z}"))
    return _do(f, "fmul", tail, _exponential(f, square))


# The functions, of DOUBLES


def _sigmoid(f: Function, x: str) -> str:
    """1 / (1 + exp(-x))."""
    power = _exponential(f, _at_least(f, _at_most(f, f(f"fneg {DOUBLES} {x}"), _MOST), -_MOST))
    return _do(f, "fdiv", _all(1.0), _do(f, "fadd", power, _all(1.0)))


def _erfc(f: Function, x: str) -> str:
    tail = _complement(f, _at_most(f, _size(f, x), END))
    return _choose(f, "olt", x, _all(0.0), _do(f, "fsub", _all(2.0), tail), tail)


def _erf(f: Function, x: str) -> str:
    size = _size(f, x)
    large = _signed(f, _do(f, "fsub", _all(1.0), _complement(f, _at_most(f, size, END))), x)
    small = _do(f, "fmul", _polynomial(f, SERIES, _do(f, "fmul", x, x)), x)
    return _choose(f, "olt", size, _all(0.5), small, large)


def _gelu(f: Function, x: str) -> str:
    """max(x, 0) - |x| Φ(-|x|)."""
    z = _do(f, "fmul", _at_most(f, _size(f, x), END * math.sqrt(2)), _all(math.sqrt(0.5)))
    tail = _do(f, "fmul", _complement(f, z), _do(f, "fmul", z, _all(math.sqrt(0.5))))
    return _do(f, "fsub", _at_least(f, x, 0.0), tail)


def _gelu_tanh(f: Function, x: str) -> str:
    """x sigmoid(GELU_SCALE (x + GELU_CUBIC x³)); far out on the left it is 0, at -inf too."""
    near = _at_least(f, x, -1e3)
    factors = _all(-GELU_SCALE * GELU_CUBIC), _all(-GELU_SCALE)
    slope = f.fma(_do(f, "fmul", near, near), *factors, DOUBLES)
    exponent = _at_least(f, _at_most(f, _do(f, "fmul", slope, near), _MOST), -_MOST)
    return _do(f, "fdiv", near, _do(f, "fadd", _exponential(f, exponent), _all(1.0)))


FUNCTIONS: dict[str, Callable[[Function, str], str]] = {
    "erf": _erf,
    "erfc": _erfc,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "sigmoid": _sigmoid,
}


def map_module(name: str) -> str:
    """A function of COUNT numbers."""
    f = Function("run", [("ptr", "fields")], "i64")
    x, out, count = f.field("ptr", X), f.field("ptr", OUT), f.field("i64", COUNT)
    last = f(f"sub i64 {count}, {LANES}")
    with f.loop(0, count, LANES) as at:
        place = f(f"call i64 @llvm.smin.i64(i64 {at}, i64 {last})")
        wide = f(f"fpext {FLOATS} {f.load(FLOATS, x, place, 'float', align=4)} to {DOUBLES}")
        result = FUNCTIONS[name](f, wide)
        f.store(FLOATS, f(f"fptrunc {DOUBLES} {result} to {FLOATS}"), out, place, "float")
    return f.module()


def mapped(name: str, x: Array, out: Array) -> bool:
    """Fill `out`, which does not share x's memory; False where NumPy must."""
    if x.size < LANES or not is_available() or not _pays(x.size):
        return False
    if not is_plain(x, (x.size,)) or not is_plain(out, (x.size,)):
        return False
    given = pointer(x), pointer(out), x.size
    call(compiled(map_module, name), _ARGUMENTS, 0, *given, long=x.size >= LENT)
    return True


def _pays(count: int) -> bool:
    """Whether LLVM is there, or it is time to start it."""
    global _by_numpy
    if is_started():
        return True
    _by_numpy += count
    return _by_numpy > WORTH
