"""How long a tokenizer's regular expression may search: at most about once through the text for each match.

In: an expression as Oniguruma reads it. Out: the fewest letters it matches, or a ModelFileError. Engines
search without a limit of time, so what may go back and forth over a text is refused before any is encoded.
"""

from __future__ import annotations

import re
import re._parser as parser  # type: ignore[import-not-found]
import warnings
from dataclasses import dataclass
from typing import Any

from webgrad.errors import ModelFileError

from .pretokenizers import PRETOKENIZERS

__all__ = ["check_pattern"]

LONGEST_PATTERN = 10_000
MOST_CHOICES = 64  # ways to match one start, where parts have a bounded length
WIDEST_LOOK = 16
UNBOUNDED = 64  # a part that repeats more often goes through as much of the text as it likes
# What Python writes otherwise; which letters are meant does not matter here.
SPELLINGS = (
    (re.compile(r"\\[pP]\{[^{}]*\}|\[:\^?\w+:\]|\\h"), r"\\d"),
    (re.compile(r"\\x\{[0-9a-fA-F]+\}"), "x"),
    (re.compile(r"\\z"), r"\\Z"),
    (re.compile(r"\(\?[imsx-]+\)"), ""),
)
# The last may search for long where a text is one run of digits; models in use were made with it.
PUBLISHED = {cut for rules in PRETOKENIZERS.values() for cut in rules.cuts} | {r"(?=(\d{3})+(?!\d))"}
REPEATS = (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT)
LOOKS = (parser.ASSERT, parser.ASSERT_NOT)
PLAIN = (parser.LITERAL, parser.NOT_LITERAL, parser.IN, parser.ANY, parser.CATEGORY)


class _Endless(Exception):
    """Why an expression may search for long."""


@dataclass(frozen=True)
class _Part:
    """A part of a sequence: in how many ways it matches, whether it may fail, and what it repeats."""

    choices: int = 1
    may_fail: bool = False
    repeated: str | None = None  # of an unbounded repeat, what is repeated
    not_behind: str | None = None  # of a look back, what must not be there


def check_pattern(pattern: str, name: str) -> int:
    """The fewest letters that a match has; refuses an expression that may search for long."""
    try:
        tree = _parse(pattern)
        if pattern not in PUBLISHED:
            _check_alternatives(_alternatives(tree))
    except (_Endless, re.error, RecursionError, OverflowError) as error:
        raise ModelFileError(
            f"{name} is refused: its regular expression {pattern[:80]!r} may search for very long ({error})"
        ) from None
    return int(tree.getwidth()[0])


def _parse(pattern: str) -> Any:
    if len(pattern) > LONGEST_PATTERN:
        raise _Endless(f"it has {len(pattern):,} letters")
    for spelling, python in SPELLINGS:
        pattern = spelling.sub(python, pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parser.parse(pattern)


def _alternatives(tree: Any) -> list[list[_Part]]:
    items = list(tree)
    while len(items) == 1 and items[0][0] is parser.SUBPATTERN:
        items = list(items[0][1][3])
    if len(items) == 1 and items[0][0] is parser.BRANCH:
        return [_parts(each) for each in items[0][1][1]]
    return [_parts(items)]


def _check_alternatives(alternatives: list[list[_Part]]) -> None:
    """What may fail after a long run is searched anew from each letter of it, unless a run is a match."""
    consumed = {
        part.repeated
        for parts in alternatives
        for part in parts[len(_before_failure(parts)) :]
        if part.repeated
    }
    for parts in alternatives:
        before = _before_failure(parts)
        runs = [
            part.repeated
            for look, part in zip([_Part(), *before], before, strict=False)
            if part.repeated and part.repeated != look.not_behind  # else it begins at the run's start only
        ]
        if len(runs) > 1:
            raise _Endless("two repeats before something that may fail")
        if runs and runs[0] not in consumed:
            raise _Endless("a repeat before something that may fail")
        _check_choices(before)


def _before_failure(parts: list[_Part]) -> list[_Part]:
    """The parts whose other choices are tried when a later one fails."""
    last = max((place for place, part in enumerate(parts) if part.may_fail), default=0)
    return parts[:last]


def _check_choices(parts: list[_Part]) -> int:
    total = 1
    for part in parts:
        total *= part.choices
        if total > MOST_CHOICES:
            raise _Endless("too many ways to match")
    return total


def _parts(items: Any) -> list[_Part]:
    return [part for kind, value in items for part in _parts_of(kind, value)]


def _parts_of(kind: Any, value: Any) -> list[_Part]:
    if kind in PLAIN or kind is parser.AT:
        return [_Part(may_fail=True)]
    if kind is parser.SUBPATTERN:
        return _parts(value[3])
    if kind is parser.ATOMIC_GROUP:
        return _parts(value)
    if kind in LOOKS:
        if value[1].getwidth()[1] > WIDEST_LOOK:
            raise _Endless(f"it looks more than {WIDEST_LOOK} letters ahead or back")
        behind = repr(list(value[1])) if kind is parser.ASSERT_NOT and value[0] < 0 else None
        return [_Part(_check_choices(_parts(value[1])), may_fail=True, not_behind=behind)]
    if kind is parser.BRANCH:
        inner = [_parts(each) for each in value[1]]
        if any(part.repeated for parts in inner for part in parts):
            raise _Endless("a repeat in one of several alternatives inside")
        return [_Part(sum(map(_check_choices, inner)), may_fail=True)]
    if kind in REPEATS:
        return [_repeat(*value)]
    raise _Endless("it refers to what it matched")


def _repeat(fewest: int, most: int, body: Any) -> _Part:
    inner = _parts(body)
    if most > 1 and any(part.choices > 1 or part.repeated for part in inner):
        raise _Endless("it repeats what can be matched in several ways")
    if any(part.repeated for part in inner):
        raise _Endless("a repeat that is optional")
    may_fail = fewest > 0
    if most > UNBOUNDED:
        return _Part(1, may_fail, repeated=repr(list(body)))
    return _Part((most - fewest + 1) * _check_choices(inner), may_fail)
