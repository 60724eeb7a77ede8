"""Macro definitions and their expansion over preprocessor tokens.

In: a line's text and a table of macros. Out: the text with every macro replaced, `##` pasted. A macro is
never expanded inside its own expansion, and a budget bounds the work, so every input ends quickly. `##`
joins its neighbours after they have been expanded: `acc##i` with i = 3 gives acc3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_NESTING = 48
_TOKEN = re.compile(r"\s+|[^\W\d]\w*|0[xX][\w.]+|\.?\d[\w.]*|##|.", re.DOTALL)
NAME = re.compile(r"[^\W\d]\w*")
_DEFINITION = re.compile(r"\s*([^\W\d]\w*)(\(([^()]*)\))?(.*)", re.DOTALL)
_NOTHING: frozenset[str] = frozenset()


class MacroError(Exception):
    """A macro that cannot be defined or expanded; the caller adds the place."""


class UnclosedCall(MacroError):
    """The text ends inside a macro's argument list: more lines may close it."""


@dataclass(frozen=True, slots=True)
class Macro:
    """One `#define`; `parameters` is None for a macro without an argument list."""

    name: str
    body: tuple[str, ...]
    parameters: tuple[str, ...] | None = None


@dataclass(slots=True)
class Budget:
    """How much work and output is left before the expansion is stopped."""

    steps: int
    characters: int
    limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.limit = self.characters

    def step(self, count: int = 1) -> None:
        self.steps -= count
        if self.steps < 0:
            raise MacroError("the expansion takes too many steps; does a macro or #for multiply itself?")

    def write(self, count: int) -> None:
        self.characters -= count
        if self.characters < 0:
            raise MacroError(f"the expanded text is longer than {self.limit:,} characters")


class _Token(NamedTuple):  # a tuple, as there are very many
    text: str
    hidden: frozenset[str]  # macros this token came out of: they are not expanded again

    @property
    def is_space(self) -> bool:
        return self.text.isspace()


def split_tokens(text: str) -> list[str]:
    """Names, numbers, runs of space, `##` and single characters."""
    return _TOKEN.findall(text)


def parse_definition(text: str) -> Macro:
    """The macro of `NAME value` or `NAME(a, b) body`."""
    match = _DEFINITION.fullmatch(text)
    if match is None:
        raise MacroError("#define needs a name: `#define NAME value` or `#define NAME(a, b) body`")
    name, has_list, inside, rest = match.groups()
    if name == "defined":
        raise MacroError("`defined` cannot be a macro")
    if has_list is None and rest[:1] not in ("", " ", "\t", "\n"):
        raise MacroError(f"after `{name}` a space or a list of parameters `(a, b)` is expected")
    parameters = None if has_list is None else _parameters(name, inside)
    body = tuple(split_tokens(rest.strip()))
    if body and (body[0] == "##" or body[-1] == "##"):
        raise MacroError(f"`##` in `{name}` needs something on both sides")
    return Macro(name, body, parameters)


def _parameters(name: str, inside: str) -> tuple[str, ...]:
    if not inside.strip():
        return ()
    parameters = tuple(part.strip() for part in inside.split(","))
    for parameter in parameters:
        if not NAME.fullmatch(parameter):
            raise MacroError(f"`{parameter}` is not a parameter name of macro `{name}`")
    if len(set(parameters)) < len(parameters):
        raise MacroError(f"macro `{name}` names a parameter twice")
    return parameters


def expand(text: str, macros: Mapping[str, Macro], budget: Budget) -> str:
    """The text with all macros replaced.

    >>> square = parse_definition("SQUARE(x) ((x) * (x))")
    >>> expand("let y = SQUARE(a);", {"SQUARE": square}, Budget(1000, 1000))
    'let y = ((a) * (a));'
    """
    parts = split_tokens(text)
    if "##" not in parts and macros.keys().isdisjoint(parts):
        budget.write(len(text) + 1)
        return text
    tokens = [_Token(part, _NOTHING) for part in parts]
    result = "".join(token.text for token in _expand(tokens, macros, budget, 0))
    budget.write(len(result) + 1)
    return result


