"""A graph that is run in parts: each captured by itself, with the nodes between them that the host waits for.

In: the values that a call gives. Out: the graph's outputs by name. Where a capture meets a node that needs a
computed value on the host, the graph is divided there, once and for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import webgrad as wg

from ..arrays import np
from .evaluation import Scope, Values, WaitsError, is_for_tensors
from .graph import Graph
from .parts import Part, parts_of

if TYPE_CHECKING:
    from .program import Program

__all__ = ["Divided", "is_captured"]

Known = tuple[
    str, Any, tuple[int, ...], bytes
]  # an array that calls are told apart by: its name, what it holds
MAX_SEEN = (
    48  # shapes and known values of which a part behind a wait is captured; others are run as they come
)
MANY = 64  # nodes: parts of so many are captured at once


class Divided:
    """A graph, of a model or inside of one, with `values` that are the same at every call."""

    def __init__(self, graph: Graph, values: Values, program: Program, *, is_inner: bool) -> None:
        self.graph, self.values, self.program, self.is_inner = graph, values, program, is_inner
        self._waiting: set[int] = set()  # the places of nodes that wait
        self._parts = [_Captured(part, self) for part in parts_of(graph, ())]

    def __call__(self, given: Values) -> Values:
        values, at = given, 0
        while at < len(self._parts):
            part = self._parts[at]
            try:
                values = values | part(values)
            except WaitsError as error:
                self._divide(at, error)
                continue
            if part.of.barrier is not None:
                values = self._past(part.of, values)
            at += 1
        names = [each.name for each in self.graph.outputs]
        return {name: values[name] if name in values else self.values[name] for name in names}

    def lines(self) -> Iterator[str]:
        """What is captured together, and what the host waits for."""
        for part in (each.of for each in self._parts):
            if part.graph.nodes:
                yield f"{len(part.graph.nodes):,} nodes, captured together"
            if part.barrier is not None:
                yield f"{part.barrier.label} ({part.barrier.operator}): the host waits for what it reads"

    def _divide(self, at: int, error: WaitsError) -> None:
        """Have a node of a part be run by itself from now on; the parts before it stay."""
        part = self._parts[at].of
        self._waiting.add(part.start + error.place)
        self.program.note(str(error))
        again = parts_of(self.graph, self._waiting, part.start)
        self._parts[at:] = [_Captured(each, self) for each in again]

    def _past(self, part: Part, values: Values) -> Values:
        """What is there after a node that waits: what is needed on the host is read while it waits anyway."""
        assert part.barrier is not None
        placed = self.program.placed
        values = {name: placed(name, each) for name, each in values.items()}
        run = self.program.run_of(captures=True)
        results = run.node(part.barrier, Scope(self.values | values, {}, run.opset))
        values |= zip(part.barrier.outputs, results, strict=False)
        return {name: placed(name, each) for name, each in values.items() if name in part.read_later}


class _Captured:
    """A part whose calls are captured: at once, or when the same shapes come again."""

    def __init__(self, part: Part, owner: Divided) -> None:
        self.of = part
        self._owner = owner
        self._seen: set[Any] = set()
        self._captured: dict[Any, Any] = {}

    def __call__(self, values: Values) -> Values:
        if not self.of.graph.nodes:
            return {}
        given = {name: each for name, each in values.items() if name in self.of.reads}
        known = [(name, each) for name, each in given.items() if isinstance(each, np.ndarray)]
        computed = {name: each for name, each in given.items() if not isinstance(each, np.ndarray)}
        keys = tuple([(name, each.dtype, each.shape, each.tobytes()) for name, each in known])
        key = self._key(computed, keys)
        if not all(is_captured(each) for _, each in known) or self._is_new(key):
            return self._run(given, captures=True)
        if key not in self._captured:
            self._captured[key] = self._capturing()
        found: Values = self._captured[key](computed, known=keys)
        return found

    def _run(self, given: Values, *, captures: bool) -> Values:
        owner = self._owner
        return owner.program.run(self.of.graph, owner.values | given, captures=captures)

    def _capturing(self) -> Any:
        def run(computed: Values, known: Sequence[Known]) -> Values:
            arrays = {name: np.ndarray(shape, dtype, data) for name, dtype, shape, data in known}
            return self._run(computed | arrays, captures=False)

        return wg.jit(run, static=("known",))

    def _key(self, computed: Values, keys: Any) -> Any:
        """What calls are told apart by if they hang on computed values; None where a user's shapes decide."""
        is_first = not self.of.start or len(self.of.graph.nodes) >= MANY
        if is_first and not self._owner.is_inner:
            return None
        return tuple((name, getattr(each, "shape", None)) for name, each in computed.items()), keys

    def _is_new(self, key: Any) -> bool:
        """Whether a key comes for the first time: it may never again, and to run is less than to compile."""
        if key is None or key in self._seen:
            return False
        if len(self._seen) < MAX_SEEN:
            self._seen.add(key)
        return True


def is_captured(value: Any) -> bool:
    """Whether a call with a value is captured: not one with texts."""
    return not isinstance(value, np.ndarray) or is_for_tensors(value)
