"""Tracing: while a function is captured, its thread's graph is watched.

In: tensors that get another node, and numbers that are drawn anew for each run. Out: a `Trace`. The
invariant: nothing is computed while a trace is open in its thread, and a run-time number is never folded
into others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

from ..errors import CaptureError
from .node import Node, backlog

Draw = Callable[[], Sequence[int | float]]


class RuntimeFloat(float):
    """A number that each run has another of: equal to itself only, or it would be shared with others."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class RuntimeInt(int):
    """The same for whole numbers."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def is_runtime(value: Any) -> bool:
    """Whether a scalar's value is another one in each run."""
    return isinstance(value, RuntimeFloat | RuntimeInt)


def plain(number: RuntimeFloat | RuntimeInt) -> float | int:
    """A run-time number as the one it is now."""
    return float(number) if isinstance(number, float) else int(number)


class Trace:
    """What a captured function did beside computing its result."""

    def __init__(self) -> None:
        self.changed: dict[int, tuple[ref[Any], Node]] = {}  # by identity: a tensor, and the node it had
        self.draws: list[tuple[Draw, list[RuntimeFloat | RuntimeInt]]] = []
        self.watched: list[tuple[Callable[[], Any], Any]] = []  # what gives a value, and what that was
        self.slots: dict[
            int, tuple[Any, Any, bool]
        ] = {}  # by identity: a slot, its gradient, if that matters

    def note(self, tensor: Any) -> None:
        """A tensor is about to get another node."""
        known = self.changed.get(id(tensor))
        if known is None or known[0]() is not tensor:
            self.changed[id(tensor)] = ref(tensor), tensor.node

    def before(self, tensor: Any) -> Node:
        """The node that a tensor had when the trace began."""
        known = self.changed.get(id(tensor))
        found: Node = tensor.node if known is None or known[0]() is not tensor else known[1]
        return found

    def note_slot(self, slot: Any, *, written: bool) -> None:
        """A gradient is about to be read or replaced; one that is replaced first may be any."""
        if id(slot) not in self.slots:
            self.slots[id(slot)] = slot, slot._grad, not written

    def drawn(self, draw: Draw) -> list[RuntimeFloat | RuntimeInt]:
        """Numbers that are given anew for each run."""
        numbers = [RuntimeFloat(each) if isinstance(each, float) else RuntimeInt(each) for each in draw()]
        self.draws.append((draw, numbers))
        return numbers

    def undo(self) -> None:
        """Give every tensor the node it had, and every slot its gradient."""
        for tensor, node in self.changed.values():
            found = tensor()
            if found is not None:
                found.node = node
        for slot, gradient, _ in self.slots.values():
            slot._grad = gradient


class _Local(threading.local):
    trace: Trace | None = None


_local = _Local()
# The backlog is all threads': one trace at a time, and nobody computes what waits meanwhile.
one_at_a_time = threading.RLock()


def current_trace() -> Trace | None:
    """The trace that is open in this thread."""
    return _local.trace


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Open a trace in this thread; what waits is not computed meanwhile, however much."""
    with one_at_a_time:
        _local.trace = trace
        limits = backlog.most, backlog.most_bytes
        backlog.most = backlog.most_bytes = 1 << 60
        backlog.restart(backlog.waiting())
        try:
            yield
        finally:
            _local.trace = None
            backlog.most, backlog.most_bytes = limits
            backlog.restart(backlog.waiting())


_OTHERWISE = "Return the tensor and read it outside; use webgrad.where instead of if"


def refuse_in_trace(what: str, otherwise: str = _OTHERWISE) -> None:
    """Raise where a captured function needs a value, which is only there when it runs."""
    if _local.trace is not None:
        raise CaptureError(
            f"{what} inside a function that webgrad.jit captures or webgrad.export writes: there are no "
            f"values yet, only the graph of what is to be computed. {otherwise}; or name the argument that "
            "is needed as a number in webgrad.jit(..., static=...)"
        )
