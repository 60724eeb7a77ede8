"""Tracing: while a function is captured, what its thread does to tensors is recorded.

In: tensors that get another node, and numbers that each run supplies. Out: a `Trace`. The
invariant: nothing is computed while a trace is open in its thread, and a run-time number is never folded
into others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

from ..errors import CaptureError
from ..gradients.history import grad_mode
from .node import Node, backlog

Draw = Callable[[], Sequence[int | float]]
NoteCall = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any], Any], None]


class RuntimeFloat(float):
    """Placeholder for a number supplied at each call; equal to itself only, so that it is never shared."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class RuntimeInt(int):
    """Placeholder for an integer supplied at each call."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def is_runtime(value: Any) -> bool:
    """Whether a scalar's value is supplied at each call."""
    return isinstance(value, RuntimeFloat | RuntimeInt)


def plain(number: RuntimeFloat | RuntimeInt) -> float | int:
    """The current value of a run-time number."""
    return float(number) if isinstance(number, float) else int(number)


class Trace:
    """The side effects of a captured function."""

    composes = False  # whether what goes back through nodes is built as composites nevertheless

    def __init__(self, given: Sequence[Node] = (), calls: NoteCall | None = None) -> None:
        self.given = given  # placeholders
        self.calls = calls  # who wants to hear of calls of pure functions: function, arguments, result
        self.changed: dict[int, tuple[ref[Any], Node]] = {}  # by identity: a tensor, and the node it had
        self.draws: list[tuple[Draw, list[RuntimeFloat | RuntimeInt]]] = []
        self.watched: list[tuple[Callable[[], Any], Any]] = []  # a function, and the value it had
        # the same, by what says whether one of them may have another value
        self.versioned: dict[Callable[[], object], list[tuple[Callable[[], Any], Any]]] = {}
        self.slots: dict[
            int, tuple[Any, Any, bool]
        ] = {}  # by identity: a slot, its gradient, if that matters

    def note(self, tensor: Any) -> None:
        """Record that a tensor is about to get another node."""
        known = self.changed.get(id(tensor))
        if known is None or known[0]() is not tensor:
            self.changed[id(tensor)] = ref(tensor), tensor.node

    def before(self, tensor: Any) -> Node:
        """The node that a tensor had when the trace began."""
        known = self.changed.get(id(tensor))
        found: Node = tensor.node if known is None or known[0]() is not tensor else known[1]
        return found

    def note_slot(self, slot: Any, *, written: bool) -> None:
        """Record that a gradient is about to be read or replaced; one replaced first may have any value."""
        if id(slot) not in self.slots:
            self.slots[id(slot)] = slot, slot._grad, not written

    def drawn(self, draw: Draw) -> list[RuntimeFloat | RuntimeInt]:
        """Run-time numbers that `draw` supplies at each call."""
        numbers = [RuntimeFloat(each) if isinstance(each, float) else RuntimeInt(each) for each in draw()]
        self.draws.append((draw, numbers))
        return numbers

    def drawn_words(self, draw: Draw, count: int, is_common: bool) -> list[RuntimeFloat | RuntimeInt]:
        """The same of so many random words; `is_common`: of the generator that all share."""
        return self.drawn(draw)

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
    hidden: frozenset[Node] = frozenset()  # placeholders of a trace that is suspended: without values


_local = _Local()
# All threads share the backlog: one trace at a time, and meanwhile it is not computed.
one_at_a_time = threading.RLock()


def current_trace() -> Trace | None:
    """The trace that is open in this thread."""
    return _local.trace


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Open a trace in this thread; meanwhile the backlog is not computed."""
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


@contextmanager
def suspended() -> Iterator[None]:
    """No trace in this thread for a while: values that hang on no placeholder can be computed."""
    trace, _local.trace = _local.trace, None
    if trace is not None:
        _local.hidden = frozenset(trace.given)
    try:
        yield
    finally:
        if trace is not None:
            _local.hidden = frozenset()
        _local.trace = trace


class ImpureError(Exception):
    """What a function computes depends on more than its arguments, or it does more than to compute."""


class PureTrace(Trace):
    """The trace of a function of which only the graph is wanted. Of numbers it may draw random words of the
    common generator alone: each call draws its own.
    """

    def drawn(self, draw: Draw) -> list[RuntimeFloat | RuntimeInt]:
        """Nothing else: the numbers would be missing where they are drawn in earnest."""
        raise ImpureError

    def drawn_words(self, draw: Draw, count: int, is_common: bool) -> list[RuntimeFloat | RuntimeInt]:
        """Placeholders: nothing is drawn before the function is called in earnest."""
        if not is_common:  # a name may stand for another one at the next call
            raise ImpureError
        numbers: list[RuntimeFloat | RuntimeInt] = [RuntimeInt(1) for _ in range(count)]
        self.draws.append((draw, numbers))
        return numbers


def words_of(draw: Draw, count: int, is_common: bool = True) -> Sequence[Any]:
    """So many random words; in a captured function new ones at each of its calls, in one that is computed
    again those of the first time.
    """
    noted = grad_mode.draws
    if noted is not None and grad_mode.repeat:
        return noted.pop(0)  # type: ignore[no-any-return]
    trace = current_trace()
    words = draw() if trace is None else trace.drawn_words(draw, count, is_common)
    if noted is not None:
        noted.append(words)
    return words


@contextmanager
def repeating(words: Sequence[Sequence[Any]]) -> Iterator[None]:
    """A context in which these words are drawn."""
    before = grad_mode.draws, grad_mode.repeat
    grad_mode.draws, grad_mode.repeat = [*words], True
    try:
        yield
    finally:
        grad_mode.draws, grad_mode.repeat = before


@contextmanager
def noting(*, composes: bool = False) -> Iterator[Trace]:
    """A `PureTrace` in this thread, which may have another inside."""
    trace, outside = PureTrace(), _local.trace
    trace.composes = composes
    collected = grad_mode.made, grad_mode.draws
    made, start = backlog.made, len(backlog.made)
    with backlog.paused():
        _local.trace = trace
        grad_mode.made = grad_mode.draws = None
        try:
            yield trace
        finally:
            _local.trace = outside
            grad_mode.made, grad_mode.draws = collected
            trace.undo()
            backlog.forget_placeholders(start if made is backlog.made else 0)


_OTHERWISE = "Return the tensor and read it outside; use webgrad.where instead of if"


def refuse_in_trace(what: str, otherwise: str = _OTHERWISE, of: Sequence[Node] = ()) -> None:
    """Raise where a captured function needs a value, `of` nodes, which exists only when it runs."""
    if _local.trace is not None or (_local.hidden and not _local.hidden.isdisjoint(_leaves(of))):
        raise CaptureError(
            f"{what} inside a function that webgrad.jit captures or webgrad.export writes: there are no "
            f"values yet, only the graph of what is to be computed. {otherwise}; or name the argument that "
            "is needed as a number in webgrad.jit(..., static=...)"
        )


def _leaves(nodes: Sequence[Node]) -> set[Node]:
    """What nodes are computed from, as far as it is known."""
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.inputs
    return found
