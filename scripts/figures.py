"""What the long runs share: a budget of time, a line of progress, and the table of figures at the end.

In: minutes, and rows of text. Out: how much time is left; lines on standard output. A run whose time is over
ends what it is doing, and says what it did not get to.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

__all__ = ["Budget", "Progress", "duration", "put_between", "table"]

QUIET = 20.0  # seconds between lines where nobody can see one line change


class Budget:
    """Time that counts from now on."""

    def __init__(self, minutes: float) -> None:
        self.until = time.monotonic() + minutes * 60

    @property
    def left(self) -> float:
        """Seconds, never fewer than none."""
        return max(0.0, self.until - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.left == 0

    def part(self, share: float) -> Budget:
        """So much of what is left, from now on."""
        return Budget(self.left * share / 60)


class Progress:
    """One line that changes on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._interval = 0.5 if self._terminal else QUIET
        self._next = time.monotonic() + self._interval

    def show(self, text: str) -> None:
        """Say how far it is."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._interval
        print(f"\r\x1b[K{text}" if self._terminal else text, end="" if self._terminal else "\n", flush=True)

    def clear(self) -> None:
        """What is printed next stands on a line of its own, and what is shown next has only begun."""
        self._next = time.monotonic() + self._interval
        if self._terminal:
            print("\r\x1b[K", end="", flush=True)


def duration(seconds: float) -> str:
    """As people say it: "42 s", "3 min 20 s", "1 h 05 min".

    >>> from scripts.figures import duration
    >>> duration(200)
    '3 min 20 s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under headings; those of numbers, alone or with a unit, are set to the right."""
    cells = [list(headings), *[list(row) for row in rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(headings))]
    right = [all(_is_number(row[at]) for row in cells[1:]) for at in range(len(headings))]
    lines = [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(max(lines, key=len)), *lines[1:]])


def _is_number(text: str) -> bool:
    return len(text) < 16 and (text[:1].isdigit() or text[:1] in ("+", "-", ""))


def put_between(name: str, page: str, marks: tuple[str, str], text: str) -> str:
    """A page, with a text in place of what is between two marks."""
    begin, end = marks
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{name} must hold the lines {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"
