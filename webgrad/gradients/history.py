"""How a value was computed: what gradients need, kept apart from the graph itself.

A node that is computed drops its inputs; its history keeps them as long as a gradient may be needed. The
tuple of inputs is the node's own, so a history adds no reference to them: a value that stays inside a kernel
without gradients also does so with them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from .hooks import Hooks

# Instead of a signature: of the result of a captured function, whose graph is gone; of a call and of a slot
CAPTURED, CALL, SLOT = "captured", "call", "slot"


class History:
    """A node's signature and inputs before it was computed; without a signature they were freed."""

    __slots__ = ("hooks", "inputs", "sig", "slot")

    def __init__(self, sig: Any, inputs: tuple[Any, ...]) -> None:
        self.sig = sig
        self.inputs = inputs
        self.hooks: Hooks | None = None
        self.slot: Any = None  # a GradientSlot where a user wants to see the gradient


class Composed(History):
    """The history of a composite: the recording it was made by."""

    __slots__ = ("recording",)

    def __init__(self, sig: Any, inputs: tuple[Any, ...], recording: Any) -> None:
        History.__init__(self, sig, inputs)
        self.recording = recording


class Call:
    """A call of a function with a custom gradient; its results have it as their only input."""

    __slots__ = ("hooks", "inputs", "pull", "results")
    sig, slot = CALL, None

    def __init__(self, inputs: tuple[Any, ...], results: int, pull: Callable[[list[Any]], Any]) -> None:
        self.inputs = inputs
        self.results = results
        self.pull = pull  # from the results' gradients to the inputs'
        self.hooks = None

    @property
    def history(self) -> Call:
        """Itself: walks treat it as a node. Not a field: that would be a reference cycle."""
        return self


class GradMode(threading.local):
    """Whether histories are kept in this thread, and what else is noted of them."""

    on = True
    made: set[int] | None = None  # identities of nodes that got a history, while a checkpoint collects them
    draws: list[Any] | None = None  # words of random draws, while a function notes or repeats them
    repeat = False

    def __init__(self) -> None:
        self.opened: list[object] = []  # one for each mode that has not ended


grad_mode = GradMode()


def grad_mode_until_closed(on: bool) -> Generator[None, None, None]:
    """Keep histories, or none, until the generator is closed or dropped."""
    before, opened, own = grad_mode.on, grad_mode.opened, object()
    depth = len(opened)
    try:
        opened.append(own)
        grad_mode.on = on
        yield
    finally:
        # A signal may strike before the end of a mode, and its traceback keeps the generator. If that is
        # closed after an outer mode has ended, it changes nothing. No call here: no signal comes between.
        if own in opened and opened is grad_mode.opened:
            del opened[depth:]
            grad_mode.on = before


grad_mode_set = contextmanager(grad_mode_until_closed)
