"""Showing an answer: how it went in a line, and Ctrl-C before and after its first piece."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator

import pytest

from tests.cli.fakes import FakeGeneration, FakeReport
from webgrad.cli.answers import report_text, show
from webgrad.cli.terminal import Output


class Interrupted(FakeGeneration):
    """Ctrl-C is pressed while its second word is made, and again, if so asked, just after."""

    presses = 1

    def __iter__(self) -> Iterator[str]:
        for number, piece in enumerate(super().__iter__()):
            if number == 1:
                for _ in range(self.presses):
                    signal.raise_signal(signal.SIGINT)
            yield piece


def shown(generation: FakeGeneration) -> tuple[str, str, bool]:
    stream = io.StringIO()
    answer = show(generation, Output(stream))
    return stream.getvalue(), answer.text, answer.is_whole


def test_how_an_answer_went_in_a_line() -> None:
    report = FakeReport(prompt_tokens=30, cached_tokens=20, tokens=400, stopped_by="context")
    text = "prefill 30 tokens (20 known), 20/s · decode 400 tokens, 1600/s · cpu · cut: the context is full"
    assert report_text(report, "cpu") == text
    assert report_text(FakeReport(), "cpu") == "prefill 0 tokens · decode 0 tokens · cpu"


def test_a_whole_answer() -> None:
    assert shown(FakeGeneration(["one", "two"], 1, 0, 9)) == ("one two\n", "one two", True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are raised differently there")
def test_ctrl_c_waits_for_the_piece_under_way_and_a_second_one_does_not() -> None:
    before = signal.getsignal(signal.SIGINT)
    generation = Interrupted(["one", "two", "three"], 1, 0, 9)
    assert shown(generation) == ("one two\n", "one two", False)
    generation = Interrupted(["one", "two", "three"], 1, 0, 9)
    generation.presses = 2
    assert shown(generation) == ("one\n", "one", False)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(sys.platform == "win32", reason="signals are raised differently there")
def test_ctrl_c_while_the_prompt_is_read_ends_at_once() -> None:
    class Reading(FakeGeneration):
        def __iter__(self) -> Iterator[str]:
            signal.raise_signal(signal.SIGINT)
            yield "never"

    assert shown(Reading(["never"], 1, 0, 9)) == ("", "", False)
