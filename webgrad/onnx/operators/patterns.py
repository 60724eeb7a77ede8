"""Regular expressions that take time in proportion to the text, whatever a model's file asks for.

In: an expression in the syntax that RE2 and Python share. Out: whether it matches a whole text. Python's
module reads the expression; its matcher goes back and tries again, which may take for ever, so that texts are
matched here by sets of states. What needs going back (groups that are repeated, looking around) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser
from typing import Any, NamedTuple

import webgrad as wg

__all__ = ["matches_whole"]

MOST = 10_000  # states of an expression; counted repetitions make many
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_SPACES = frozenset("\t\n\f\r ")
_DIGITS = frozenset("0123456789")
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    kinds.CATEGORY_DIGIT: lambda at: at in _DIGITS,
    kinds.CATEGORY_NOT_DIGIT: lambda at: at not in _DIGITS,
    kinds.CATEGORY_SPACE: lambda at: at in _SPACES,
    kinds.CATEGORY_NOT_SPACE: lambda at: at not in _SPACES,
    kinds.CATEGORY_WORD: lambda at: at in _LETTERS,
    kinds.CATEGORY_NOT_WORD: lambda at: at not in _LETTERS,
}


class _State(NamedTuple):
    """A step: a character that `reads` accepts, or none, where `holds` is true of the text and a place."""

    reads: Callable[[str], bool] | None
    holds: Callable[[str, int], bool] | None
    after: tuple[int, ...]  # the states that follow, counted from this one


def matches_whole(pattern: str, text: str) -> bool:
    """Whether an expression matches a text from its first character to its last."""
    states = _states(pattern)
    found = _reached(states, [0], text, 0)
    for at, character in enumerate(text):
        read = ((place, states[place].reads) for place in found)
        then = [place + 1 for place, reads in read if reads is not None and reads(character)]
        found = _reached(states, then, text, at + 1)
    return len(states) - 1 in found


def _reached(states: list[_State], starts: list[int], text: str, at: int) -> set[int]:
    """The states that are reached without a character."""
    found: set[int] = set()
    while starts:
        place = starts.pop()
        if place not in found:
            found.add(place)
            state = states[place]
            if state.reads is None and (state.holds is None or state.holds(text, at)):
                starts += [place + each for each in state.after]
    return found


@lru_cache(maxsize=64)
def _states(pattern: str) -> list[_State]:
    try:
        tree = parser.parse(pattern)
        return [*_sequence(tree, tree.state.flags), _jump()]
    except (re.error, RecursionError, OverflowError) as error:
        raise wg.ArgumentError(f"the pattern {pattern[:200]!r} is none that is known: {error}") from None


def _sequence(items: Any, flags: int) -> list[_State]:
    """The states of items one after the other."""
    found: list[_State] = []
    for kind, value in items:
        if kind not in _PARTS:
            raise re.error(f"{str(kind).lower()} needs going back")
        found += _PARTS[kind](value, flags)
        _refuse_many(len(found))
    return found


def _repeated(value: Any, flags: int) -> list[_State]:
    """The least number of times; then as often as there may be, each time with a way past the rest."""
    least, most, items = value
    inner = _sequence(items, flags)
    size = len(inner) + 1
    if most is kinds.MAXREPEAT:
        _refuse_many(least * len(inner))
        return [*inner * least, _jump(1, size + 1), *inner, _jump(-size)]
    _refuse_many(most * size)
    rest = [state for left in range(most - least, 0, -1) for state in (_jump(1, left * size), *inner)]
    return [*inner * least, *rest]


def _refuse_many(count: int) -> None:
    if count > MOST:
        raise re.error(f"it has more than {MOST:,} states")


def _branched(value: Any, flags: int) -> list[_State]:
    """A jump to each branch, and after each a jump to the end."""
    branches = [_sequence(each, flags) for each in value[1]]
    ends = list(accumulate(len(each) + 1 for each in branches))
    parts = [
        state
        for each, end in zip(branches, ends, strict=True)
        for state in (*each, _jump(ends[-1] - end + 1))
    ]
    return [_jump(1, *(end + 1 for end in ends[:-1])), *parts]


def _jump(*to: int) -> _State:
    return _State(None, None, to)


def _reading(is_wanted: Callable[[str], bool], flags: int) -> list[_State]:
    if flags & re.IGNORECASE:
        return [_State(lambda at: is_wanted(at.lower()) or is_wanted(at.upper()), None, (1,))]
    return [_State(is_wanted, None, (1,))]


def _one_of(items: Any) -> Callable[[str], bool]:
    tests = [_CLASSES[kind](value) for kind, value in items if kind is not kinds.NEGATE]
    is_not = items[0][0] is kinds.NEGATE
    return lambda at: any(test(at) for test in tests) is not is_not


_CLASSES: dict[Any, Callable[[Any], Callable[[str], bool]]] = {
    kinds.LITERAL: lambda value: lambda at: at == chr(value),
    kinds.RANGE: lambda value: lambda at: chr(value[0]) <= at <= chr(value[1]),
    kinds.CATEGORY: lambda value: _CATEGORIES[value],
}


def _placed(value: Any, flags: int) -> list[_State]:
    lines = bool(flags & re.MULTILINE)
    return [_State(None, lambda text, at: _PLACES[value](text, at, lines), (1,))]


def _is_boundary(text: str, at: int, lines: bool) -> bool:
    return (text[max(at - 1, 0) : at] in _LETTERS) is not (text[at : at + 1] in _LETTERS)


_PLACES: dict[Any, Callable[[str, int, bool], bool]] = {
    kinds.AT_BEGINNING: lambda text, at, lines: at == 0 or (lines and text[at - 1] == "\n"),
    kinds.AT_BEGINNING_STRING: lambda text, at, lines: at == 0,
    kinds.AT_END: lambda text, at, lines: at == len(text) or (lines and text[at] == "\n"),
    kinds.AT_END_STRING: lambda text, at, lines: at == len(text),
    kinds.AT_BOUNDARY: _is_boundary,
    kinds.AT_NON_BOUNDARY: lambda text, at, lines: not _is_boundary(text, at, lines),
}


def _grouped(value: Any, flags: int) -> list[_State]:
    _, more, fewer, items = value
    return _sequence(items, (flags | more) & ~fewer)


_PARTS: dict[Any, Callable[[Any, int], list[_State]]] = {
    kinds.LITERAL: lambda value, flags: _reading(_CLASSES[kinds.LITERAL](value), flags),
    kinds.NOT_LITERAL: lambda value, flags: _reading(lambda at: at != chr(value), flags),
    kinds.ANY: lambda _, flags: _reading(lambda at: at != "\n" or bool(flags & re.DOTALL), flags),
    kinds.IN: lambda value, flags: _reading(_one_of(value), flags),
    kinds.AT: _placed,
    kinds.BRANCH: _branched,
    kinds.SUBPATTERN: _grouped,
    kinds.MAX_REPEAT: _repeated,
    kinds.MIN_REPEAT: _repeated,
}
