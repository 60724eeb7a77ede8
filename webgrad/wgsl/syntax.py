"""A WGSL module split into its declarations: names, attributes and token ranges, no expression trees.

In: a Source. Out: a Module: directives, structs, variables, constants, aliases and functions in the order
of the text. Invariant: the token ranges of the declarations, attributes included, do not overlap and cover
the whole text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from webgrad.errors import CompileError
from webgrad.wgsl.source import Source

Kind = Literal["fn", "struct", "var", "const", "override", "alias", "const_assert", "directive"]
_DIRECTIVES = ("enable", "requires", "diagnostic")
PARAM_SPACES = ("uniform", "immediate", "push_constant")
RESOURCE_SPACES = ("storage", *PARAM_SPACES)


@dataclass(frozen=True, slots=True)
class Attribute:
    """`@name(arguments)`; the arguments are the tokens start..stop."""

    name: str
    index: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Member:
    """A struct's member or a function's parameter: a name and the token range of its type."""

    name: str
    index: int
    attributes: tuple[Attribute, ...]
    type: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration: tokens start..stop (stop excluded), its name at `index`."""

    kind: Kind
    name: str
    index: int
    start: int
    stop: int
    attributes: tuple[Attribute, ...] = ()
    spaces: tuple[str, ...] = ()  # of a var: ("storage", "read")
    members: tuple[Member, ...] = ()  # of a struct or the parameters of a fn
    type: tuple[int, int] = (0, 0)  # of a var, const, override, alias; the return type of a fn
    value: tuple[int, int] = (0, 0)  # the initializer; the body of a fn with its braces

    def attribute(self, name: str) -> Attribute | None:
        return next((attribute for attribute in self.attributes if attribute.name == name), None)


@dataclass(slots=True)
class Module:
    """A parsed text."""

    source: Source
    declarations: list[Declaration] = field(default_factory=list)
    names: dict[str, Declaration] = field(default_factory=dict)

    def entries(self) -> list[Declaration]:
        """The compute entry points, in order."""
        return [one for one in self.declarations if one.kind == "fn" and one.attribute("compute")]

    def words(self, span: tuple[int, int]) -> list[str]:
        return [token.text for token in self.source.tokens[span[0] : span[1]]]


