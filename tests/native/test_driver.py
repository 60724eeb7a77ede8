"""A plan in one call: every unit of every command once, in order, cut where it is long."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from webgrad.native import driver, helpers
from webgrad.native.compiler import functions
from webgrad.native.driver import BASES, CALL_WORDS, COMMAND_WORDS, Span, Work
from webgrad.native.jobs import FIRST_FIELD
from webgrad.native.text import Function, module

Array = np.ndarray[Any, Any]
Command = tuple[int, int, int, int]  # work, fields, units, cost


class Plan:
    """Commands, and the calls that run them: words that are known, or lie behind the words' own start."""

    def __init__(self, commands: Sequence[Command]) -> None:
        spans = spans_of([(units, cost) for _, _, units, cost in commands])
        self.words = np.full(CALL_WORDS * len(spans) + COMMAND_WORDS * len(commands), -1, np.int64)
        numbers = np.zeros(self.words.size, np.int32)
        offsets = np.zeros(self.words.size, np.int64)
        for at, span in enumerate(spans):
            numbers[CALL_WORDS * at + 1] = 1
            offsets[CALL_WORDS * at :][:CALL_WORDS] = (0, 8 * CALL_WORDS * len(spans), *span[:4])
        offsets[CALL_WORDS * len(spans) :] = np.array(commands, np.int64).reshape(-1)
        start = self.words.ctypes.data
        none = (0, 0, 0)  # no base is an object that has the address
        head = (0, self.words.size, numbers.ctypes.data, offsets.ctypes.data, start, *none)
        self.frame = np.array([*head, 0, start], np.int64)
        assert len(head) == BASES
        self.kept = numbers, offsets
        self.calls = [
            (driver.call if at else driver.begin)(long=span.cost >= driver.LONG)
            for at, span in enumerate(spans)
        ]
        self.cost = sum(span.cost for span in spans)

    def run(self) -> None:
        with helpers.Helpers(self.cost) as slot:
            self.frame[0] = slot
            for at, call in enumerate(self.calls):
                if at:
                    self.words[CALL_WORDS * at] = slot
                call(self.words.ctypes.data + 8 * CALL_WORDS * at if at else self.frame.ctypes.data)


def times_and_plus() -> int:
    """The address of work on units of an array of i64: each becomes 3 times itself, and a number."""
    f = Function("work", [("ptr", "fields"), ("i64", "first"), ("i64", "last")])
    x, number = f.field("ptr", FIRST_FIELD), f.field("i64", FIRST_FIELD + 1)
    with f.loop("%first", "%last") as at:
        before = f.load("i64", x, at, "i64", align=8)
        f.store("i64", f.add(f.multiply(before, 3), number), x, at, "i64")
    return functions(module(f.text(private=False)), ["work"])["work"]


class Made:
    """Commands over one array, and what they make of it."""

    def __init__(self, sizes: list[int], costs: list[int]) -> None:
        self.x = np.arange(max(sizes), dtype=np.int64)
        self.want = self.x.copy()
        self.fields = [np.array([7, self.x.ctypes.data, at], np.int64) for at in range(len(sizes))]
        work = times_and_plus()
        self.commands = [
            (work, fields.ctypes.data, size, cost)
            for fields, size, cost in zip(self.fields, sizes, costs, strict=True)
        ]
        for at, size in enumerate(sizes):
            self.want[:size] = 3 * self.want[:size] + at

    def check(self) -> None:
        np.testing.assert_array_equal(self.x, self.want)


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("cost", [0, 1, 1 << 10, 1 << 20])
def test_commands(cores: int, cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_slots", [])
    monkeypatch.setattr(helpers, "cores", lambda: cores)
    made = Made([1, 1000, 17, 0, 1000, 3], [cost] * 6)
    Plan(made.commands).run()
    made.check()


def test_nothing_to_do() -> None:
    Plan([]).run()


def cut(*costs: tuple[int, int]) -> list[tuple[int, ...]]:
    return [span[:-1] for span in spans_of(costs)]


def spans_of(costs: Sequence[tuple[int, int]]) -> list[Span]:
    return list(driver.spans([Work(*each) for each in costs], 0, len(costs)))


def test_long_plans_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LONGEST", 100)
    assert cut((1, 40), (2, 30)) == [(0, 2, 0, 2)]
    assert cut((1, 40), (2, 40), (5, 1)) == [(0, 1, 0, 1), (1, 3, 0, 5)]
    assert cut((1, 1000), (1, 1000)) == [(0, 1, 0, 1), (1, 2, 0, 1)]
    assert cut((1, 1), (5, 40), (3, 1)) == [
        (0, 1, 0, 1),
        (1, 2, 0, 2),
        (1, 2, 2, 4),
        (1, 2, 4, 5),
        (2, 3, 0, 3),
    ]
    assert cut((0, 5)) == [(0, 1, 0, 0)]
    assert cut((3, 0)) == [(0, 1, 0, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_cut_is_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LONGEST", 100)
    random = np.random.default_rng(seed)
    sizes, costs = ([int(each) for each in random.choice([0, 1, 2, 7, 90, 101, 250], 12)] for _ in range(2))
    spans = spans_of(list(zip(sizes, costs, strict=True)))
    done = [0] * len(sizes)
    for span in spans:
        assert span.begin < span.end
        for at in range(span.begin, span.end):
            first, last = (span.first, span.last) if at == span.end - 1 else (0, sizes[at])
            assert first == done[at]
            done[at] = last
        assert span.cost <= 100 or (span.last - span.first <= 1 and span.end - span.begin == 1)
    assert done == sizes
    assert all(a.end - 1 <= b.begin for a, b in pairwise(spans))
    made = Made([max(each, 1) for each in sizes], costs)
    Plan(made.commands).run()
    made.check()


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal here")
def test_a_long_plan_can_be_interrupted() -> None:
    made = Made([1 << 10] * 10, [1 << 18] * 10)
    plan = Plan(made.commands)
    assert len(plan.calls) == 5

    def handler(number: int, frame: object) -> None:
        raise InterruptedError

    def interrupted(address: int) -> int:
        os.kill(os.getpid(), signal.SIGUSR1)
        return 0

    before = signal.signal(signal.SIGUSR1, handler)
    plan.calls[3] = interrupted
    try:
        with pytest.raises(InterruptedError):
            plan.run()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert int(made.x[0]) == 0 * 3**6 + sum(at * 3 ** (5 - at) for at in range(6))  # of ten, six
    assert not helpers._slots[0].lock.locked()
