"""Writing to a terminal, or to whatever else standard output is.

In: text in pieces, as a model gives it. Out: the same text, in characters that the stream's encoding has; on
a terminal words are not cut at its edge, and nothing that is printed can move the cursor or change colours:
control characters of a model's or a file's text are left out.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import TextIO

from ..config import wants_colours
from .text import encodable, wrap

__all__ = ["Output", "Wrapping", "clean_line", "columns", "is_terminal", "terminal_width", "unechoed_keys"]

ERASE = "\r\x1b[K"  # the line
BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
# C0 and C1 controls but tab and line end; a terminal would obey them
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)))
del _CONTROLS[ord("\n")], _CONTROLS[ord("\t")]
_TAB = 8


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody sits in front of it; a closed stream is no terminal."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def clean_line(text: str) -> str:
    """A file's text in one line, without what a terminal would obey."""
    return " ".join(text.translate(_CONTROLS).split())


def columns(text: str) -> int:
    """How many columns a text takes: two for a wide character, none for one that joins the one before."""
    return sum(_columns_of(each) for each in text)


def _columns_of(character: str) -> int:
    if character < "\x7f":
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if _is_wide(character) else 1


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in ("W", "F")


class Output:
    """A stream for people: colours and wrapped words where it is a terminal, plain text where it is not."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_terminal = is_terminal(stream)
        self._is_waiting = False
        self._has_colours = self.is_terminal and wants_colours()
        self._wrapping: Wrapping | None = Wrapping(self._put, terminal_width) if self.is_terminal else None

    def dim(self, text: str) -> str:
        """The text in a fainter colour."""
        return f"{DIM}{text}{RESET}" if self._has_colours else text

    def bold(self, text: str) -> str:
        """The text in bold."""
        return f"{BOLD}{text}{RESET}" if self._has_colours else text

    def line(self, text: str = "", style: Callable[[str], str] = str) -> None:
        """Write a line of our own; on a terminal in as many as its words take."""
        lines = wrap(self._plain(text), terminal_width()) if self.is_terminal else [text]
        self._put("".join(style(each) + "\n" for each in lines or [""]))

    def wait(self) -> None:
        """Show that a text will come, until its first piece or its end."""
        if self._has_colours:
            self._put(self.dim("…"))
            self._is_waiting = True

    def piece(self, text: str) -> None:
        """Write a piece of a text that goes on."""
        self.wait_no_more()
        if self._wrapping is None:
            self._put(text)
        else:
            self._wrapping.push(self._plain(text))

    def wait_no_more(self) -> None:
        """Take the sign of waiting away."""
        if self._is_waiting:
            self._is_waiting = False
            self._put(ERASE)

    def end(self) -> None:
        """Such a text ends here, and its line with it."""
        if self._wrapping is None:
            self._put("\n")
        else:
            self._wrapping.finish()
            self._put("\n")
            self._wrapping = Wrapping(self._put, terminal_width)

    def _plain(self, text: str) -> str:
        return text.translate(_CONTROLS) if self.is_terminal else text

    def _put(self, text: str) -> None:
        self.stream.write(encodable(text, self.stream.encoding or "ascii"))
        self.stream.flush()


@contextlib.contextmanager
def unechoed_keys() -> Iterator[None]:
    """Keep keys that are pressed meanwhile out of the text; they are read afterwards."""
    if sys.platform == "win32" or not is_terminal(sys.stdin):
        yield
        return
    import termios

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    try:
        # A program in the background may not change the terminal, and would be stopped if it tried.
        if os.tcgetpgrp(keyboard) == os.getpgrp():
            termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
        yield
    finally:
        if os.tcgetpgrp(keyboard) == os.getpgrp():
            termios.tcsetattr(keyboard, termios.TCSANOW, before)


def terminal_width() -> int:
    """The terminal's columns at this moment."""
    return max(1, shutil.get_terminal_size((80, 24)).columns)


class Wrapping:
    """Moves a word that would not fit to the next line; code, indented or between ```, stays as it is.

    A word is written when the next one begins, because a piece may be a part of it.
    """

    _PARTS = re.compile(r"\n|[^\S\n]+|[^\s]")

    def __init__(self, put: Callable[[str], None], width: Callable[[], int]) -> None:
        self._put = put
        self._width = width
        self._column = 0
        self._spaces = self._word = ""
        self._is_code = self._is_fenced = False

    def push(self, text: str) -> None:
        """The next piece."""
        for part in self._PARTS.findall(text):
            if part == "\n":
                self._place()
                self._put("\n")
                self._column, self._spaces, self._is_code = 0, "", self._is_fenced
            elif part.isspace():
                self._place()
                self._spaces += part
                indent = 0 if self._column else columns(self._spaces.expandtabs(_TAB))
                self._is_code = self._is_code or indent > 1
            else:
                if _is_wide(part):  # text without spaces may be broken anywhere
                    self._place()
                self._word += part

    def finish(self) -> None:
        """There is no more: write the last word."""
        self._place()

    def _place(self) -> None:
        """Write the word that is complete, on this line or the next."""
        if not self._word:
            return
        width = self._width()
        if not self._column and self._word.startswith("```"):
            self._is_fenced = not self._is_fenced
            self._is_code = True
        wanted = columns(self._spaces.expandtabs(_TAB) + self._word)
        if self._column and not self._is_code and self._column + wanted > width:
            self._put("\n" + self._word)
            self._column = columns(self._word)
        else:
            self._put(self._spaces + self._word)
            self._column += wanted
        self._column = self._column if self._column <= width else self._column % width
        self._spaces = self._word = ""
