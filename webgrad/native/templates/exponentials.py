"""Exponentials in LLVM's text: of vectors of floats, by a polynomial.

In: numbers that are at most 0, as those are that a maximum was subtracted from. Out: their exponentials, to
two units in the last place. The invariant: what is less than normal numbers are is 0, NaN stays NaN.
"""

from __future__ import annotations

import math
import struct
import sys
from typing import NamedTuple

from ..text import LANES, Function

__all__ = ["INTEGER", "exponentials", "lowest", "written"]

INTEGER = {"float": "i32", "double": "i64"}  # as wide as each type of floats


class _Exp(NamedTuple):
    """exp(n ln 2 + r) = 2**n (1 + r + r² polynomial(r)): the polynomial with its highest power first, ln 2 in
    two parts, what is added so that n lies in the lower bits, and of the format the bias and where the
    exponent is; below `least` exp is less than any normal number.
    """

    powers: tuple[float, ...]
    ln2: tuple[float, float]
    rounding: float
    bias: int
    shift: int
    least: float


_EXP = {
    "float": _Exp(
        (
            *(
                float.fromhex("0x1.a0d2cep-13"),
                float.fromhex("0x1.6e879cp-10"),
                float.fromhex("0x1.111210p-7"),
            ),
            *(float.fromhex("0x1.555382p-5"), float.fromhex("0x1.555554p-3"), 0.5),
        ),
        (0.693359375, math.log(2) - 0.693359375),
        1.5 * 2.0**23,
        127,
        23,
        -87.336,
    ),
    "double": _Exp(
        tuple(1 / math.factorial(power) for power in range(13, 1, -1)),
        (float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")),
        1.5 * 2.0**52,
        1023,
        52,
        -708.39,
    ),
}
_LOWEST = {"float": -(2.0**128 - 2.0**104), "double": -sys.float_info.max}


def exponentials(f: Function, x: str, kind: str = "float", lanes: int = LANES) -> str:
    """exp of a vector."""
    vector, integer = f"<{lanes} x {kind}>", f"<{lanes} x {INTEGER[kind]}>"
    made = _EXP[kind]

    def all_of(number: float) -> str:
        return f"splat ({kind} {written(kind, number)})"

    rounding = all_of(made.rounding)
    shifted = f.fma(x, all_of(1 / math.log(2)), rounding, vector)
    whole = f(f"fsub {vector} {shifted}, {rounding}")
    rest = f.fma(whole, all_of(-made.ln2[1]), f.fma(whole, all_of(-made.ln2[0]), x, vector), vector)
    polynomial = all_of(made.powers[0])
    for each in made.powers[1:]:
        polynomial = f.fma(polynomial, rest, all_of(each), vector)
    square = f(f"fmul {vector} {rest}, {rest}")
    fraction = f(f"fadd {vector} {f.fma(square, polynomial, rest, vector)}, {all_of(1.0)}")
    number = f(f"bitcast {vector} {shifted} to {integer}")  # its lower bits are the exponent
    biased = f(f"add {integer} {number}, splat ({INTEGER[kind]} {made.bias})")
    bits = f(f"shl {integer} {biased}, splat ({INTEGER[kind]} {made.shift})")
    result = f(f"fmul {vector} {fraction}, {f(f'bitcast {integer} {bits} to {vector}')}")
    small = f(f"fcmp olt {vector} {x}, {all_of(made.least)}")
    return f(f"select <{lanes} x i1> {small}, {vector} zeroinitializer, {vector} {result}")


def written(kind: str, number: float) -> str:
    """A number as LLVM has it: rounded, by the bits of a double."""
    if kind == "float":
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def lowest(kind: str) -> str:
    """The least finite number: of scores of which none is seen, the maximum."""
    return written(kind, _LOWEST[kind])
