"""References whose end is noted by C."""

from __future__ import annotations

import gc
from collections import deque
from typing import Any

from webgrad.runtime.references import tagged


class Thing:
    """Something to refer to."""

    itself: Any = None


def test_an_end_is_noted_with_its_tag() -> None:
    ended: deque[Any] = deque()
    thing, other = Thing(), Thing()
    kept = [tagged(thing, 1, ended.append), tagged(other, 2, ended.append)]
    assert [each() for each in kept] == [thing, other]
    del thing
    assert [each.tag for each in ended] == [1]
    assert ended[0]() is None


def test_an_end_in_a_circle_is_noted() -> None:
    ended: deque[Any] = deque()
    thing = Thing()
    thing.itself = thing
    kept = tagged(thing, "round", ended.append)
    del thing
    gc.collect()
    assert list(ended) == [kept]


def test_a_reference_that_nobody_holds_tells_nothing() -> None:
    ended: deque[Any] = deque()
    thing = Thing()
    tagged(thing, "lost", ended.append)
    del thing
    assert not ended
