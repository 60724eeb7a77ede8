"""The progress bar: what it shows, how often, and that it costs little."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

import webgrad as wg
from tests.limits import processor_time
from webgrad.training import progress as made
from webgrad.training.meter import bar, clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr("webgrad.training.meter.time.monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "100")
    return now


def test_lines_where_there_is_no_terminal(clocks: list[float]) -> None:
    file = io.StringIO()
    steps = made(range(50), label="epoch 1", file=file)
    for step in steps:
        clocks[0] += 1
        steps.set(loss=1.0 / (step + 1))
    lines = file.getvalue().splitlines()
    assert len(lines) == 10, "one every tenth"
    assert lines[0] == "epoch 1 5/50  loss 0.2  1 it/s  0:05 < 0:45"
    assert lines[-1] == "epoch 1 50/50  loss 0.02  1 it/s  0:50"
    assert "\r" not in file.getvalue()


def test_a_slow_loop_says_something_each_minute(clocks: list[float]) -> None:
    file = io.StringIO()
    for _ in made(range(100), file=file):
        clocks[0] += 20
    lines = [int(line.split("/")[0]) for line in file.getvalue().splitlines()]
    assert lines[:5] == [3, 6, 9, 10, 13]
    assert lines[-1] == 100


def test_a_length_that_is_not_known(clocks: list[float]) -> None:
    file = io.StringIO()
    for _ in made((each for each in range(30)), file=file):
        clocks[0] += 1
    assert file.getvalue().splitlines() == ["10  1 it/s  0:10", "20  1 it/s  0:20", "30  1 it/s  0:30"]


def test_a_bar_is_drawn_ten_times_a_second(clocks: list[float]) -> None:
    file = Terminal()
    with made(total=1000, label="train", file=file) as steps:
        for _ in range(1000):
            clocks[0] += 0.001
            steps.advance(samples=128)
    drawn = file.getvalue().split("\r")
    assert 9 <= len(drawn) - 1 <= 11
    assert re.match(r"train 1000/1000 █{24}  128,000 samples/s  0:01", drawn[-1])
    assert file.getvalue().endswith("\n")


@pytest.mark.parametrize("columns", ["20", "40", "60", "200"])
def test_it_fits_the_terminal(columns: str, clocks: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    file = Terminal()
    steps = made(range(9), label="a label of some length", file=file)
    for _ in steps:
        clocks[0] += 1
        steps.set(loss=0.123456789, accuracy=0.5)
    lines = [each.split("\x1b")[0] for each in file.getvalue().split("\r")[1:]]
    assert lines
    assert all(len(each) < int(columns) for each in lines)
    assert any("█" in each for each in lines) == (columns == "200")


class Counted:
    """Says how often it was made a text, which is when a value is read."""

    reads = 0

    def __str__(self) -> str:
        self.reads += 1
        return "value"


def test_values_are_read_only_when_drawn(clocks: list[float]) -> None:
    value = Counted()
    with made(total=100, file=Terminal()) as steps:
        for _ in range(100):
            steps.set(value=value)
            clocks[0] += 0.01
            steps.advance()
    assert value.reads <= 11


def test_tensors_are_shown(clocks: list[float]) -> None:
    file = io.StringIO()
    with made(total=1, file=file) as steps:
        steps.set(loss=wg.asarray(0.25, device="cpu"), name="x")
        clocks[0] += 1
        steps.advance()
    assert "loss 0.25  name x" in file.getvalue()


def test_lines_above_the_bar(clocks: list[float]) -> None:
    file = Terminal()
    with made(total=2, file=file) as steps:
        clocks[0] += 1
        steps.advance()
        steps.say("saved")
        clocks[0] += 1
        steps.advance()
    assert "\r\x1b[Ksaved\n\r2/2" in file.getvalue()


def test_it_goes_on_from_where_it_was(clocks: list[float]) -> None:
    file = io.StringIO()
    with made(total=10, start=8, file=file) as steps:
        for _ in range(2):
            clocks[0] += 2
            steps.advance()
    assert file.getvalue().splitlines() == ["9/10  0.5 it/s  0:02 < 0:02", "10/10  0.5 it/s  0:04"]


def test_nothing_is_shown_if_so_asked() -> None:
    file = Terminal()
    assert list(made(range(3), file=file, show=False)) == [0, 1, 2]
    assert file.getvalue() == ""


def test_an_error_in_the_loop_leaves_a_whole_line(clocks: list[float]) -> None:
    file = Terminal()

    def loop() -> None:
        for each in made(range(3), file=file):
            clocks[0] += 1
            if each == 1:
                raise KeyError

    with pytest.raises(KeyError):
        loop()
    assert file.getvalue().endswith("\n")


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class Ascii(io.StringIO):
    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        text.encode("ascii")
        return super().write(text)


def test_files_that_do_not_take_it(clocks: list[float]) -> None:
    for file in (Closed(), Ascii()):
        for _ in made(range(3), file=file):
            clocks[0] += 1


def test_the_loop_is_not_slowed_down() -> None:
    steps: Any = made(range(20_000), file=Terminal())
    with processor_time(20_000 * 20e-6):  # a twentieth of it where this was written
        for each in steps:
            steps.set(loss=each)


def test_parts() -> None:
    assert bar(0, 4) == "····"
    assert bar(0.5, 4) == "██··"
    assert bar(0.28, 4) == "█▏··"
    assert bar(2, 4) == "████"
    assert [clock(each) for each in (0, 59.6, 61, 3600)] == ["0:00", "1:00", "1:01", "1:00:00"]
