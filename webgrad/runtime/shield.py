"""Signals put off for a moment: while the queue's records change, and while the driver may call back.

Python runs the handler of a signal between any two steps of the main thread, and most handlers raise:
Ctrl-C, the SIGALRM of a time-out, a SIGTERM that ends the loop. In the middle of a change that would leave
half of it; inside a driver's callback the exception would be swallowed. `with shield:` notes signals, and
calls their handlers at its end. In other threads, where no handler ever runs, it does nothing.

The invariant: a handler is called once for every signal that was noted, whatever comes while the shield is
being put up or taken down. Python looks for signals after calls and at backward jumps only, so a few lines
without either are one step.
"""

from __future__ import annotations

import sys
import threading

# The C functions under the module signal, whose own take 4 µs each, mostly to make enum members.
from _signal import SIGINT, getsignal  # type: ignore[import-not-found]
from _signal import signal as set_handler
from _thread import get_ident
from collections import deque
from collections.abc import Callable
from operator import itemgetter
from signal import valid_signals
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

_SIGNALS = (SIGINT,) if sys.platform == "emscripten" else tuple(sorted(map(int, valid_signals())))
_first = itemgetter(0)
_exhaust = deque[object](maxlen=0).extend  # takes all of an iterator without a step of Python between


def _trip() -> Callable[[int], object]:
    """What makes Python believe that a signal has come; imported when needed, for browsers have none."""
    from ctypes import pythonapi

    return pythonapi.PyErr_SetInterruptEx


class _PutOff:
    """A handler in the place of another: puts it off while the shield is up, and else is the same."""

    __slots__ = ("handler", "shield")

    def __init__(self, shield: Shield, handler: Handler) -> None:
        self.shield = shield
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.shield.depth:
            self.shield.noted.append((number, self.handler, frame))
        else:
            self.handler(number, frame)


class Shield:
    """A context manager, to be nested at will."""

    __slots__ = ("_found", "_main", "_places", "depth", "noted")

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self.depth = 0
        self.noted: list[tuple[int, Handler, FrameType | None]] = []
        self._found: list[Handler | int | None] = []  # what each signal had when it was last looked at
        self._places: list[tuple[int, _PutOff, Handler]] = []  # of those that run Python: ours, and theirs

    def __enter__(self) -> None:
        if get_ident() == self._main:
            if not self.depth:
                found = list(map(getsignal, _SIGNALS))
                if found != self._found:
                    self._look_at(found)
                try:
                    for number, ours, _ in self._places:
                        set_handler(number, ours)
                except BaseException:  # of a handler that was called just now
                    self._take_down()
                    raise
            self.depth += 1

    def __exit__(self, *_: object) -> None:
        if get_ident() != self._main:
            return
        if self.depth > 1:
            self.depth -= 1
            return
        noted = self.noted
        if noted:
            number, handler, frame = noted[0]
            trip = map(_trip(), map(_first, noted))
        self.depth = 0  # one step with the question before, and up to the loop: no signal comes between
        if noted:
            self.noted = []
            # Of several, Python itself calls one handler after the other, each as soon as it can raise.
            call, arguments = (_exhaust, (trip,)) if noted[1:] else (handler, (number, frame))
        try:
            for place, ours, theirs in self._places:
                if getsignal(place) is ours:
                    set_handler(place, theirs)
        except BaseException:
            self._take_down()
            raise
        finally:
            if noted:
                call(*arguments)

    def _take_down(self) -> None:
        for number, ours, theirs in self._places:
            if getsignal(number) is ours:
                set_handler(number, theirs)

    def _look_at(self, found: list[Handler | int | None]) -> None:
        """Note which signals run Python, and what: whoever installed a handler since the last time."""
        handlers = {
            number: each.handler if isinstance(each, _PutOff) and each.shield is self else each
            for number, each in zip(_SIGNALS, found, strict=True)
            if callable(each)
        }
        self._places = [(number, _PutOff(self, each), each) for number, each in handlers.items()]
        self._found = found


shield = Shield()
