"""WGSL's expressions over values and vectors of them.

In: trees, and what their names stand for. Out: instructions in a `Function`, and the value. What a call of a
function does, and how variables are read, is the subclass's.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias, cast

from ...errors import CompileError
from ...wgsl import library
from ...wgsl.source import Source
from ..value import Value, constant, llvm_type
from . import tree
from .arithmetic import Arithmetic
from .parser import Parser

WORDS = library.WORDS | {each: each for each in library.WORDS.values()}


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of WGSL, or an array of constants: its elements, each of which may have many lanes."""

    parts: tuple[Value, ...]

    @property
    def scalar(self) -> str:
        """The type of the elements."""
        return self.parts[0].scalar


@dataclass(frozen=True, slots=True)
class Variable:
    """A place for a value."""

    place: str
    scalar: str
    width: int


class Pointer(NamedTuple):
    """`&variable`."""

    to: Variable


Operand: TypeAlias = Value | Vector | int | float  # numbers of Python are WGSL's abstract ones
Bound: TypeAlias = Operand | Variable | Pointer


@dataclass(slots=True)
class Names:
    """What names stand for, and the text that they are in."""

    source: Source
    scope: dict[str, Bound]


@cache
def _spelling(text: str) -> tuple[tree.Expression, Source]:
    source = Source(text)
    return Parser(source).expression(), source


