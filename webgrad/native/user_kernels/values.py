"""The values of users' kernels: scalars, vectors, matrices, arrays and structs, and places in memory.

A vector is its elements, an aggregate its parts: LLVM sees scalars only. A place is an address and a type;
an index is clamped to what is there, so that no kernel reads or writes outside of a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from ..text import Function
from ..translation.arithmetic import Arithmetic
from ..translation.expressions import folded
from ..translation.translator import Translator
from ..value import BITS, FLOATS, SCALARS, Value, constant
from .types import Type, array_type, matrix_type, scalar_type, vector_type

# What operators are not for
_OF_BOOLS = ("+", "-", "*", "/", "%", "^", "<<", ">>", "<", ">", "<=", ">=")
_OF_FLOATS = ("&", "|", "^", "<<", ">>", "&&", "||")
_OF_INTEGERS = ("&&", "||")
_FOLDED = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
MAX_LEAVES = 4096  # scalars of one value


class Refusal(Exception):
    """What is not translated, or is not WGSL; whoever knows the place makes a CompileError of it."""


@dataclass(frozen=True, slots=True)
class Group:
    """A vector, matrix, array or struct: its parts in order, and its type. The elements of a vector that was
    written without one may still be numbers.
    """

    type: Type | None
    parts: tuple[Data, ...]

    @property
    def is_vector(self) -> bool:
        """Whether its parts are scalars that operators apply to one by one."""
        return self.type is None or self.type.kind == "vector"


@dataclass(frozen=True, slots=True)
class Place:
    """A variable or a part of one. `length` is the number of elements of an array that fills its buffer."""

    address: str
    type: Type
    length: Value | None = None
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Pointer:
    """`&place`."""

    to: Place


Data: TypeAlias = Value | Group | int | float
Bound: TypeAlias = Data | Place | Pointer


def type_of(data: Data) -> Type:
    """The type of a value; numbers have the one they get by themselves."""
    if isinstance(data, Value):
        return scalar_type(data.scalar)
    if isinstance(data, Group):
        if data.type is None:
            raise Refusal("a vector of numbers has no type yet")
        return data.type
    return scalar_type("f32" if isinstance(data, float) else "i32")


class Values(Arithmetic):
    """What can be done with values and places."""

    def __init__(self, code: Function) -> None:
        super().__init__(code)
        self.library = Translator(code)

    # Memory

    def offset(self, address: str, bytes: int) -> str:
        """The address so many bytes on."""
        return self.code.at(address, bytes) if bytes else address

    def read(self, place: Place) -> Data:
        """The value in a place."""
        type = place.type
        if type.kind in ("scalar", "atomic"):
            order = " atomic" if type.kind == "atomic" else ""
            kind = "i32" if type.scalar == "bool" else SCALARS[type.scalar]
            more = " monotonic" if order else ""
            name = self.code(f"load{order} {kind}, ptr {place.address}{more}, align {type.size}")
            value = Value(name, type.scalar)
            return (
                self.binary("!=", Value(name, "i32"), constant("i32", 0)) if type.scalar == "bool" else value
            )
        self.check_size(type)
        parts = [self.read(Place(self.offset(place.address, at), part)) for at, part in type.parts()]
        return Group(type, tuple(parts))

    def check_size(self, type: Type) -> None:
        """Refuse values that are too long to be taken apart."""
        if not type.count or type.leaves > MAX_LEAVES:
            raise Refusal(f"a value of type {type.name} is too long; use its elements")

    def write(self, place: Place, data: Data) -> None:
        """A value for a place; it must be of the place's type, or a number."""
        type = place.type
        if not place.writable:
            raise Refusal("a variable that is only read is written to")
        if type.kind in ("scalar", "atomic"):
            value = self.scalar(data, type.scalar)
            if value.scalar != type.scalar:
                raise Refusal(f"{type.scalar} is expected, not {value.scalar}")
            if value.scalar == "bool":
                value = self.convert("i32", value)
            more = (" atomic", " monotonic") if type.kind == "atomic" else ("", "")
            self.code.do(
                f"store{more[0]} {value.type} {value.name}, ptr {place.address}{more[1]}, align {type.size}"
            )
            return
        group = self.as_type(data, type)
        assert isinstance(group, Group)
        for (at, part), each in zip(type.parts(), group.parts, strict=True):
            self.write(Place(self.offset(place.address, at), part), each)

    def zero(self, type: Type) -> Data:
        """T()."""
        if type.kind in ("scalar", "atomic"):
            return constant(type.scalar, 0)
        self.check_size(type)
        return Group(type, tuple(self.zero(part) for _, part in type.parts()))

    # Parts

    def length(self, place: Place) -> Value:
        """How many elements there are."""
        if place.type.kind == "struct":
            raise Refusal("a struct has no elements")
        return place.length if not place.type.count and place.length else constant("u32", place.type.count)

    def clamped(self, index: Data, count: Value) -> Value:
        """An index that is within."""
        value = self.scalar(index, "i32")
        if BITS[value.scalar] == 64:
            value = self.builtin("min", [self.bitcast("u64", value), constant("u64", (1 << 32) - 1)])
        if count.is_constant:
            last = constant("u32", int(count.name) - 1)
        else:
            last = self.binary("-", count, constant("u32", 1))
        if value.is_constant and last.is_constant:
            return constant("u32", min(int(value.name) & 0xFFFFFFFF, int(last.name)))
        return self.builtin("min", [self.convert("u32", value), last])

    def at(self, of: Bound, index: Data) -> Bound:
        """of[index]."""
        if isinstance(of, Pointer):
            of = of.to
        if isinstance(of, Place):
            if of.type.element is None:
                raise Refusal(f"{of.type.name} has no elements")
            place = self.clamped(index, self.length(of))
            offset = self.binary("*", self.convert("u64", place), constant("u64", of.type.stride))
            return Place(self.code.at(of.address, offset.name), of.type.element, None, of.writable)
        if not isinstance(of, Group):
            raise Refusal("a number has no elements")
        place = self.clamped(index, constant("u32", len(of.parts)))
        if place.is_constant:
            return of.parts[int(place.name)]
        if of.type is None:
            of = cast(Group, self.settled(of))
        if len(of.parts) <= 4 and of.is_vector:
            found = self.scalar(of.parts[0])
            for at, each in enumerate(of.parts[1:], 1):
                here = self.binary("==", place, constant("u32", at))
                found = self.choose(here, self.scalar(each), found)
            return found
        spilled = self.variable(type_of(of))
        self.write(spilled, of)
        return self.read(cast(Place, self.at(spilled, place)))

    def variable(self, type: Type) -> Place:
        """A place on the stack."""
        return Place(self.code.variable(f"[{max(type.size, 1)} x i8]", align=max(type.align, 4)), type)

    def member(self, of: Bound, name: str) -> Bound:
        """of.name: a member of a struct, or elements of a vector."""
        if isinstance(of, Pointer):
            of = of.to
        type = of.type if isinstance(of, Place) else of.type if isinstance(of, Group) else type_of(of)
        if type is not None and type.kind == "struct":
            for at, (each, offset, part) in enumerate(type.members):
                if each == name and isinstance(of, Place):
                    length = of.length if not part.count else None
                    return Place(self.offset(of.address, offset), part, length, of.writable)
                if each == name:
                    return cast(Group, of).parts[at]
            raise Refusal(f"{type.name} has no member {name}")
        if type is not None and type.kind != "vector":
            raise Refusal(f"{type.name} has no member {name}")
        places = [("xyzw" if name[0] in "xyzw" else "rgba").find(letter) for letter in name]
        count = type.count if type is not None else len(cast(Group, of).parts)
        if not all(0 <= place < count for place in places) or len(places) > 4:
            raise Refusal(f"a vector of {count} has no member {name}")
        if len(places) == 1:
            return self.at(of, places[0])
        if isinstance(of, Place):
            of = self.read(of)
        parts = tuple(cast(Group, of).parts[place] for place in places)
        return Group(None if type is None else vector_type(len(parts), type.scalar), parts)

    # Types

    def scalar(self, data: Data, scalar: str | None = None) -> Value:
        """One number; one of Python becomes a constant, of this type if one is named."""
        if isinstance(data, Value):
            return data
        if isinstance(data, Group):
            raise Refusal("one number is expected, not a vector or an aggregate")
        return constant(scalar or ("f32" if isinstance(data, float) else "i32"), data)

    def settled(self, data: Data, scalar: str | None = None) -> Value | Group:
        """A value of a type: numbers get one."""
        if isinstance(data, Value) or (isinstance(data, Group) and data.type is not None):
            return data
        if not isinstance(data, Group):
            return self.scalar(data, scalar)
        if scalar is None:
            scalar = "f32" if any(isinstance(each, float) for each in data.parts) else "i32"
        parts = tuple(self.scalar(each, scalar) for each in data.parts)
        return Group(vector_type(len(parts), scalar), parts)

    def as_type(self, data: Data, type: Type) -> Data:
        """A value of this type; only numbers are converted."""
        made = self.settled(data, type.scalar or None)
        if type.kind == "atomic":
            return self.scalar(made)
        if type_of(made).name != type.name:
            raise Refusal(f"{type.name} is expected, not {type_of(made).name}")
        return made

    def alike(self, *operands: Data) -> list[Value | Group]:
        """Operands whose numbers have the type of the others."""
        scalar = next((type_of(each).scalar for each in operands if not _is_number(each)), None)
        if scalar is None:
            scalar = "f32" if any(isinstance(each, float) for each in _flat(operands)) else "i32"
        return [self.settled(each, scalar) for each in operands]

    def constructed(self, type: Type, args: Sequence[Data]) -> Data:
        """T(…)."""
        if not args:
            return self.zero(type)
        if type.kind == "scalar":
            return self.convert(type.scalar, self.scalar(args[0], type.scalar))
        if type.kind == "vector":
            return self._vector(type, args)
        if type.kind == "matrix":
            return self._matrix(type, args)
        if len(args) != (len(type.members) if type.kind == "struct" else type.count):
            raise Refusal(f"{type.name} is not made of {len(args)} values")
        parts = [self.as_type(each, part) for each, (_, part) in zip(args, type.parts(), strict=True)]
        return Group(type, tuple(parts))

    def _vector(self, type: Type, args: Sequence[Data]) -> Group:
        parts = _flat(args)
        if len(parts) == 1 and not isinstance(args[0], Group):
            parts *= type.count
        if len(parts) != type.count:
            raise Refusal(f"{type.name} is not made of {len(parts)} numbers")
        made = [self.convert(type.scalar, self.scalar(each, type.scalar)) for each in parts]
        return Group(type, tuple(made))

    def _matrix(self, type: Type, args: Sequence[Data]) -> Group:
        assert type.element is not None
        rows = type.element.count
        parts = _flat(args)
        if any(isinstance(each, Group) for each in parts):  # a matrix of another matrix
            parts = [one for each in parts for one in cast(Group, each).parts]
        if len(parts) != type.count * rows:
            raise Refusal(f"{type.name} is not made of {len(parts)} numbers")
        columns = [self._vector(type.element, parts[at : at + rows]) for at in range(0, len(parts), rows)]
        return Group(type, tuple(columns))

    def untyped(self, name: str, args: Sequence[Data]) -> Data:
        """vec3(…), mat2x2(…) or array(…), whose element type is that of its operands."""
        if name == "array":
            elements = self.alike(*args)
            return Group(array_type(type_of(elements[0]), len(elements)), tuple(elements))
        parts = _flat(args)
        if name.startswith("vec"):
            count = int(name[3])
            if all(isinstance(each, int | float) for each in parts):
                return Group(None, tuple(parts * count if len(parts) == 1 else parts))
            scalar = next(each.scalar for each in parts if isinstance(each, Value))
            return self._vector(vector_type(count, scalar), args)
        scalar = next((type_of(each).scalar for each in parts if not _is_number(each)), "f32")
        return self._matrix(matrix_type(int(name[3]), int(name[5]), scalar), args)

    # Operators

    def lifted(self, function: Callable[..., Value], *operands: Value | Group) -> Value | Group:
        """A function of numbers applied to each element of vectors; one number goes with every element."""
        for each in operands:
            if isinstance(each, Group) and not each.is_vector:
                raise Refusal(f"no such operator or function of {type_of(each).name}")
        sizes = {len(each.parts) for each in operands if isinstance(each, Group)}
        if not sizes:
            return function(*operands)
        if len(sizes) > 1:
            raise Refusal("vectors of different lengths are used together")
        size = sizes.pop()
        columns = [each.parts if isinstance(each, Group) else [each] * size for each in operands]
        made = [function(*row) for row in zip(*columns, strict=True)]
        return Group(vector_type(size, made[0].scalar), tuple(made))

    def operation(self, sign: str, a: Data, b: Data) -> Data:
        """A binary operator."""
        if isinstance(a, int | float) and isinstance(b, int | float) and sign in _FOLDED:
            return folded(sign, a, b)
        if sign in ("<<", ">>"):
            left, right = self.settled(a), self.settled(b, "u32")
        else:
            left, right = self.alike(a, b)
            if sign == "*" and (self._is_matrix(left) or self._is_matrix(right)):
                return self._product(left, right)
            if sign in ("+", "-") and self._is_matrix(left) and isinstance(left, Group):
                columns = zip(left.parts, cast(Group, right).parts, strict=True)
                return Group(left.type, tuple(self.operation(sign, one, two) for one, two in columns))
            if type_of(left).scalar != type_of(right).scalar:
                raise Refusal(f"{type_of(left).name} {sign} {type_of(right).name}: convert one of them")
        scalar = type_of(left).scalar
        if sign in (_OF_BOOLS if scalar == "bool" else _OF_FLOATS if scalar in FLOATS else _OF_INTEGERS):
            raise Refusal(f"`{sign}` of {type_of(left).name}")
        return self.lifted(lambda x, y: self.binary(sign, x, y), left, right)

    def _is_matrix(self, data: Data) -> bool:
        return isinstance(data, Group) and data.type is not None and data.type.kind == "matrix"

    def _product(self, a: Data, b: Data) -> Data:
        """Products with matrices."""
        if self._is_matrix(a) and self._is_matrix(b):
            left, right = cast(Group, a), cast(Group, b)
            columns = tuple(self._product(left, each) for each in right.parts)
            assert left.type is not None
            assert left.type.element is not None
            return Group(matrix_type(len(columns), left.type.element.count, left.type.scalar), columns)
        if self._is_matrix(a) and isinstance(b, Group):
            total: Data | None = None
            for column, factor in zip(cast(Group, a).parts, b.parts, strict=True):
                term = self.operation("*", column, factor)
                total = term if total is None else self.operation("+", total, term)
            return cast(Data, total)
        if self._is_matrix(b) and isinstance(a, Group):
            parts = tuple(self.dot(a, cast(Group, column)) for column in cast(Group, b).parts)
            return Group(vector_type(len(parts), parts[0].scalar), parts)
        matrix, factor = (a, b) if self._is_matrix(a) else (b, a)
        group = cast(Group, matrix)
        return Group(group.type, tuple(self.operation("*", column, factor) for column in group.parts))

    def dot(self, a: Group, b: Group) -> Value:
        """The sum of the products of two vectors' elements."""
        products = cast(Group, self.operation("*", a, b)).parts
        total = self.scalar(products[0])
        for each in products[1:]:
            total = self.binary("+", total, self.scalar(each))
        return total


def _flat(operands: Sequence[Data]) -> list[Data]:
    """Operands, with vectors as their elements and matrices as their columns."""
    return [part for each in operands for part in (each.parts if isinstance(each, Group) else [each])]


def _is_number(data: Data) -> bool:
    """Whether it has no type yet."""
    return isinstance(data, int | float) or (isinstance(data, Group) and data.type is None)
