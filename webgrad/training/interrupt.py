"""Ctrl-C that lets a step finish: the first is noted, and the loop asks for it; the second interrupts.

In: a block of code. Out: a function that says whether the user wants to stop. The invariant: the handler that
was there before is there again afterwards, and other threads than the main one, where Python hears no
signals, are left as they are.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["finish_step"]

_NOTED = "\nCtrl-C: the step is finished first; once more to stop at once"


@contextmanager
def finish_step() -> Iterator[Callable[[], bool]]:
    """A block in which the first Ctrl-C only makes the function that this gives return True.

    >>> with wg.training.finish_step() as is_interrupted:
    ...     for step in range(3):
    ...         if is_interrupted():
    ...             break
    """
    noted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield noted.is_set  # somebody else hears Ctrl-C, or nobody does
        return

    def note(number: int, frame: FrameType | None) -> None:
        if noted.is_set():
            signal.default_int_handler(number, frame)  # raises KeyboardInterrupt
        noted.set()
        # What was interrupted may be writing to stderr itself (RuntimeError), or nobody may read it any more.
        with suppress(RuntimeError, OSError, ValueError):
            print(_NOTED, file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted.is_set
    finally:
        signal.signal(signal.SIGINT, before)
