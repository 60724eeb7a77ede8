"""Rows of text as functions: torch's names and signature, and the same in webgrad's words.

In: lines such as `sum(input, dim=None, keepdim=False, *, dtype=None) = wg.sum(input, axis=dim, …)` under a
heading such as `[method out]`. Out: functions by their names, and which of them are methods. The invariant:
what a function returns are torch's tensors, and a keyword that torch does not have is an error that names the
right one.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn

from .tensor import adopt, written

__all__ = ["Row", "absent", "bind", "methods", "public", "read"]

# NumPy's names of arguments, which torch takes too, and names that people try.
SPELLINGS = {
    "axis": ("dim", "dims"),
    "axes": ("dims", "dim"),
    "keepdims": ("keepdim",),
    "x": ("input", "self"),
    "x1": ("input",),
    "x2": ("other",),
    "correction": ("unbiased",),
    "k": ("diagonal", "k"),
}
FORMS = frozenset({"method", "in_place", "out", "function"})
HEADING = re.compile(r"\[([\w ]+)\]")
LINE = re.compile(r"([\w. ]+?)\s*\((.*?)\) = (.+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    names: tuple[str, ...]
    signature: str
    expression: str
    forms: frozenset[
        str
    ]  # also a method, also in place (`name_`), with `out=`; "function": a function at all


def read(table: str, shorthands: Mapping[str, str] = MappingProxyType({})) -> Iterator[Row]:
    """The rows of a table; a row may go on in lines that are indented, and shorthands stand for arguments."""
    forms: frozenset[str] = frozenset()
    for short, long in shorthands.items():
        table = table.replace(short, long)
    for line in re.sub(r"\n[ \t]+", " ", table.strip()).splitlines():
        if heading := HEADING.fullmatch(line.strip()):
            forms = frozenset(heading[1].split())
            if forms - FORMS:
                raise ValueError(f"{line}: there are no forms {sorted(forms - FORMS)}")
        elif line.strip() and not line.startswith("#"):
            found = LINE.fullmatch(line)
            if found is None:
                raise ValueError(f"this is no row: {line!r}")
            yield Row(tuple(found[1].split()), found[2], found[3], forms)


def bind(
    table: str, words: dict[str, Any], shorthands: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Callable[..., Any]]:
    """Functions from the rows of a table, by all their names; `words` are what expressions may name.

    A row that is in place is there as `name_` too.
    """
    made: dict[str, Callable[..., Any]] = {}
    for row in read(table, shorthands):
        made |= _functions(row, words)
    return made


def methods(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Those that are methods of tensors."""
    return {name: each for name, each in functions.items() if "method" in each.__dict__.get("forms", ())}


def public(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Those that are functions of the namespace: rows that say so, and what is no row."""
    return {name: each for name, each in functions.items() if "function" in each.__dict__.get("forms", FORMS)}


def absent(module: str, names: list[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a namespace: an error that names what is spelled like it."""

    def refuse(name: str) -> NoReturn:
        near = difflib.get_close_matches(name, names, 1, 0.6)
        hint = f": did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")

    return refuse


def _functions(row: Row, words: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    main = row.names[0]
    out = ", out=None" if "out" in row.forms else ""
    star = ", *" if out and "*" not in row.signature else ""
    made = {main: _compiled(main, row.signature + star + out, row.expression, bool(out), words)}
    if "in_place" in row.forms:
        changed = f"written({_first(row.signature)}, {row.expression})"
        made[f"{main}_"] = _compiled(f"{main}_", row.signature, changed, False, words)
    for name, function in list(made.items()):
        function.__dict__["forms"] = row.forms
        tail = "_" if name != main else ""
        made |= {f"{other}{tail}": function for other in row.names[1:]}
    return made


def _first(signature: str) -> str:
    return re.split(r"[,=]", signature, maxsplit=1)[0].strip()


def _compiled(name: str, signature: str, expression: str, out: bool, words: dict[str, Any]) -> Any:
    """The function of a row; a keyword that it does not know is looked up in `SPELLINGS`."""
    other = "" if "**" in signature else f"{', ' if signature else ''}**other_names"
    lines = [f"def row({signature}{other}):"]
    if other:
        lines.append(f"    if other_names: return again(row, {name!r}, other_names, locals())")
    if out:
        lines.append(f"    if out is not None: return written(out, {expression}, True)")
    lines.append(f"    return adopt({expression})")
    body = "\n".join(f"    {line}" for line in lines)
    text = f"def made(adopt, written, again):\n{body}\n    return row\n"
    scope: dict[str, Any] = {}
    exec(compile(text, f"<webgrad.torch {name}>", "exec"), words, scope)
    function = scope["made"](adopt, written, again)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"torch's {name}({signature}): {expression}."
    return function


def again(function: Callable[..., Any], name: str, others: dict[str, Any], values: dict[str, Any]) -> Any:
    """The function called with other keywords in torch's own names."""
    parameters = inspect.signature(function).parameters
    names = [each for each in parameters if each != "other_names"]
    given = {each: values[each] for each in names}
    for other, value in others.items():
        known = next((each for each in (other, *SPELLINGS.get(other, ())) if each in given), None)
        if known is None:
            _refuse(name, other, names)
        several = parameters[known].kind is inspect.Parameter.VAR_POSITIONAL
        given[known] = (value,) if several else value
    positional, keywords = [], {}
    for each, value in given.items():
        kind = parameters[each].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional += value
        elif kind is inspect.Parameter.KEYWORD_ONLY:
            keywords[each] = value
        else:
            positional.append(value)
    return function(*positional, **keywords)


def _refuse(name: str, keyword: str, names: list[str]) -> NoReturn:
    near = difflib.get_close_matches(keyword, names, 1, 0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise TypeError(
        f"{name}() got an unexpected keyword argument {keyword!r}: {hint}it takes {', '.join(names)}"
    )
