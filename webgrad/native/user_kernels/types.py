"""WGSL's types, with how they lie in memory, from the trees that name them.

In: a Module. Out: a `Type` for each name of one. Variables of every address space lie in memory as the
specification has it for buffers, so that an element's place does not depend on where its variable is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...wgsl.layout import Layouts
from ...wgsl.syntax import Declaration, Module
from ..translation import tree
from ..translation.parser import Parser

_SIZES = {"bool": 4, "i32": 4, "u32": 4, "f32": 4, "f16": 2, "i64": 8, "u64": 8, "f64": 8}
_SUFFIXES = {"i": "i32", "u": "u32", "f": "f32", "h": "f16"}
_VECTOR = re.compile(r"vec([234])([iufh]?)")
_MATRIX = re.compile(r"mat([234])x([234])([fh]?)")


@dataclass(frozen=True, slots=True)
class Type:
    """A type. `kind` is scalar, vector, matrix, array, struct, atomic or pointer."""

    kind: str
    name: str
    align: int = 0
    size: int = 0
    scalar: str = ""  # of a scalar, and of what is made of one
    count: int = 1  # of elements; 0: as many as the buffer has
    element: Type | None = None
    stride: int = 0
    members: tuple[tuple[str, int, Type], ...] = ()  # of a struct: name, offset, type

    def parts(self) -> Iterator[tuple[int, Type]]:
        """What it is made of, in order: the offset and the type of each."""
        if self.kind == "struct":
            yield from ((offset, type) for _, offset, type in self.members)
        elif self.element is not None:
            yield from ((at * self.stride, self.element) for at in range(self.count))

    @property
    def leaves(self) -> int:
        """How many scalars it has."""
        if self.kind in ("scalar", "atomic", "pointer"):
            return 1
        if self.element is not None:
            return self.count * self.element.leaves
        return sum(type.leaves for _, _, type in self.members)


def scalar_type(name: str) -> Type:
    """f32, u32, …"""
    return Type("scalar", name, _SIZES[name], _SIZES[name], name)


def vector_type(count: int, scalar: str) -> Type:
    """vec3<f32>, …"""
    element = scalar_type(scalar)
    align = element.size * (2 if count == 2 else 4)
    return Type(
        "vector", f"vec{count}<{scalar}>", align, element.size * count, scalar, count, element, element.size
    )


def matrix_type(columns: int, rows: int, scalar: str) -> Type:
    """mat4x4<f32>, …"""
    column = vector_type(rows, scalar)
    stride = -(-column.size // column.align) * column.align
    name = f"mat{columns}x{rows}<{scalar}>"
    return Type("matrix", name, column.align, stride * columns, scalar, columns, column, stride)


def array_type(element: Type, count: int) -> Type:
    """array<T, count>; 0 is one that fills its buffer."""
    stride = -(-element.size // element.align) * element.align
    name = f"array<{element.name}, {count}>" if count else f"array<{element.name}>"
    return Type("array", name, element.align, stride * count, element.scalar, count, element, stride)


class Types:
    """The types of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.source = module.source
        self.layouts = Layouts(module)

    def at(self, span: tuple[int, int]) -> Type:
        """The type at a token range."""
        self.layouts.type(span)  # says what is wrong with it
        return self.of(Parser(self.source, span[0]).type())

    def is_type(self, name: str) -> bool:
        """Whether a call of this name constructs a value."""
        declaration = self.module.names.get(name)
        if declaration is not None:
            return declaration.kind in ("alias", "struct")
        return name in _SIZES or name == "array" or bool(_VECTOR.fullmatch(name) or _MATRIX.fullmatch(name))

    def of(self, name: tree.Expression) -> Type:
        """The type that a tree names."""
        if not isinstance(name, tree.Name):
            raise self.source.error(name.at, "a type is expected here")
        declaration = self.module.names.get(name.name)
        if declaration is not None and declaration.kind == "alias":
            return self.at(declaration.type)
        if declaration is not None and declaration.kind == "struct":
            return self.struct(declaration)
        if name.name in _SIZES:
            return scalar_type(name.name)
        if name.name == "atomic":
            inner = self.of(name.template[0])
            if inner.scalar not in ("i32", "u32"):
                raise self.source.error(name.at, f"atomic<{inner.name}> is not translated for the cpu")
            return Type("atomic", f"atomic<{inner.name}>", inner.align, inner.size, inner.scalar)
        if name.name == "ptr":
            return Type("pointer", "ptr", element=self.of(name.template[1]))
        if name.name == "array" and name.template:
            return array_type(self.of(name.template[0]), self._count(name))
        if found := _VECTOR.fullmatch(name.name):
            return vector_type(int(found[1]), self._component(found[2], name))
        if found := _MATRIX.fullmatch(name.name):
            return matrix_type(int(found[1]), int(found[2]), self._component(found[3], name))
        raise self.source.error(name.at, f"the type `{name.name}` is not translated for the cpu")

    def _component(self, suffix: str, name: tree.Name) -> str:
        return _SUFFIXES[suffix] if suffix else self.of(name.template[0]).scalar

    def _count(self, name: tree.Name) -> int:
        if len(name.template) < 2:
            return 0
        spans = self.source.split(name.at + 2, self.source.templates[name.at + 1])
        return self.layouts.constant(spans[1])

    def struct(self, declaration: Declaration) -> Type:
        """A struct, with the offsets of its members."""
        layout = self.layouts.struct(declaration)
        members = tuple(
            (member.name, place.offset, self.at(member.type))
            for member, place in zip(declaration.members, layout.members, strict=True)
        )
        return Type("struct", declaration.name, layout.align, layout.size, members=members)
