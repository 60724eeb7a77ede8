"""A progress bar for loops: how far, how fast, how long still, and a few values.

In: an iterable. Out: its values, and a line on stderr. The invariant: the loop is not slowed down: a line is
drawn at most ten times a second, and values of tensors are read from the device only then.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TextIO, TypeVar, overload

import webgrad as wg

__all__ = ["Progress", "progress"]

Value = TypeVar("Value")
_SECONDS = 0.1  # between two drawings on a terminal
_PLAIN_PARTS = 10  # lines where there is no terminal
_PLAIN_SECONDS = 10.0  # between two of them where the length is not known
_PLAIN_MOST_SECONDS = 60.0  # and where it is
_BAR = 24  # characters at most
_FULL, _PARTS, _EMPTY = "█", " ▏▎▍▌▋▊▉", "·"


class Progress(Generic[Value]):
    """A loop's progress. Made by `progress`.

    >>> with wg.training.progress(total=3, show=False) as bar:
    ...     for step in range(3):
    ...         bar.set(loss=0.5**step)
    ...         bar.advance()
    """

    def __init__(
        self,
        iterable: Iterable[Value] | None,
        total: int | None,
        label: str,
        unit: str,
        start: int,
        file: TextIO | None,
        is_shown: bool,
    ) -> None:
        self._iterable = iterable
        self._total = total
        self._label = label
        self._unit = unit
        self._file = sys.stderr if file is None else file
        self._is_terminal = is_shown and _is_terminal(self._file)
        self._is_shown = is_shown
        self._values: dict[str, Any] = {}
        self._first = self._done = start
        self._samples = 0
        self._began = self._drawn = time.monotonic()
        self._plain_next = 0.0
        self._is_closed = False
        self._width = 0  # of the line that stands there

    # The loop

    def __iter__(self) -> Iterator[Value]:
        self._began = time.monotonic()
        try:
            for value in self._iterable or ():
                yield value
                self.advance()
        finally:
            self.close()

    def __enter__(self) -> Progress[Value]:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def advance(self, count: int = 1, samples: int = 0) -> None:
        """So many steps are done, with so many samples; then the line shows samples a second."""
        self._done += count
        self._samples += samples
        now = time.monotonic()
        if self._is_terminal:
            if now - self._drawn >= _SECONDS:
                self._draw(now)
        elif self._is_shown and self._is_due(now):
            self._say(now)

    def set(self, **values: Any) -> None:
        """Show these from now on: numbers, texts, or tensors, which are read only when the line is drawn."""
        self._values.update(values)

    def close(self) -> None:
        """Draw the last line, and leave it there."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._is_shown or self._done == self._first:
            return
        if self._is_terminal:
            self._draw(time.monotonic())
            self._write("\n")
        elif self._plain_done != self._done:
            self._say(time.monotonic())

    def say(self, text: str) -> None:
        """Write a line above the bar."""
        if self._is_terminal and self._width:
            self._write("\r\x1b[K")
            self._width = 0
        if self._is_shown:
            self._write(text + "\n")

    # The line

    _plain_done = -1

    def _is_due(self, now: float) -> bool:
        if self._total and self._done >= self._plain_next and self._done * _PLAIN_PARTS >= self._total:
            return True
        return now - self._drawn >= (_PLAIN_MOST_SECONDS if self._total else _PLAIN_SECONDS)

    def _say(self, now: float) -> None:
        if self._total:
            self._plain_next = (self._done * _PLAIN_PARTS // self._total + 1) * self._total / _PLAIN_PARTS
        self._drawn, self._plain_done = now, self._done
        self._write(self._text(now, 0) + "\n")

    def _draw(self, now: float) -> None:
        self._drawn = now
        columns = max(10, shutil.get_terminal_size().columns - 1)
        line = self._text(now, columns)
        self._width = len(line)
        self._write("\r" + line + "\x1b[K")
        self._drawn = time.monotonic()  # reading values may have taken a while

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except UnicodeEncodeError:  # a terminal without these characters
            self._file.write(text.encode("ascii", "replace").decode("ascii"))
        except (OSError, ValueError):  # closed, or nobody reads any more: not a reason to stop the loop
            self._is_shown = self._is_terminal = False

    def _text(self, now: float, columns: int) -> str:
        """The line, in at most so many columns; 0 means without a bar, and as long as it gets."""
        parts = [f"{name} {shown(value)}" for name, value in self._values.items()]
        parts += [self._speed(now), self._times(now)]
        ends = "  ".join(each for each in parts if each)
        count = f"{self._done}/{self._total}" if self._total else f"{self._done}"
        start = f"{self._label} {count}" if self._label else count
        if not columns:
            return f"{start}  {ends}"
        room = min(_BAR, columns - len(start) - len(ends) - 4)
        if self._total and room >= 4:
            return f"{start} {bar(self._done / self._total, room)}  {ends}"
        return f"{start}  {ends}"[:columns]

    def _speed(self, now: float) -> str:
        seconds = now - self._began
        if seconds <= 0 or self._done == self._first:
            return ""
        if self._samples:
            return f"{_rounded(self._samples / seconds)} samples/s"
        return f"{_rounded((self._done - self._first) / seconds)} {self._unit}/s"

    def _times(self, now: float) -> str:
        seconds = now - self._began
        done = self._done - self._first
        if not self._total or not done or self._done >= self._total:
            return clock(seconds)
        return f"{clock(seconds)} < {clock(seconds / done * (self._total - self._done))}"


@overload
def progress(
    iterable: None = None,
    total: int | None = None,
    label: str = "",
    unit: str = "it",
    start: int = 0,
    file: TextIO | None = None,
    show: bool = True,
) -> Progress[Any]: ...
@overload
def progress(
    iterable: Iterable[Value],
    total: int | None = None,
    label: str = "",
    unit: str = "it",
    start: int = 0,
    file: TextIO | None = None,
    show: bool = True,
) -> Progress[Value]: ...
def progress(
    iterable: Any = None,
    total: int | None = None,
    label: str = "",
    unit: str = "it",
    start: int = 0,
    file: TextIO | None = None,
    show: bool = True,
) -> Progress[Any]:
    """The values of an iterable, with a bar on stderr; where that is no terminal, a line every tenth of it.

    `total` is its length unless it has one. `set` shows values beside the bar; without an iterable, call
    `advance` for each step. `start` is how many steps were done before.

        bar = wg.training.progress(loader, label="epoch 1")
        for images, labels in bar:
            bar.set(loss=step(images, labels))

    >>> [each**2 for each in wg.training.progress(range(3), label="squares", show=False)]
    [0, 1, 4]
    """
    if total is None and hasattr(iterable, "__len__"):
        total = len(iterable)
    return Progress(iterable, total, label, unit, start, file, show)


def bar(part: float, width: int) -> str:
    """A bar of so many characters, so much of it full."""
    eighths = round(max(0.0, min(1.0, part)) * width * 8)
    full, rest = divmod(eighths, 8)
    text = _FULL * full + (_PARTS[rest] if rest else "")
    return text + _EMPTY * (width - len(text))


def clock(seconds: float) -> str:
    """A time as m:ss, or h:mm:ss."""
    whole = round(seconds)
    minutes, hours = whole // 60, whole // 3600
    return f"{hours}:{minutes % 60:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def shown(value: Any) -> str:
    """A value as the line shows it; this reads a tensor."""
    if isinstance(value, wg.Tensor):
        value = value.item()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _is_terminal(file: TextIO) -> bool:
    try:
        return file.isatty()
    except (AttributeError, ValueError):
        return False