class Expressions(Arithmetic):
    """Expressions over `Operand`s."""

    @abstractmethod
    def called(self, name: str, args: Sequence[Bound]) -> Bound | None:
        """The result of a function, if it has one."""

    def spelled(self, text: str, args: Sequence[Value], contract: bool = False) -> Value:
        """A map op's spelling applied to values; `contract` lets LLVM fuse it with its neighbours."""
        expression, source = _spelling(text)
        scope: dict[str, Bound] = {f"{{{at}}}": each for at, each in enumerate(args)}
        with self.fusing(contract):
            return self.concrete(self.value(expression, Names(source, scope)))

    def load(self, variable: Variable) -> Value:
        """A variable's value now."""
        type = llvm_type(variable.scalar, variable.width)
        name = self.code(f"load {type}, ptr {variable.place}")
        return Value(name, variable.scalar, variable.width)

    def value(self, each: tree.Expression, names: Names) -> Operand:
        """An expression's value."""
        found = self.bound(each, names)
        if isinstance(found, Variable):
            return self.load(found)
        if found is None or isinstance(found, Pointer):
            raise names.source.error(each.at, "a value is expected")
        return found

    def bound(self, each: tree.Expression, names: Names) -> Bound | None:
        """The same, where it may be a variable, a pointer, or nothing."""
        if isinstance(each, tree.Number):
            return literal(each.text)
        if isinstance(each, tree.Name):
            if each.name in ("true", "false"):
                return Value(each.name, "bool")
            if each.name not in names.scope:
                raise names.source.error(each.at, f"`{each.name}` is not known here")
            return names.scope[each.name]
        if isinstance(each, tree.Unary):
            return self.unary(each, names)
        if isinstance(each, tree.Binary):
            return self.operation(each.sign, self.value(each.left, names), self.value(each.right, names))
        if isinstance(each, tree.Call):
            return self.applied(each, names)
        of = self.value(each.of, names)
        if not isinstance(of, Vector):
            raise names.source.error(each.at, "only vectors have elements here")
        if isinstance(each, tree.Index):
            return self.element(of, self.concrete(self.value(each.place, names), "u32"))
        places = [
            "xyzw".find(letter) % 4 if letter in "xyzw" else "rgba".index(letter) for letter in each.name
        ]
        return of.parts[places[0]] if len(places) == 1 else Vector(tuple(of.parts[at] for at in places))

    def unary(self, each: tree.Unary, names: Names) -> Bound:
        """A sign before an expression."""
        if each.sign == "&":
            variable = self.bound(each.operand, names)
            if not isinstance(variable, Variable):
                raise names.source.error(each.at, "`&` is only translated before a variable's name")
            return Pointer(variable)
        if each.sign == "*":
            pointer = self.bound(each.operand, names)
            if not isinstance(pointer, Pointer):
                raise names.source.error(each.at, "`*` needs a pointer")
            return pointer.to
        x = self.value(each.operand, names)
        if isinstance(x, int | float):
            return -x if each.sign == "-" else ~int(x)
        return self.lifted(lambda part: self.signed(each.sign, part), x)

    def operation(self, sign: str, a: Operand, b: Operand) -> Operand:
        """A binary operator over numbers, values and vectors."""
        if isinstance(a, int | float) and isinstance(b, int | float):
            return folded(sign, a, b)
        if isinstance(b, int | float):
            b = constant("u32" if sign in ("<<", ">>") else cast(Value | Vector, a).scalar, b)
        elif isinstance(a, int | float):
            a = self.concrete(a) if sign in ("<<", ">>") else constant(b.scalar, a)
        return self.lifted(lambda x, y: self.binary(sign, x, y), a, b)

    def applied(self, each: tree.Call, names: Names) -> Bound | None:
        """A call, a conversion or a constructor."""
        name = each.callee.name
        args = [self.argument(one, names) for one in each.arguments]
        if name.startswith("wg_"):
            return self.called(name, args)
        values = [cast(Operand, one) for one in args]
        if name in WORDS:
            return self.lifted(lambda x: self.convert(WORDS[name], x), *(values or [0]), scalar=WORDS[name])
        if name == "bitcast":
            scalar = _scalar(each.callee.template[0])
            return self.lifted(lambda x: self.bitcast(scalar, x), *values)
        if name.startswith("vec") or name == "array":
            return self.constructed(each.callee, values)
        if name in ("unpack2x16float", "unpack4xI8", "unpack4xU8"):
            return self.unpacked(name, self.concrete(values[0]))
        if name in ("pack4xI8", "pack4xU8"):
            return self.packed(cast(Vector, values[0]))
        alike = values[:2] if name == "select" else values
        numbers = next((one.scalar for one in alike if not isinstance(one, int | float)), None)
        return self.lifted(lambda *parts: self.builtin(name, parts), *values, scalar=numbers)

    def argument(self, each: tree.Expression, names: Names) -> Bound:
        """What a call gets: a pointer, or a value."""
        found = self.bound(each, names)
        if isinstance(found, Variable):
            return self.load(found)
        if found is None:
            raise names.source.error(each.at, "this call has no value")
        return found

    def constructed(self, type: tree.Name, values: Sequence[Operand]) -> Vector:
        """vec2<u32>(…), array<u64, 20>(…): of elements, of vectors, or of one value for all."""
        scalar = _scalar(type)
        parts = [part for each in values for part in (each.parts if isinstance(each, Vector) else [each])]
        if len(parts) == 1 and type.name != "array":
            parts *= int(type.name[3])
        return Vector(tuple(self.convert(scalar, self.concrete(each, scalar)) for each in parts))

    def element(self, of: Vector, index: Value) -> Value:
        """An element of an array of constants, which becomes a table of the module."""
        if any(part.name.startswith("%") for part in of.parts):
            raise CompileError("only arrays of constants are indexed in the library")
        base, numbers = llvm_type(of.scalar, 0), [part.name for part in of.parts]
        table = self.code.table(base, numbers)
        place = self.convert("u64", self.builtin("min", [index, constant("u32", len(numbers) - 1)]))
        if not index.width:
            one = self.code.lasting(f"load {base}, ptr {self.code.at(table, place.name, base)}")
            return Value(one, of.scalar)
        found: Value = Value("poison", of.scalar, index.width)
        for lane in range(index.width):
            at = self.code(f"extractelement {place.type} {place.name}, i64 {lane}")
            one = self.code.lasting(f"load {base}, ptr {self.code.at(table, at, base)}")
            name = self.code(f"insertelement {found.type} {found.name}, {base} {one}, i64 {lane}")
            found = Value(name, of.scalar, index.width)
        return found

    # Vectors

    def concrete(self, x: Operand, scalar: str | None = None) -> Value:
        """A value; a number of Python becomes a constant."""
        if isinstance(x, Value):
            return x
        if isinstance(x, Vector):
            raise CompileError("one number is expected, not a vector")
        return constant(scalar or ("f32" if isinstance(x, float) else "i32"), x)

    def lifted(
        self, function: Callable[..., Value], *operands: Operand, scalar: str | None = None
    ) -> Value | Vector:
        """A function of numbers applied to each element of vectors; one number goes with every element."""
        sizes = [len(each.parts) for each in operands if isinstance(each, Vector)]
        if not sizes:
            return function(*[self.concrete(each, scalar) for each in operands])
        columns = [
            each.parts if isinstance(each, Vector) else [self.concrete(each, scalar)] * sizes[0]
            for each in operands
        ]
        return Vector(tuple(function(*row) for row in zip(*columns, strict=True)))

    def unpacked(self, name: str, word: Value) -> Vector:
        """The parts of a word."""
        if name == "unpack2x16float":
            halves = ("{0} & 0xffffu", "{0} >> 16u")
            return Vector(tuple(self.spelled(_HALF, [self.spelled(each, [word])]) for each in halves))
        text = "bitcast<i32>({0} << {1}) >> 24u" if name == "unpack4xI8" else "({0} << {1}) >> 24u"
        return Vector(tuple(self.spelled(text, [word, constant("u32", up)]) for up in (24, 16, 8, 0)))

    def packed(self, parts: Vector) -> Value:
        """Four bytes as a word."""
        word = constant("u32", 0)
        for at, each in enumerate(parts.parts):
            word = self.spelled(
                "{0} | ((bitcast<u32>({1}) & 0xffu) << {2})", [word, each, constant("u32", 8 * at)]
            )
        return word


