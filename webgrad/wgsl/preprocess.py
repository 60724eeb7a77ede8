"""The .pwgsl preprocessor: a template and its defines become lines of WGSL, each with its origin.

In: template text, defines, and a loader for #include. Out: `Expanded`: lines without comments, blank lines
or directives, and for each the file and line it was written in. Invariant: any input ends quickly, either
so or with a TemplateError that names file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from webgrad.errors import TemplateError
from webgrad.wgsl.conditions import ExpressionError, Symbol, Value, evaluate, split_words
from webgrad.wgsl.directives import (
    Conditional,
    Directive,
    Line,
    Loop,
    Node,
    Place,
    parse_tree,
    template_error,
)
from webgrad.wgsl.macros import NAME, Budget, Macro, MacroError, UnclosedCall, expand, parse_definition

MAX_OUTPUT = 1_000_000
MAX_STEPS = 400_000
MAX_INCLUDES = 16
MAX_BLOCKS = 64
MAX_JOINED_LINES = 200
_INCLUDE = re.compile(r'"([^"]*)"')

DefineValue = str | int | float | bool
# From (name in the #include, including file) to (the file's name, its text); raises TemplateError.
Loader = Callable[[str, str], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Expanded:
    """WGSL lines and where each came from."""

    lines: tuple[str, ...]
    origins: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def normalise_defines(defines: Mapping[str, DefineValue]) -> tuple[tuple[str, str], ...]:
    """Defines as sorted pairs of texts; True is 1 and False is 0."""
    pairs = []
    if not isinstance(defines, Mapping):
        raise TemplateError(f"defines are given as a dictionary of names, not as a {type(defines).__name__}")
    for name, value in sorted(defines.items()):
        if not NAME.fullmatch(name):
            raise TemplateError(f"define {name!r} is not a name; use letters, digits and underscores")
        pairs.append((name, str(int(value)) if isinstance(value, bool) else str(value)))
    return tuple(pairs)


def preprocess(text: str, *, file: str, defines: Mapping[str, DefineValue], loader: Loader) -> Expanded:
    """Runs a template."""
    run = _Run(loader)
    for name, value in normalise_defines(defines):
        try:
            run.define(f"{name} {value}")
        except MacroError as error:
            raise TemplateError(f"{file}: define {name}={value!r}: {error}") from None
    run.file(text, file)
    return Expanded(tuple(run.lines), tuple(run.origins))


@dataclass(slots=True)
class _Run:
    """One expansion: the macros in force, and the output so far."""

    loader: Loader
    macros: dict[str, Macro] = field(default_factory=dict)
    budget: Budget = field(default_factory=lambda: Budget(MAX_STEPS, MAX_OUTPUT))
    lines: list[str] = field(default_factory=list)
    origins: list[tuple[str, int]] = field(default_factory=list)
    including: list[str] = field(default_factory=list)
    open_blocks: int = 0

    def file(self, text: str, file: str) -> None:
        self.including.append(file)
        self.block(parse_tree(text, file))
        self.including.pop()

    def block(self, nodes: tuple[Node, ...]) -> None:
        self.open_blocks += 1
        pending = iter(nodes)
        for node in pending:
            try:
                self.budget.step()
                self.node(node, pending)
            except (MacroError, ExpressionError) as error:
                raise template_error(_place(node), str(error)) from None
        self.open_blocks -= 1

    def node(self, node: Node, following: Iterator[Node]) -> None:
        if self.open_blocks > MAX_BLOCKS:
            raise MacroError(f"#if, #for and #include are nested more than {MAX_BLOCKS} deep")
        if isinstance(node, Line):
            self.text(node, following)
        elif isinstance(node, Conditional):
            self.conditional(node)
        elif isinstance(node, Loop):
            self.loop(node)
        else:
            _ACTIONS[node.name](self, node)

    # --- text

    def text(self, line: Line, following: Iterator[Node]) -> None:
        """Expands a line; a macro call left open takes in the lines that follow."""
        text = line.text
        for _ in range(MAX_JOINED_LINES):
            try:
                expanded = expand(text, self.macros, self.budget)
                break
            except UnclosedCall:
                more = next(following, None)
                if not isinstance(more, Line):
                    raise
                text += "\n" + more.text
        else:
            raise MacroError(f"a macro call runs over more than {MAX_JOINED_LINES} lines")
        for part in expanded.split("\n"):
            if part.strip():
                self.lines.append(part.rstrip())
                self.origins.append((line.place.file, line.place.line))

    # --- blocks

    def conditional(self, node: Conditional) -> None:
        for head, body in node.branches:
            try:
                chosen = self.holds(head)
            except (MacroError, ExpressionError) as error:
                raise template_error(head.place, str(error)) from None
            if chosen:
                self.block(body)
                return

    def holds(self, head: Directive) -> bool:
        if head.name == "else":
            return True
        if head.name in ("ifdef", "ifndef"):
            if not NAME.fullmatch(head.rest):
                raise MacroError(f"#{head.name} needs one name")
            return (head.rest in self.macros) == (head.name == "ifdef")
        return bool(self.evaluate(head.rest))

    def loop(self, node: Loop) -> None:
        words = node.head.rest.split(None, 2)
        first, dots, last = words[-1].partition("..") if len(words) == 3 else ("", "", "")
        if not dots or words[1] != "in" or not NAME.fullmatch(words[0]):
            raise MacroError("#for is written `#for i in 0..N`: a name, `in`, and two bounds")
        name = words[0]
        if name in self.macros:
            raise MacroError(f"the loop variable `{name}` is already defined")
        start, stop = self.evaluate(first), self.evaluate(last)
        for value in range(start, stop):
            self.budget.step()
            self.macros[name] = Macro(name, (str(value),))
            self.block(node.body)
        self.macros.pop(name, None)

    def evaluate(self, text: str) -> int:
        """The value of an integer expression, macros expanded but for the names in defined(...)."""
        if not text.strip():
            raise ExpressionError("a condition is missing")
        guarded = re.sub(
            r"\bdefined\s*(?:\(\s*([^\W\d]\w*)\s*\)|([^\W\d]\w*))",
            lambda match: str(int((match[1] or match[2]) in self.macros)),
            text,
        )
        expanded = expand(guarded, self.macros, self.budget)
        words = split_words(expanded)
        self.budget.step(len(words))
        return evaluate(words, _as_symbol)

    # --- plain directives

    def define(self, text: str) -> None:
        macro = parse_definition(text)
        known = self.macros.get(macro.name)
        if known is not None and known != macro:
            raise MacroError(
                f"`{macro.name}` is already defined as `{''.join(known.body)}`; "
                f"wrap it in #ifndef {macro.name}, or #undef it first"
            )
        self.macros[macro.name] = macro

    def undef(self, node: Directive) -> None:
        if not NAME.fullmatch(node.rest):
            raise MacroError("#undef needs one name")
        self.macros.pop(node.rest, None)

    def include(self, node: Directive) -> None:
        match = _INCLUDE.fullmatch(node.rest)
        if match is None:
            raise MacroError('#include is written `#include "file.pwgsl"`')
        try:
            file, text = self.loader(match[1], node.place.file)
        except TemplateError as error:
            raise template_error(node.place, str(error)) from None
        if file in self.including:
            raise MacroError(f"#include goes in a circle: {' -> '.join([*self.including, file])}")
        if len(self.including) >= MAX_INCLUDES:
            raise MacroError(f"#include nested more than {MAX_INCLUDES} deep")
        self.budget.step(text.count("\n"))
        self.file(text, file)

    def error(self, node: Directive) -> None:
        raise MacroError(expand(node.rest, self.macros, self.budget) or "#error")


def _as_symbol(name: str) -> Value:
    return Symbol(name)


def _place(node: Node) -> Place:
    if isinstance(node, Conditional):
        return node.branches[0][0].place
    return node.head.place if isinstance(node, Loop) else node.place


_ACTIONS: dict[str, Callable[[_Run, Directive], None]] = {
    "define": lambda run, node: run.define(node.rest),
    "undef": _Run.undef,
    "include": _Run.include,
    "error": _Run.error,
}
