"""Budgets, durations and tables of the long runs."""

from __future__ import annotations

import pytest

from scripts.figures import Budget, duration, table


def test_a_budget_is_over_at_its_end_and_parts_of_it_are_shares() -> None:
    assert Budget(0).over
    whole = Budget(10)
    assert 599 < whole.left <= 600
    assert 149 < whole.part(0.25).left <= 150
    assert not whole.over


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (3905, "1 h 05 min")]
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_numbers_stand_right_and_words_left() -> None:
    lines = table(("what", "count"), [("files", "1,000"), ("a kernel", "7")]).splitlines()
    assert lines == ["what      count", "---------------", "files     1,000", "a kernel      7"]