def _scalar(type: tree.Expression) -> str:
    """The scalar of `F`, `u32`, `vec2<u32>` or `array<u64, 20>`."""
    while isinstance(type, tree.Name) and type.template:
        type = type.template[0]
    return WORDS[cast(tree.Name, type).name]


_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|[\d.]+(?:[eE][+-]?\d+)?)(lf|lu|li|u|i|f|h)?")
_SUFFIXES = {"lf": "f64", "lu": "u64", "li": "i64", "u": "u32", "i": "i32", "f": "f32", "h": "f16"}


@cache
def literal(text: str) -> Value | int | float:
    """A literal: with a suffix a constant, without one a number.

    >>> literal("0x10u"), literal("2.5")
    (Value(name='16', scalar='u32', width=0), 2.5)
    """
    found = _LITERAL.fullmatch(text)
    if found is None:
        raise CompileError(f"the number {text} is not translated")
    digits, suffix = found[1], found[2]
    value: int | float
    if digits[:2] in ("0x", "0X"):
        value = int(digits, 16)
    else:
        value = int(digits) if digits.isdigit() and suffix not in ("f", "lf", "h") else float(digits)
    return constant(_SUFFIXES[suffix], value) if suffix else value


def folded(sign: str, a: float, b: float) -> int | float:
    """An operator over numbers of Python, as WGSL's abstract numbers have it."""
    if sign in ("/", "%") and b == 0:
        raise CompileError(f"{a} {sign} 0 has no value")
    if sign in ("<<", ">>") and not 0 <= b < 64:
        raise CompileError(f"{a} {sign} {b} has no value")
    if sign == "/":
        if isinstance(a, int) and isinstance(b, int):
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return a / b
    return _FOLDED[sign](a, b)


_FOLDED: Mapping[str, Callable[[int | float, int | float], int | float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: a - b * folded("/", a, b),
    "&": lambda a, b: int(a) & int(b),
    "|": lambda a, b: int(a) | int(b),
    "^": lambda a, b: int(a) ^ int(b),
    "<<": lambda a, b: int(a) << int(b),
    ">>": lambda a, b: int(a) >> int(b),
}
# A float16 of which the bits are given: its exponent is made that of a float32 by a product.
_HALF = (
    "bitcast<F>(select(bitcast<U>(bitcast<F>(({0} & 0x7fffu) << 13u) * F(5.192296858534828e33)), "
    "(({0} & 0x7fffu) << 13u) | 0x7f800000u, ({0} & 0x7fffu) >= 0x7c00u) | (({0} & 0x8000u) << 16u))"
)
