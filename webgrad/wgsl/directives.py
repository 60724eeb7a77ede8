"""A template's text as a tree of blocks: text, conditions, loops and plain directives.

In: the text of one .pwgsl file. Out: a tuple of nodes that `preprocess.py` runs. Comments are gone (so
nothing inside them is ever expanded), backslash-continued directives are joined, and every #if and #for is
closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from webgrad.errors import TemplateError
from webgrad.wgsl.source import message_at
from webgrad.wgsl.tokens import TokenError, without_comments

MAX_NESTING = 32
_BREAKS = re.compile(r"\r\n|[\r\v\f\x85\u2028\u2029]")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)(.*)", re.DOTALL)
_PLAIN = frozenset({"define", "undef", "include", "error"})
_CONDITIONS = frozenset({"if", "ifdef", "ifndef"})
_CLOSERS = {"elif": "#if", "else": "#if", "endif": "#if", "endfor": "#for"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a template, and the line as written."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of WGSL, still to be expanded."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Directive:
    """#define, #undef, #include or #error with what follows it."""

    place: Place
    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Conditional:
    """The branches of an #if: (directive, body); #else is a branch whose directive is named "else"."""

    branches: tuple[tuple[Directive, tuple[Node, ...]], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`#for name in start..stop` and its body."""

    head: Directive
    body: tuple[Node, ...]


Node = Line | Directive | Conditional | Loop


def template_error(place: Place, message: str) -> TemplateError:
    """A TemplateError that says where, what, and shows the line."""
    return TemplateError(message_at(place.file, place.line, message, place.text))


@lru_cache(maxsize=64)  # an include is read for every variant
def parse_tree(text: str, file: str) -> tuple[Node, ...]:
    """The nodes of one template file."""
    parser = _Parser(_logical_lines(text, file))
    return parser.block()


def _strip_comments(text: str, file: str) -> str:
    try:
        return without_comments(text)
    except TokenError as error:
        line = text.count("\n", 0, error.offset)
        raise template_error(Place(file, line + 1, text.split("\n")[line]), str(error)) from None


def _logical_lines(text: str, file: str) -> Iterator[Line]:
    """Lines without comments; a directive takes in its backslash-continued lines, breaks kept."""
    text = _BREAKS.sub("\n", text)
    written = text.split("\n")
    cleaned = _strip_comments(text, file).split("\n")
    index = 0
    while index < len(cleaned):
        place = Place(file, index + 1, written[index])
        line = cleaned[index].rstrip()
        if line.lstrip().startswith("#"):
            while line.endswith("\\"):
                index += 1
                line = line[:-1].rstrip() + "\n" + (cleaned[index].rstrip() if index < len(cleaned) else "")
        index += 1
        if line.strip():
            yield Line(place, line)


@dataclass(slots=True)
class _Parser:
    lines: Iterator[Line]
    depth: int = 0
    closer: Directive | None = field(default=None)  # the #elif, #else, #endif or #endfor that ended a block

    def block(self, opener: Directive | None = None) -> tuple[Node, ...]:
        """Nodes up to the end of the file, or up to a closer of `opener`."""
        nodes: list[Node] = []
        for line in self.lines:
            directive = _directive(line)
            if directive is None:
                nodes.append(line)
            elif directive.name in _PLAIN:
                nodes.append(directive)
            elif directive.name in _CLOSERS:
                self.close(directive, opener)
                return tuple(nodes)
            else:
                nodes.append(self.nested(directive))
        if opener is not None:
            end = "#endfor" if opener.name == "for" else "#endif"
            raise template_error(opener.place, f"#{opener.name} is never closed with {end}")
        return tuple(nodes)

    def close(self, directive: Directive, opener: Directive | None) -> None:
        wanted = _CLOSERS[directive.name]
        have = None if opener is None else ("#for" if opener.name == "for" else "#if")
        if have != wanted:
            inside = "" if opener is None else f" (inside the #{opener.name} of line {opener.place.line})"
            raise template_error(directive.place, f"#{directive.name} without an open {wanted}{inside}")
        self.closer = directive

    def nested(self, head: Directive) -> Node:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise template_error(head.place, f"#{head.name} nested more than {MAX_NESTING} deep")
        node = Loop(head, self.block(head)) if head.name == "for" else self.conditional(head)
        self.depth -= 1
        return node

    def conditional(self, head: Directive) -> Conditional:
        branches: list[tuple[Directive, tuple[Node, ...]]] = []
        while head.name != "endif":
            if branches and branches[-1][0].name == "else":
                raise template_error(head.place, f"#{head.name} after #else")
            body = self.block(head)
            branches.append((head, body))
            assert self.closer is not None  # block() returns only at a closer of `head`
            head = self.closer
        return Conditional(tuple(branches))


def _directive(line: Line) -> Directive | None:
    match = _DIRECTIVE.fullmatch(line.text)
    if match is None:
        return None
    name = match.group(1)
    if name not in _PLAIN | _CONDITIONS | _CLOSERS.keys() | {"for"}:
        known = ", ".join(f"#{known}" for known in sorted(_PLAIN | _CONDITIONS | _CLOSERS.keys() | {"for"}))
        raise template_error(line.place, f"#{name} is not a directive; there are {known}")
    return Directive(line.place, name, match.group(2).strip())
