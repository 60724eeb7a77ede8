"""Element functions in LLVM's text: computed in float64 and rounded once, as `cpu/functions.py` does.

In: float32 numbers, LANES of them at least. Out: as many results; the last LANES may be computed twice. Only
what exponentials dominate is worth it, and only where native code is in use already: starting LLVM takes
longer than a million of them.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from .calls import call, is_plain, pointer
from .compiler import compiled, is_available, is_started
from .jobs import FIRST_FIELD
from .text import FLOATS, LANES, Function

__all__ = ["sigmoid", "sigmoid_module"]

Array = np.ndarray[Any, Any]
DOUBLES, LONGS = f"<{LANES} x double>", f"<{LANES} x i64>"
X, OUT, COUNT = range(FIRST_FIELD, FIRST_FIELD + 3)
TERMS = 12  # of the series of exp(r), |r| ≤ ln 2 / 2: an error of 1e-14
_ROUND = 1.5 * 2.0**52  # added, it leaves a whole number in the lower bits
_MOST = 110.0  # beyond, a sigmoid in float32 is 0 or 1
_ARGUMENTS = struct.Struct("4q")


def _all(number: float) -> str:
    bits = struct.unpack("<Q", struct.pack("<d", number))[0]
    return f"splat (double 0x{bits:016X})"


def _clamped(f: Function, x: str) -> str:
    """x within ±_MOST; NaN stays."""
    for test, limit in (("ogt", _MOST), ("olt", -_MOST)):
        outside = f(f"fcmp {test} {DOUBLES} {x}, {_all(limit)}")
        x = f(f"select <{LANES} x i1> {outside}, {DOUBLES} {_all(limit)}, {DOUBLES} {x}")
    return x


def _exponentials(f: Function, x: str) -> str:
    """exp of float64 numbers within ±_MOST."""
    shifted = f.fma(x, _all(1 / math.log(2)), _all(_ROUND), DOUBLES)
    whole = f(f"fsub {DOUBLES} {shifted}, {_all(_ROUND)}")
    rest = f.fma(whole, _all(-math.log(2)), x, DOUBLES)
    total = _all(1 / math.factorial(TERMS - 1))
    for power in reversed(range(TERMS - 1)):
        total = f.fma(total, rest, _all(1 / math.factorial(power)), DOUBLES)
    power_bits = f(f"shl {LONGS} {f(f'bitcast {DOUBLES} {shifted} to {LONGS}')}, splat (i64 52)")
    bits = f(f"add {LONGS} {f(f'bitcast {DOUBLES} {total} to {LONGS}')}, {power_bits}")
    missing = f(f"fcmp uno {DOUBLES} {x}, {x}")
    result = f(f"bitcast {LONGS} {bits} to {DOUBLES}")
    return f(f"select <{LANES} x i1> {missing}, {DOUBLES} {x}, {DOUBLES} {result}")


def sigmoid_module() -> str:
    """1 / (1 + exp(-x)) of COUNT numbers."""
    f = Function("run", [("ptr", "fields")], "i64")
    x, out, count = f.field("ptr", X), f.field("ptr", OUT), f.field("i64", COUNT)
    last = f(f"sub i64 {count}, {LANES}")
    with f.loop(0, count, LANES) as at:
        place = f(f"call i64 @llvm.smin.i64(i64 {at}, i64 {last})")
        wide = f(f"fpext {FLOATS} {f.load(FLOATS, x, place, 'float', align=4)} to {DOUBLES}")
        power = _exponentials(f, _clamped(f, f(f"fneg {DOUBLES} {wide}")))
        below = f(f"fadd {DOUBLES} {power}, {_all(1.0)}")
        result = f(f"fdiv {DOUBLES} {_all(1.0)}, {below}")
        f.store(FLOATS, f(f"fptrunc {DOUBLES} {result} to {FLOATS}"), out, place, "float")
    return f.module()


def sigmoid(x: Array, out: Array) -> bool:
    """Fill `out`, which does not share x's memory; False where NumPy must."""
    if x.size < LANES or not is_started() or not is_available():
        return False
    if not is_plain(x, (x.size,)) or not is_plain(out, (x.size,)):
        return False
    call(compiled(sigmoid_module), _ARGUMENTS, 0, pointer(x), pointer(out), x.size)
    return True
