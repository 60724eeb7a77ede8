"""WGSL types: their canonical spelling, alignment and size, as the specification lays them out in buffers.

In: the token range of a type in a Module. Out: a Layout. Invariant: aliases are resolved, so that two
spellings of one type (`vec4f`, `vec4<f32>`) give equal Layouts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from webgrad.wgsl.conditions import ExpressionError, Value, evaluate, split_words
from webgrad.wgsl.syntax import Attribute, Declaration, Module

MAX_DEPTH = 32
_SCALARS = {"bool": 4, "i32": 4, "u32": 4, "f32": 4, "f16": 2, "i64": 8, "u64": 8, "f64": 8}
_SUFFIXES = {"i": "i32", "u": "u32", "f": "f32", "h": "f16"}
_VECTOR = re.compile(r"vec([234])([iufh]?)")
_MATRIX = re.compile(r"mat([234])x([234])([fh]?)")
_OPAQUE = re.compile(r"(texture_\w+|sampler(_comparison)?|acceleration_structure|ray_query)")


@dataclass(frozen=True, slots=True)
class MemberLayout:
    """A struct's member with its offset."""

    name: str
    index: int
    offset: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class Layout:
    """A type in memory; `stride` is an array's, `runtime` says that its length is the buffer's."""

    spelling: str
    align: int
    size: int
    stride: int = 0
    runtime: bool = False
    members: tuple[MemberLayout, ...] = ()


class Layouts:
    """Works out the layouts of one module's types."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.source = module.source
        self.structs: dict[str, Layout] = {}
        self.depth = 0

    # --- constants

    def constant(self, span: tuple[int, int]) -> int:
        """The value of an integer constant expression over literals, const and override."""
        start, stop = span
        if start >= stop:
            raise self.source.error(start, "an integer is expected here")
        tokens = self.source.tokens
        words = split_words(self.source.text[tokens[start].start : tokens[stop - 1].end])
        cast = [
            word
            for word, after in zip(words, [*words[1:], ""], strict=True)
            if not (word in ("u32", "i32") and after == "(")
        ]
        try:
            return evaluate(cast, lambda name: self._named(name, start))
        except ExpressionError as error:
            raise self.source.error(start, f"the integer constant cannot be worked out: {error}") from None

    def _named(self, name: str, index: int) -> Value:
        declaration = self.module.names.get(name)
        if declaration is None or declaration.kind not in ("const", "override"):
            raise ExpressionError(f"`{name}` is not a const or override of this text")
        if declaration.value == (0, 0):
            raise ExpressionError(f"override `{name}` has no default value; write `override {name} = …;`")
        self._enter(index)
        value = self.constant(declaration.value)
        self.depth -= 1
        return value

    def _enter(self, index: int) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.source.error(index, f"a type or constant is defined by itself, or {MAX_DEPTH} deep")

    # --- types

    def type(self, span: tuple[int, int]) -> Layout:
        """The layout of the type at a token range."""
        start, stop = span
        if start >= stop:
            raise self.source.error(start, "a type is expected here")
        self._enter(start)
        layout = self._type(start, stop)
        self.depth -= 1
        return layout

    def _type(self, start: int, stop: int) -> Layout:
        name = self.source.tokens[start].text
        declaration = self.module.names.get(name)
        if declaration is not None and declaration.kind == "alias":
            return self.type(declaration.type)
        if declaration is not None and declaration.kind == "struct":
            return self.struct(declaration)
        arguments = self._arguments(start + 1, stop)
        if name in _SCALARS and not arguments:
            return Layout(name, _SCALARS[name], _SCALARS[name])
        if name == "atomic" and len(arguments) == 1:
            inner = self.type(arguments[0])
            return Layout(f"atomic<{inner.spelling}>", inner.align, inner.size)
        if name == "array" and len(arguments) in (1, 2):
            return self._array(arguments)
        if match := _VECTOR.fullmatch(name):
            return self._vector(int(match[1]), self._component(match[2], arguments, start))
        if match := _MATRIX.fullmatch(name):
            return self._matrix(int(match[1]), int(match[2]), self._component(match[3], arguments, start))
        raise self.source.error(start, self._unknown(name))

    def _unknown(self, name: str) -> str:
        if _OPAQUE.fullmatch(name):
            return f"`{name}`: textures and samplers are not for kernels; use storage buffers"
        known: Iterable[str] = [*_SCALARS, "array", "atomic", "vec2", "vec3", "vec4", *self.module.names]
        near = difflib.get_close_matches(name, known, 3)
        return f"`{name}` is not a type of this text" + (f"; near it: {', '.join(near)}" if near else "")

    def _arguments(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The comma-separated token ranges of a template list that fills start..stop."""
        if start == stop:
            return []
        if self.source.tokens[start].text != "<" or self.source.template_end(start) != stop:
            raise self.source.error(start, f"`{self.source.tokens[start].text}` does not belong in a type")
        return self.source.split(start + 1, stop - 1)

    def _component(self, suffix: str, arguments: list[tuple[int, int]], index: int) -> Layout:
        if suffix and not arguments:
            spelling = _SUFFIXES[suffix]
            return Layout(spelling, _SCALARS[spelling], _SCALARS[spelling])
        if suffix or len(arguments) != 1:
            raise self.source.error(index, f"`{self.source.tokens[index].text}` needs one component type")
        return self.type(arguments[0])

    def _vector(self, count: int, component: Layout) -> Layout:
        align = component.size * (2 if count == 2 else 4)
        return Layout(f"vec{count}<{component.spelling}>", align, component.size * count)

    def _matrix(self, columns: int, rows: int, component: Layout) -> Layout:
        column = self._vector(rows, component)
        stride = _round_up(column.size, column.align)
        return Layout(f"mat{columns}x{rows}<{component.spelling}>", column.align, stride * columns)

    def _array(self, arguments: list[tuple[int, int]]) -> Layout:
        element = self.type(arguments[0])
        stride = _round_up(element.size, element.align)
        if len(arguments) == 1:
            return Layout(f"array<{element.spelling}>", element.align, stride, stride, runtime=True)
        count = self.constant(arguments[1])
        if count < 1:
            raise self.source.error(arguments[1][0], f"an array of {count} elements; at least 1 is needed")
        return Layout(f"array<{element.spelling}, {count}>", element.align, stride * count, stride)

    # --- structs

    def struct(self, declaration: Declaration) -> Layout:
        """The layout of a struct, with its members' offsets; @align and @size are honoured."""
        if declaration.name in self.structs:
            return self.structs[declaration.name]
        self._enter(declaration.index)
        members: list[MemberLayout] = []
        align = 1
        end = 0
        for member in declaration.members:
            layout = self.type(member.type)
            member_align = self._attribute(member.attributes, "align", layout.align)
            offset = _round_up(end, member_align)
            members.append(MemberLayout(member.name, member.index, offset, layout))
            align = max(align, member_align)
            end = offset + self._attribute(member.attributes, "size", layout.size)
        self.depth -= 1
        runtime = bool(members) and members[-1].layout.runtime
        size = end if runtime else _round_up(end, align)
        result = Layout(declaration.name, align, size, members=tuple(members))
        self.structs[declaration.name] = result
        return result

    def _attribute(self, attributes: tuple[Attribute, ...], name: str, default: int) -> int:
        for attribute in attributes:
            if attribute.name != name:
                continue
            value = self.constant((attribute.start, attribute.stop))
            if value < 1 or (name == "align" and value & (value - 1)):
                raise self.source.error(attribute.index, f"@{name}({value}) must be a positive power of two")
            return value
        return default


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
