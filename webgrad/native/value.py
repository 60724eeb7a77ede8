"""Values of LLVM's text, with the types that WGSL knows them by.

A value is one for all lanes (width 0) or has one number in each lane.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

SCALARS = {
    "f16": "half",
    "f32": "float",
    "f64": "double",
    "i32": "i32",
    "u32": "i32",
    "i64": "i64",
    "u64": "i64",
    "bool": "i1",
}
BITS = {"f16": 16, "f32": 32, "f64": 64, "i32": 32, "u32": 32, "i64": 64, "u64": 64, "bool": 1}
FLOATS = ("f16", "f32", "f64")


def llvm_type(scalar: str, width: int) -> str:
    """LLVM's type for a WGSL scalar, in one or several lanes.

    >>> llvm_type("u32", 0), llvm_type("f32", 8)
    ('i32', '<8 x float>')
    """
    base = SCALARS[scalar]
    return f"<{width} x {base}>" if width else base


def number(scalar: str, value: float) -> str:
    """A constant: floats by their bits, as LLVM wants them, integers modulo their range.

    >>> number("f32", 1.0), number("u32", 2**32 - 1), number("bool", 1)
    ('0x3FF0000000000000', '-1', 'true')
    """
    if scalar == "f16":
        return f"0xH{struct.unpack('<H', struct.pack('<e', _rounded('<e', value)))[0]:04X}"
    if scalar in FLOATS:
        wide = _rounded("<f", value) if scalar == "f32" else value
        return f"0x{struct.unpack('<Q', struct.pack('<d', wide))[0]:016X}"
    if scalar == "bool":
        return "true" if value else "false"
    size = BITS[scalar]
    bits = int(value) & ((1 << size) - 1)
    return str(bits - (1 << size) if bits >> (size - 1) else bits)


def _rounded(format: str, value: float) -> float:
    """A number as a narrower float has it."""
    try:
        return float(struct.unpack(format, struct.pack(format, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its LLVM name or constant, its WGSL scalar, its lanes (0: one value for all)."""

    name: str
    scalar: str
    width: int = 0

    @property
    def type(self) -> str:
        """LLVM's type."""
        return llvm_type(self.scalar, self.width)

    @property
    def is_constant(self) -> bool:
        """Whether it is a number that is known, one for all lanes."""
        return not self.width and not self.name.startswith("%")

    @property
    def is_float(self) -> bool:
        """Whether it is a number with a fraction."""
        return self.scalar in FLOATS

    @property
    def is_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.scalar[0] == "i"


def constant(scalar: str, value: float) -> Value:
    """A number as a value."""
    return Value(number(scalar, value), scalar)


def constants(kind: str, numbers: Sequence[int]) -> str:
    """A constant vector of integers.

    >>> constants("i32", [4, 2])
    '<i32 4, i32 2>'
    """
    return "<" + ", ".join(f"{kind} {each}" for each in numbers) + ">"
