"""`webgrad chat` at a terminal, typed into: streaming, Ctrl-C, history, leaving."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

import fcntl
import pty
import select
import struct
import termios

from tests.limits import HANG

ROOT = Path(__file__).parents[2]
PROMPT = ">>> "
# The program takes the terminal itself: Python between fork and exec may wait forever for another thread.
START = """
import fcntl, runpy, termios
from tests.limits import HANG
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("tests.cli.fakes", run_name="__main__")
"""


class Terminal:
    """A terminal with the chat in it, and a model that echoes behind it."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = os.environ | {"WEBGRAD_CACHE": str(folder), "TERM": "xterm", "NO_COLOR": "1"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "chat", *arguments],
            cwd=ROOT,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def until(self, words: str) -> str:
        """What was shown up to these words; later calls begin behind them."""
        limit = time.monotonic() + HANG
        while words not in self.text:
            ready, _, _ = select.select([self.master], [], [], max(0.0, limit - time.monotonic()))
            data = self._read() if ready else b""
            if not data:
                raise AssertionError(f"{words!r} was not shown; there is {self.text!r}")
            # what readline sends besides text: bracketed paste, and how it moves the cursor
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", data.decode(errors="replace"))
        before, _, self.text = self.text.partition(words)
        return before

    def waits(self) -> None:
        """Return once the program waits for keys: readline sees no signal between the echo and that."""
        state = Path("/proc", str(self.process.pid), "stat")
        if not state.exists():  # not Linux
            time.sleep(1)
            return
        while state.read_text().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.01)

    def _read(self) -> bytes:
        try:
            return os.read(self.master, 4096)
        except OSError:  # the other side is closed
            return b""

    def ends(self) -> int:
        """The exit code, once all that is shown was read."""
        while self._read():
            pass
        return self.process.wait(HANG)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    terminal.until(PROMPT)
    yield terminal
    terminal.close()


def test_a_conversation(chat: Terminal) -> None:
    chat.type("hello\n")
    assert "you said hello\n" in chat.until("· cpu\n")
    chat.until(PROMPT)
    chat.type("/hepl\n")
    chat.until("did you mean /help?")
    chat.until(PROMPT)
    chat.type("fail\n")
    chat.until("this cannot be answered")
    chat.until(PROMPT)
    chat.type("\x04")
    assert chat.ends() == 0


def test_ctrl_c_stops_the_answer_and_not_the_program(chat: Terminal) -> None:
    chat.type("count\n")
    chat.until("3 4")  # it streams
    chat.type("\x03")
    chat.until("stopped ·")
    chat.until(PROMPT)
    chat.type("hello\n")
    chat.until("you said hello")
    chat.until(PROMPT)
    chat.type("dropped")
    chat.until("dropped")
    chat.waits()
    chat.type("\x03")
    chat.until("once more")
    chat.until(PROMPT)
    chat.waits()
    chat.type("\x03")
    assert chat.ends() == 0


def test_the_history_comes_back(chat: Terminal, tmp_path: Path) -> None:
    chat.type("first words\n")
    chat.until("· cpu\n")
    chat.until(PROMPT)
    chat.type("/quit\n")
    assert chat.ends() == 0
    again = Terminal(tmp_path)
    try:
        again.until(PROMPT)
        again.type("\x1b[A\x1b[A\n")  # up, up
        again.until("you said first words")
    finally:
        again.close()


def test_a_first_question_then_a_prompt(tmp_path: Path) -> None:
    chat = Terminal(tmp_path, "--first", "hello", columns=20)
    try:
        assert ">>> hello\nyou said hello\n" in chat.until("cpu\n>>> ")
        chat.type('"""two\nlines"""\n')
        assert "you said two\nlines\n" in chat.until("cpu\n")
    finally:
        chat.close()


def test_one_prompt_that_is_interrupted_ends_with_130(tmp_path: Path) -> None:
    chat = Terminal(tmp_path, "--prompt", "count")
    try:
        chat.until("3 4")
        os.kill(chat.process.pid, signal.SIGINT)
        assert chat.ends() == 130
    finally:
        chat.close()
