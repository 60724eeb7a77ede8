"""Ctrl-C put off for a moment: while the queue's records change, and while the driver may call back.

An interrupt in the middle would leave half a change; inside a driver's callback it would be swallowed, and
whoever waits for that callback would wait for ever. `with shield:` notes it, and raises it at the end. Only
the main thread is ever interrupted, so in other threads it does nothing.
"""

from __future__ import annotations

import threading

# The C functions under the module signal, whose own take 4 µs each, mostly to make enum members.
from _signal import SIGINT, getsignal  # type: ignore[import-not-found]
from _signal import signal as set_handler
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["Shield", "shield"]

Handler = Callable[[int, FrameType | None], Any]


class Shield:
    """A context manager, to be nested at will."""

    __slots__ = ("_depth", "_main", "_noted", "_previous")

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._depth = 0
        self._noted = False
        self._previous: Handler | None = None

    def __enter__(self) -> None:
        if threading.get_ident() == self._main:
            if not self._depth:
                previous = getsignal(SIGINT)
                if callable(previous):  # else it is ignored, or ends the process
                    self._previous = previous
                    set_handler(SIGINT, self._note)
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        if threading.get_ident() == self._main:
            self._depth -= 1
            if not self._depth and self._previous is not None:
                previous, self._previous = self._previous, None
                set_handler(SIGINT, previous)
                if self._noted:
                    self._noted = False
                    previous(SIGINT, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True


shield = Shield()
