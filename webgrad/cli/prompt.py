"""Reading what a user types: lines with editing and a history where there is readline, blocks of lines.

In: a terminal. Out: one turn's text, None when the user leaves (Ctrl-D, or Ctrl-C twice). The invariant: the
history is a file that only its owner can read, and nothing that goes wrong with it stops the talk.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TextIO

from .options import clean

__all__ = ["LineReader", "lines_of", "text_of"]

HISTORY = 1000  # lines that are kept
BLOCK = '"""'
LEAVING = "\n(Ctrl-C once more leaves, as Ctrl-D or /quit do)"
Ask = Callable[[str], str]  # shows a prompt, gives a line, raises EOFError at the end


class LineReader:
    """A prompt for one turn after the other."""

    def __init__(self, folder: Path | None, words: Sequence[str] = (), ask: Ask = input) -> None:
        self._ask = ask
        self._is_leaving = False
        self._readline = _readline()
        self._history = None if folder is None else folder / "chat-history"
        if self._readline is not None:
            self._prepare(self._readline, words)

    def turn(self, prompt: str, more: str) -> str | None:
        """What the user types next; None when they leave.

        Ctrl-C drops the line: who wanted to stop an answer, and was too late, keeps the conversation.
        """
        was_leaving, self._is_leaving = self._is_leaving, False
        try:
            line = clean(self._ask(self._shown(prompt)))
        except EOFError:
            return None
        except KeyboardInterrupt:
            if was_leaving:
                return None
            self._is_leaving = True
            print(LEAVING)
            return ""
        except UnicodeDecodeError:  # a terminal that is not set to the locale's encoding
            return ""
        self._keep()
        if line.strip().startswith(BLOCK):
            return self._block(line.strip().removeprefix(BLOCK), more)
        while line.endswith("\\"):
            following = self._following(more)
            if following is None:
                return ""
            line = line[:-1] + "\n" + following
        return line

    def _block(self, first: str, more: str) -> str:
        """Lines up to one that ends with three quotes; Ctrl-C drops them."""
        lines = [first]
        while not lines[-1].rstrip().endswith(BLOCK):
            following = self._following(more)
            if following is None:
                return ""
            lines.append(following)
        lines[-1] = lines[-1].rstrip().removesuffix(BLOCK)
        return "\n".join(lines).strip("\n")

    def _following(self, more: str) -> str | None:
        try:
            line = clean(self._ask(self._shown(more)))
        except (EOFError, KeyboardInterrupt):
            print()
            return None
        self._keep()
        return line

    def _shown(self, prompt: str) -> str:
        """The prompt, with its colours marked as taking no room, which readline counts on."""
        if self._readline is None or "\x1b" not in prompt:
            return prompt
        parts = prompt.split("\x1b[")
        return parts[0] + "".join("\1\x1b[" + each.replace("m", "m\2", 1) for each in parts[1:])

    # The history

    def _prepare(self, readline: ModuleType, words: Sequence[str]) -> None:
        readline.set_history_length(HISTORY)
        readline.set_completer_delims(" ")
        readline.set_completer(_completer(words))
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        if not is_libedit:
            readline.parse_and_bind("set enable-bracketed-paste on")
        readline.clear_history()
        if self._history is not None:
            with contextlib.suppress(OSError):
                _make_private(self._history)
                readline.read_history_file(self._history)

    def _keep(self) -> None:
        """Put the newest line into the file at once, so that a crash loses nothing."""
        if self._readline is None or self._history is None:
            return
        with contextlib.suppress(OSError):
            _make_private(self._history)
            self._readline.write_history_file(self._history)
            self._history.chmod(0o600)  # it may have been put in place as a new file


def _make_private(path: Path) -> None:
    """See to an empty file that only its owner can read, before anything is written to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    path.chmod(0o600)


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:  # Windows
        return None
    return readline


def _completer(words: Sequence[str]) -> Callable[[str, int], str | None]:
    def complete(text: str, number: int) -> str | None:
        fitting = [word for word in words if text.startswith("/") and word.startswith(text)]
        return fitting[number] if number < len(fitting) else None

    return complete


def lines_of(stream: TextIO) -> Iterator[str]:
    """The lines of a stream that are not blank; bytes that are no text become question marks."""
    _forgive(stream)
    for line in stream:
        if text := clean(line.strip()):
            yield text


def text_of(stream: TextIO) -> str:
    """All that a stream has, without the end of its last line."""
    _forgive(stream)
    return clean(stream.read()).removesuffix("\n")


def _forgive(stream: TextIO) -> None:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
