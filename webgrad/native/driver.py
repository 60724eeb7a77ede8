"""A plan in one call: a native function that walks an array of commands, each of them shared with helpers.

In: words of i64: the arguments of calls, then commands (the address of a kernel's work, of its fields, how
many units, what a unit costs), then fields. `begin` fills the words in, each an address of the run and what
is added to it, and makes the first call. Out: nothing; everything was computed, in order. The invariant: no
call takes much longer than LONGEST, so that Python sees Ctrl-C between two of them: long plans are cut
between commands, long commands between units.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from .compiler import Functions, callable_at, functions
from .helpers import Helpers
from .jobs import FIRST_FIELD, SLOT, share_text
from .text import Function, module

__all__ = [
    "BASES",
    "CALL_WORDS",
    "COMMAND_WORDS",
    "LONG",
    "LONGEST",
    "Span",
    "Work",
    "begin",
    "call",
    "driver_module",
    "run_alone",
    "spans",
]

LONGEST = 1 << 29  # multiplications of a call: about 50 ms
LONG = 1 << 20  # multiplications from which others may have the interpreter meanwhile
# Where `run` finds its arguments: commands from BEGIN up to END; of the last of them the units from FIRST on,
# up to LAST
COMMANDS, BEGIN, END, FIRST, LAST = range(FIRST_FIELD, FIRST_FIELD + 5)
_WORD = 8  # bytes
# Where `begin` finds its arguments: how many words there are, the number of the base of each and what is
# added to it, where the words go; which bases are objects, that have the address in question at a place; then
# the bases
COUNT, NUMBERS, OFFSETS, WORDS, OBJECTS, OBJECTS_END, PLACE, BASES = range(FIRST_FIELD, FIRST_FIELD + 8)
CALL_WORDS, COMMAND_WORDS = 6, 4  # of the arguments of a call; of a command: work, fields, units, cost


class Work(NamedTuple):
    """How much a command does: units, each of `cost` multiplications."""

    units: int
    cost: int


class Span(NamedTuple):
    """What one call computes: commands, and units of the last of them."""

    begin: int
    end: int
    first: int
    last: int
    cost: int


def driver_module() -> str:
    """`run`, which walks commands, and `begin`."""
    f = Function("run", [("ptr", "fields")], "i64")
    slot, commands = f.field("i64", SLOT), f.field("ptr", COMMANDS)
    begin, end, first, last = (f.field("i64", each) for each in (BEGIN, END, FIRST, LAST))
    final = f.add(end, -1)
    with f.loop(begin, end) as at:
        place = f.at(commands, f.multiply(at, COMMAND_WORDS), "i64")
        work, fields = (f.load("ptr", place, number, "i64", align=_WORD) for number in (0, 1))
        units, cost = (f.load("i64", place, number, "i64", align=_WORD) for number in (2, 3))
        is_final = f(f"icmp eq i64 {at}, {final}")
        start = f(f"select i1 {is_final}, i64 {first}, i64 0")
        stop = f(f"select i1 {is_final}, i64 {last}, i64 {units}")
        f.store("i64", slot, fields)
        f.do(f"call void @share(ptr {fields}, ptr {work}, i64 {stop}, i64 {cost}, i64 {start})")
    run = f.text("ret i64 0", private=False)
    return module(share_text(ranged=True), run, _begin_text())


def _begin_text() -> str:
    """`begin(frame)`: objects become the addresses they hold, word i base[number[i]] + offset[i]; then the
    first call is made.
    """
    f = Function("begin", [("ptr", "fields")], "i64")
    slot, count = f.field("i64", SLOT), f.field("i64", COUNT)
    numbers, offsets, words = (f.field("ptr", each) for each in (NUMBERS, OFFSETS, WORDS))
    objects, end, place = (f.field("i64", each) for each in (OBJECTS, OBJECTS_END, PLACE))
    with f.loop(objects, end) as at:
        slot_of = f.at("%fields", at, "i64")
        known = f.at(f.load("ptr", "%fields", at, "i64", align=_WORD), place, "i8")
        f.store("i64", f.load("i64", known, 0, "i64", align=_WORD), slot_of)
    with f.loop(0, count) as at:
        number = f(f"zext i32 {f.load('i32', numbers, at, 'i32', align=4)} to i64")
        base = f.load("i64", "%fields", f.add(number, BASES), "i64", align=_WORD)
        offset = f.load("i64", offsets, at, "i64", align=_WORD)
        f.store("i64", f.add(base, offset), words, at, "i64")
    f.store("i64", slot, words)
    result = f(f"call i64 @run(ptr {words})")
    return f.text(f"ret i64 {result}", private=False)


def spans(work: Sequence[Work], begin: int, end: int) -> Iterator[Span]:
    """Commands begin..end together while they are short; a long one by itself, in several spans of units."""
    total = 0
    for at in range(begin, end):
        units, each = work[at]
        cost = units * each
        if begin < at and total + cost > LONGEST:
            yield Span(begin, at, 0, work[at - 1].units, total)
            begin, total = at, 0
        total += cost
        step = max(1, LONGEST // max(each, 1))
        if total > LONGEST and step < units:  # it is alone, since those before went
            for first in range(0, units, step):
                last = min(first + step, units)
                yield Span(at, at + 1, first, last, (last - first) * each)
            begin, total = at + 1, 0
    if begin < end:
        yield Span(begin, end, 0, work[end - 1].units, total)


@cache
def _addresses() -> dict[str, int]:
    return functions(driver_module(), ["begin", "run"], "driver")


Call = Callable[[int], int]


def begin(*, long: bool) -> Call:
    """The function that fills words in and makes their first call; a long one lends the interpreter."""
    return _callable("begin")[long]


def call(*, long: bool) -> Call:
    """The function that makes one of the other calls."""
    return _callable("run")[long]


def run_alone(work: int, fields: int, units: int, cost: int) -> None:
    """A command by itself: `work(fields, first, last)` computes units, each of `cost` multiplications."""
    words = (ctypes.c_int64 * (CALL_WORDS + COMMAND_WORDS))()
    start = ctypes.addressof(words)
    with Helpers(units * cost) as slot:
        for span in spans([Work(units, cost)], 0, 1):
            words[:] = [slot, start + _WORD * CALL_WORDS, *span[:4], work, fields, units, cost]
            call(long=span.cost >= LONG)(start)


@cache
def _callable(name: str) -> Functions:
    return callable_at(_addresses()[name])