def parse_module(source: Source) -> Module:
    """The declarations of a WGSL text."""
    parser = _Parser(source)
    module = Module(source)
    while parser.position < len(source.tokens):
        declaration = parser.declaration()
        if declaration is None:
            continue
        module.declarations.append(declaration)
        if not declaration.name:
            continue
        if declaration.name in module.names:
            raise source.error(declaration.index, f"`{declaration.name}` is declared twice")
        module.names[declaration.name] = declaration
    return module


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens
        self.position = 0

    # --- small steps

    def text(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def unexpected(self, what: str) -> CompileError:
        found = f"`{self.text()}`" if self.text() else "the end of the text"
        return self.source.error(self.position, f"{what}, not {found}")

    def expect(self, text: str, where: str) -> int:
        if self.text() != text:
            raise self.unexpected(f"`{text}` is expected {where}")
        self.position += 1
        return self.position - 1

    def name(self, what: str) -> tuple[str, int]:
        if self.position >= len(self.tokens) or self.tokens[self.position].kind != "word":
            raise self.unexpected(f"the name of {what} is expected")
        self.position += 1
        return self.text(-1), self.position - 1

    def until(self, *stops: str) -> tuple[int, int]:
        """The tokens up to one of `stops` outside brackets and template lists."""
        start = self.position
        while self.position < len(self.tokens) and self.text() not in stops:
            if self.text() in ("(", "[", "{"):
                self.position = self.source.pairs[self.position]
            elif self.text() == "<" and (end := self.source.template_end(self.position)):
                self.position = end - 1
            elif self.text() in (")", "]", "}"):
                break
            self.position += 1
        return start, self.position

    def attributes(self) -> tuple[Attribute, ...]:
        found: list[Attribute] = []
        while self.text() == "@":
            self.position += 1
            name, index = self.name("an attribute")
            start = stop = self.position
            if self.text() == "(":
                start, stop = self.position + 1, self.source.pairs[self.position]
                self.position = stop + 1
            found.append(Attribute(name, index, start, stop))
        return tuple(found)

    # --- declarations

    def declaration(self) -> Declaration | None:
        start = self.position
        attributes = self.attributes()
        keyword = self.text()
        if keyword == ";" and not attributes:
            self.position += 1
            return None
        parse = _KINDS.get(keyword)
        if parse is None:
            expected = "fn, struct, var, const, override, alias, const_assert or a directive"
            raise self.unexpected(f"a declaration ({expected}) is expected")
        self.position += 1
        return parse(self, start, attributes)

    def directive(self, start: int, attributes: tuple[Attribute, ...]) -> Declaration:
        self.until(";")
        self.expect(";", "at the end of the directive")
        return Declaration("directive", "", start, start, self.position, attributes)

    def const_assert(self, start: int, attributes: tuple[Attribute, ...]) -> Declaration:
        value = self.until(";")
        self.expect(";", "at the end of const_assert")
        return Declaration("const_assert", "", start, start, self.position, attributes, value=value)

    def alias(self, start: int, attributes: tuple[Attribute, ...]) -> Declaration:
        name, index = self.name("an alias")
        self.expect("=", f"after `alias {name}`")
        type_span = self.until(";")
        self.expect(";", f"at the end of alias `{name}`")
        return Declaration("alias", name, index, start, self.position, attributes, type=type_span)

    def variable(self, start: int, attributes: tuple[Attribute, ...]) -> Declaration:
        kind: Kind = self.text(-1)  # type: ignore[assignment]
        spaces: tuple[str, ...] = ()
        if kind == "var" and self.text() == "<":
            end = self.source.template_end(self.position)
            if not end:
                raise self.source.error(self.position, "`<` after var is never closed with `>`")
            words = [token.text for token in self.tokens[self.position + 1 : end - 1]]
            spaces = tuple(word for word in words if word != ",")
            self.position = end
        name, index = self.name(f"a {kind}")
        type_span = value = (0, 0)
        if self.text() == ":":
            self.position += 1
            type_span = self.until("=", ";")
        if self.text() == "=":
            self.position += 1
            value = self.until(";")
        self.expect(";", f"at the end of {kind} `{name}`")
        return Declaration(kind, name, index, start, self.position, attributes, spaces, (), type_span, value)

    def struct(self, start: int, attributes: tuple[Attribute, ...]) -> Declaration:
        name, index = self.name("a struct")
        end = self.source.pairs[self.expect("{", f"after `struct {name}`")]
        members = self.members(end, f"struct `{name}`")
        self.position = end + 1
        if self.text() == ";":
            self.position += 1
        return Declaration("struct", name, index, start, self.position, attributes, members=members)

    def members(self, end: int, what: str) -> tuple[Member, ...]:
        found: list[Member] = []
        while self.position < end:
            attributes = self.attributes()
            name, index = self.name(f"a member of {what}")
            self.expect(":", f"after `{name}` in {what}: every one needs a type")
            type_span = self.until(",")
            if type_span[0] == type_span[1]:
                raise self.source.error(index, f"`{name}` in {what} has no type")
            found.append(Member(name, index, attributes, type_span))
            if self.position < end:
                self.expect(",", f"between the members of {what}")
        return tuple(found)

    def function(self, start: int, attributes: tuple[Attribute, ...]) -> Declaration:
        name, index = self.name("a function")
        end = self.source.pairs[self.expect("(", f"after `fn {name}`")]
        members = self.members(end, f"the parameters of `{name}`")
        self.position = end + 1
        type_span = (0, 0)
        if self.text() == "->":
            self.position += 1
            self.attributes()
            type_span = self.until("{", ";")
        opening = self.expect("{", f"before the body of `{name}`")
        self.position = self.source.pairs[opening] + 1
        value = (opening, self.position)
        return Declaration("fn", name, index, start, self.position, attributes, (), members, type_span, value)


_KINDS: dict[str, Callable[[_Parser, int, tuple[Attribute, ...]], Declaration]] = {
    "fn": _Parser.function,
    "struct": _Parser.struct,
    "var": _Parser.variable,
    "const": _Parser.variable,
    "override": _Parser.variable,
    "alias": _Parser.alias,
    "const_assert": _Parser.const_assert,
    **dict.fromkeys(_DIRECTIVES, _Parser.directive),
}