def _expand(
    tokens: Sequence[_Token], macros: Mapping[str, Macro], budget: Budget, depth: int
) -> list[_Token]:
    if depth > MAX_NESTING:
        raise MacroError(f"macro calls are nested more than {MAX_NESTING} deep")
    stack = list(reversed(tokens))  # the next token is the last
    output: list[_Token] = []
    while stack:
        budget.step()
        token = stack.pop()
        if token.text == "##":
            raise MacroError("`##` needs something on both sides")
        if _skip_space(stack, "##") is not None:
            stack.extend(reversed(_paste(token, stack, macros, budget, depth)))
            continue
        macro = macros.get(token.text)
        if macro is None or macro.name in token.hidden:
            output.append(token)
        elif macro.parameters is None:
            _push(stack, [_Token(part, token.hidden | {macro.name}) for part in macro.body], budget)
        elif (opening := _skip_space(stack, "(")) is None:
            output.append(token)
        else:
            del stack[opening:]
            arguments = _arguments(macro, stack, budget)
            _push(stack, _call_body(macro, token, arguments, macros, budget, depth), budget)
    return output


def _push(stack: list[_Token], tokens: list[_Token], budget: Budget) -> None:
    budget.step(len(tokens))
    stack.extend(reversed(tokens))


def _skip_space(stack: Sequence[_Token], wanted: str) -> int | None:
    """The index of the next token but for space, if it is the wanted one."""
    index = len(stack) - 1
    while index >= 0 and stack[index].is_space:
        index -= 1
    return index if index >= 0 and stack[index].text == wanted else None


def _paste(
    left: _Token, stack: list[_Token], macros: Mapping[str, Macro], budget: Budget, depth: int
) -> list[_Token]:
    """Takes `## right` from the stack and returns the joined tokens; both sides are expanded first."""
    index = _skip_space(stack, "##")
    del stack[index:]
    while stack and stack[-1].is_space:
        stack.pop()
    if left.is_space or not stack or stack[-1].text == "##":
        raise MacroError("`##` needs something on both sides")
    before = _expand([left], macros, budget, depth + 1)
    after = _expand([stack.pop()], macros, budget, depth + 1)
    left_end = before.pop() if before else _Token("", _NOTHING)
    right_end = after.pop(0) if after else _Token("", _NOTHING)
    hidden = left_end.hidden | right_end.hidden
    budget.step(len(before) + len(after))
    joined = [_Token(part, hidden) for part in split_tokens(left_end.text + right_end.text)]
    return before + (joined or [_Token("", hidden)]) + after


def _arguments(macro: Macro, stack: list[_Token], budget: Budget) -> list[list[_Token]]:
    """Takes the argument list, its `(` already gone, from the stack."""
    arguments: list[list[_Token]] = [[]]
    depth = 1
    while stack:
        budget.step()
        token = stack.pop()
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                return _checked(macro, [_strip(argument) for argument in arguments])
        elif token.text == "," and depth == 1:
            arguments.append([])
            continue
        arguments[-1].append(token)
    raise UnclosedCall(f"the argument list of macro `{macro.name}` is not closed")


def _strip(tokens: list[_Token]) -> list[_Token]:
    start, stop = 0, len(tokens)
    while start < stop and tokens[start].is_space:
        start += 1
    while stop > start and tokens[stop - 1].is_space:
        stop -= 1
    return tokens[start:stop]


def _checked(macro: Macro, arguments: list[list[_Token]]) -> list[list[_Token]]:
    expected = len(macro.parameters or ())
    if expected == 0 and arguments == [[]]:
        return []
    if len(arguments) != expected:
        raise MacroError(
            f"macro `{macro.name}({', '.join(macro.parameters or ())})` takes {expected} "
            f"argument{'s' * (expected != 1)}, {len(arguments)} given"
        )
    return arguments


def _call_body(
    macro: Macro,
    token: _Token,
    arguments: list[list[_Token]],
    macros: Mapping[str, Macro],
    budget: Budget,
    depth: int,
) -> list[_Token]:
    hidden = token.hidden | {macro.name}
    names = macro.parameters or ()
    expanded: dict[str, list[_Token]] = {}
    result: list[_Token] = []
    for part in macro.body:
        if part not in names:
            result.append(_Token(part, hidden))
            continue
        if part not in expanded:
            argument = arguments[names.index(part)]
            expanded[part] = _expand(argument, macros, budget, depth + 1)
        # An empty token stands for an empty argument, so that `##` beside it has an operand.
        result.extend(expanded[part] or [_Token("", hidden)])
        budget.step(len(expanded[part]))
    return result
