"""Ctrl-C while the `webgrad` command is still being imported: it ends as it does later, without a traceback.

Imported before all else, since it is the other imports that take time. In a program that only uses webgrad
nothing changes.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # what a shell makes of SIGINT


def is_command(words: list[str]) -> bool:
    """Whether a process, by the words it was started with, is `webgrad …` or `python -m webgrad.cli …`."""
    rest = iter(words[1:])
    for word in rest:
        if word in ("-X", "-W"):  # whose value is the next word
            next(rest, None)
        elif word == "-m":
            return next(rest, "") == "webgrad.cli"
        elif not word.startswith("-"):
            return word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe") == "webgrad"
    return False


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)  # nothing has been begun that would have to be undone


def heed_interrupts() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command(sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
