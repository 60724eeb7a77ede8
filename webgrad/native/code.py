"""LLVM's text while it is written: values, and the instructions of one function.

A value is one for all lanes (width 0) or has one number in each lane; `Code` writes instructions over either
alike. Invariant: an instruction without side effects is written once in each block that it is reached from;
whoever opens a block pushes a dict onto `memo`, and pops it where the block ends.
"""

from __future__ import annotations

import re
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
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_SHORT = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}
_FLAGS = {
    "ctlz": ", i1 false",
    "cttz": ", i1 false",
    "abs": ", i1 false",
}  # defined for 0, and for the lowest


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


class Code:
    """The instructions of a function while they are written.

    `lines` and `variables` (places on the stack, which LLVM makes registers of) are its body; `declared` are
    the lines that the module needs beside the function: intrinsics, and tables of constants.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.declared: set[str] = set()
        self.memo: list[dict[str, str]] = [{}]
        self.count = 0

    def new(self, letter: str = "v") -> str:
        """A name that nothing has yet, with its %."""
        self.count += 1
        return f"%{letter}{self.count}"

    def do(self, line: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {line}")

    def __call__(self, text: str) -> str:
        """The name of an instruction's value; the same instruction is not written again."""
        for scope in self.memo:
            if text in scope:
                return scope[text]
        name = self.fresh(text)
        self.memo[-1][text] = name
        return name

    def fresh(self, text: str) -> str:
        """The name of an instruction's value, which may be another each time: a load."""
        name = self.new()
        self.do(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        """A new block; the one before it must have ended with a branch."""
        self.lines.append(f"{name}:")

    def variable(self, type: str, align: int = 64) -> str:
        """The address of a place on the stack."""
        name = self.new("p")
        self.variables.append(f"  {name} = alloca {type}, align {align}")
        return name

    def intrinsic(self, name: str, type: str, *args: str, result: str | None = None) -> str:
        """A call of llvm.name over operands of one type; the result has it too, unless another is given."""
        made = result or type
        # The result's type is part of the name where it is not that of the operands, or follows from it.
        converts = result is not None and name.endswith(".sat")
        types = [made, type] if converts else [type]
        full = ".".join(["llvm", name, *map(_suffix, types)])
        more = _FLAGS.get(name, "")
        operands = ", ".join([type] * len(args)) + more.removesuffix(" false")
        self.declared.add(f"declare {made} @{full}({operands})")
        return self(f"call {made} @{full}({', '.join(f'{type} {each}' for each in args)}{more})")

    def shuffle(self, type: str, value: str, places: Sequence[int], other: str = "poison") -> str:
        """Elements of a vector, or of two, by their places."""
        chosen = ", ".join(f"i32 {each}" for each in places)
        return self(f"shufflevector {type} {value}, {type} {other}, <{len(places)} x i32> <{chosen}>")

    def splat(self, value: Value, width: int) -> Value:
        """One value in every lane; one that is in lanes already stays."""
        if value.width or not width:
            return value
        base, type = SCALARS[value.scalar], llvm_type(value.scalar, width)
        if value.is_constant:
            return Value(f"splat ({base} {value.name})", value.scalar, width)
        one = self(f"insertelement {type} poison, {base} {value.name}, i64 0")
        name = self(f"shufflevector {type} {one}, {type} poison, <{width} x i32> zeroinitializer")
        return Value(name, value.scalar, width)

    def level(self, *values: Value) -> list[Value]:
        """The values with as many lanes as the widest has."""
        width = max(each.width for each in values)
        return [self.splat(each, width) for each in values]


def _suffix(type: str) -> str:
    """A type in the name of an intrinsic: <8 x float> is v8f32."""
    found = _VECTOR.fullmatch(type)
    if found is None:
        return _SHORT.get(type, type)
    return f"v{found[1]}{_SHORT.get(found[2], found[2])}"
