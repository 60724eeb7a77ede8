"""Budgets, durations and tables of the long runs."""

from __future__ import annotations

import pytest

from scripts.figures import Budget, Progress, duration, table


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock says, in a list that tests change."""
    seconds = [0.0]
    monkeypatch.setattr("scripts.figures.time.monotonic", lambda: seconds[0])
    return seconds


def test_a_budget_is_over_at_its_end_and_parts_of_it_are_shares(now: list[float]) -> None:
    assert Budget(0).over
    whole = Budget(10)
    now[0] = 60.0
    assert (whole.left, whole.part(0.5).left) == (540, 270)
    assert not whole.over
    now[0] = 700.0
    assert whole.over


def test_progress_is_told_now_and_then_and_never_of_what_has_only_begun(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress()
    progress.show("0 of 60")
    now[0] += 25
    progress.show("20 of 60")
    progress.show("21 of 60")
    progress.clear()
    progress.show("0 of 7")
    assert capsys.readouterr().out == "20 of 60\n"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (3905, "1 h 05 min")]
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_numbers_stand_right_and_words_left() -> None:
    lines = table(("what", "count"), [("files", "1,000"), ("a kernel", "7")]).splitlines()
    assert lines == ["what      count", "---------------", "files     1,000", "a kernel      7"]
