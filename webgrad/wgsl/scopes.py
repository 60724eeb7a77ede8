"""Which declaration every word of a WGSL module means, shadowing respected.

In: a Module. Out: a Resolution: where each global is used and by whom, every local with its uses, the
members, and the words nobody declared (keywords, built-in types, functions and values). Invariant: a local
is visible from the end of its own declaration to the end of its block, as WGSL has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from webgrad.wgsl.syntax import Attribute, Declaration, Module

# Attributes whose arguments are words of their own, not expressions.
_LITERAL_ATTRIBUTES = frozenset({"builtin", "diagnostic", "interpolate", "invariant", "compute", "must_use"})


SWIZZLE = re.compile(r"[xyzw]{1,4}|[rgba]{1,4}")  # members of vectors
RESULT_MEMBERS = frozenset({"fract", "whole", "exp", "old_value", "exchanged"})  # of modf, frexp, atomics


@dataclass(slots=True)
class Local:
    """A function's parameter, let, var or const."""

    name: str
    function: str
    index: int  # the token of its name where it is declared
    visible: int  # how many locals of the function are visible where it is declared
    statement: tuple[int, int] = (0, 0)  # tokens of `let x = …;` with the semicolon; (0, 0) for a parameter
    uses: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Resolution:
    """The meaning of a module's words."""

    globals: dict[str, list[int]] = field(default_factory=dict)  # every token that means the global
    locals: list[Local] = field(default_factory=list)
    members: dict[str, list[int]] = field(default_factory=dict)  # declarations and `.name` accesses
    references: dict[int, set[str]] = field(default_factory=dict)  # declaration start → globals it uses
    externals: dict[int, set[str]] = field(default_factory=dict)  # declaration start → words nobody declared


def resolve(module: Module) -> Resolution:
    """Resolves every declaration of a module."""
    resolution = Resolution({name: [one.index] for name, one in module.names.items()})
    for declaration in module.declarations:
        _Walk(module, resolution, declaration).run()
    return resolution


def reachable(module: Module, resolution: Resolution, roots: set[str]) -> set[str]:
    """The names of all globals that the roots and const_asserts use, directly or not, with the roots."""
    asserts = (one.start for one in module.declarations if one.kind == "const_assert")
    found: set[str] = set()
    pending = sorted(roots.union(*(resolution.references[start] for start in asserts)))
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        pending.extend(resolution.references[module.names[name].start] - found)
    return found


class _Walk:
    """Resolves one declaration in one pass over its tokens."""

    def __init__(self, module: Module, resolution: Resolution, declaration: Declaration) -> None:
        self.module = module
        self.source = module.source
        self.tokens = module.source.tokens
        self.resolution = resolution
        self.declaration = declaration
        self.references: set[str] = set()
        self.externals: set[str] = set()
        self.scopes: list[dict[str, Local]] = []

    def run(self) -> None:
        one = self.declaration
        self.resolution.references[one.start] = self.references
        self.resolution.externals[one.start] = self.externals
        if one.kind == "directive":
            return
        for attribute in one.attributes:
            self.attribute(attribute)
        self.expression(*one.type)
        for member in one.members:
            for attribute in member.attributes:
                self.attribute(attribute)
            self.expression(*member.type)
            if one.kind == "struct":
                self.resolution.members.setdefault(member.name, []).append(member.index)
        if one.kind == "fn":
            self.function()
        else:
            self.expression(*one.value)

    def attribute(self, attribute: Attribute) -> None:
        if attribute.name in _LITERAL_ATTRIBUTES:
            self.externals.update(token.text for token in self.tokens[attribute.start : attribute.stop])
        else:
            self.expression(attribute.start, attribute.stop)

    def expression(self, start: int, stop: int) -> None:
        index = start
        while index < stop:
            index = self.token(index)

    def token(self, index: int) -> int:
        """Handles the token at `index`; returns the index of the next one."""
        token = self.tokens[index]
        if token.text == "." and self.tokens[index + 1].kind == "word":
            self.resolution.members.setdefault(self.tokens[index + 1].text, []).append(index + 1)
            return index + 2
        if token.text == "@":
            return self.skip_attribute(index)
        if token.kind == "word":
            self.word(index)
        return index + 1

    def skip_attribute(self, index: int) -> int:
        after = index + 2
        return self.source.pairs[after] + 1 if self.source.is_text(after, "(") else after

    def word(self, index: int) -> None:
        name = self.tokens[index].text
        for scope in reversed(self.scopes):
            if name in scope:
                scope[name].uses.append(index)
                return
        if name in self.module.names:
            self.references.add(name)
            self.resolution.globals[name].append(index)
        else:
            self.externals.add(name)

    # --- functions

    def function(self) -> None:
        self.scopes = [{}]
        for member in self.declaration.members:
            self.declare(Local(member.name, self.declaration.name, member.index, self.visible()))
        self.body(*self.declaration.value)
        self.scopes = []

    def visible(self) -> int:
        return sum(map(len, self.scopes))

    def declare(self, local: Local) -> None:
        if local.name in self.scopes[-1]:
            raise self.source.error(local.index, f"`{local.name}` is declared twice in one block")
        self.scopes[-1][local.name] = local
        self.resolution.locals.append(local)

    def body(self, start: int, stop: int) -> None:
        """Blocks open and close scopes; a `for` has one more around its header and block."""
        loops: list[bool] = [False]  # for each open scope, whether it is a for's outer one
        pending: tuple[int, int] | None = None  # (keyword, name) of the declaration being read
        index = start + 1
        while index < stop - 1:
            text = self.tokens[index].text
            if text == "{" or text == "for":
                self.scopes.append({})
                loops.append(text == "for")
            elif text == "}":
                self.close(loops)
            elif text in ("let", "var", "const"):
                name = self.declared_name(index)
                pending = (index, name)
                self.expression(index + 1, name)
                index = name
            elif text == ";" and pending is not None:
                self.local(*pending, index)
                pending = None
            else:
                index = self.token(index)
                continue
            index += 1

    def close(self, loops: list[bool]) -> None:
        self.scopes.pop()
        loops.pop()
        while loops[-1]:
            self.scopes.pop()
            loops.pop()

    def declared_name(self, keyword: int) -> int:
        index = keyword + 1
        if self.source.is_text(index, "<"):
            index = self.source.template_end(index)
        if not index or self.tokens[index].kind != "word":
            raise self.source.error(keyword, f"a name is expected after `{self.tokens[keyword].text}`")
        return index

    def local(self, keyword: int, name: int, semicolon: int) -> None:
        local = Local(self.tokens[name].text, self.declaration.name, name, self.visible())
        local.statement = (keyword, semicolon + 1)
        self.declare(local)
