"""A model's graph on a device: its weights in place, its calls captured.

In: a model's records, then the values of a call by name. Out: the results by name. What depends on weights
only is computed once. A call is captured for each set of shapes and of known values. A node that needs a
computed value on the host divides the graph: what is before it and what is behind are captured apart. Where a
text is given, or gradients are asked for, the graph runs as it stands, node by node.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence
from threading import RLock
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .constants import arrays_of_file, settled
from .evaluation import HOST, Run, Scope, Uploads, Values, WaitsError, as_tensor, is_for_tensors
from .graph import Contents, Graph
from .host_values import needed_on_host
from .operators.values import uploaded
from .parts import Part, parts_of

__all__ = ["Program"]

LARGE = 1024  # elements: larger integer weights lie on the device, smaller ones may be shapes
MAX_SEEN = 256  # shapes that a part behind a wait is remembered to have met
MANY = 64  # nodes: parts of so many are captured at once
MAX_FLOATS, MAX_WHOLE = 8, 64  # elements: larger inputs are never part of a capture's key


class Program:
    """A model that can be called. `waits` are the nodes whose inputs the host has to wait for."""

    def __init__(self, contents: Contents, device: Any) -> None:
        self.contents = contents
        self.device = device
        self.waits: tuple[str, ...] = ()
        self._lock = RLock()
        self._on_host = needed_on_host(contents.graph)
        weights = contents.graph.weights
        self._names = [name for name, array in weights.items() if self._is_parameter(name, array)]
        self._arrays = {name: weights[name] for name in weights if name not in set(self._names)}
        self._parameters = self._uploaded(self._names)
        self._is_released = False
        self._lasting = frozenset(map(id, arrays_of_file(contents)))
        self._kept: Uploads = {}
        self._made: dict[Any, Any] = {}
        given = {**self._arrays, **self._parameters}
        self._begin(*settled(contents.graph, given, self._run_of()))
        self._parameters = {name: each for name, each in self._parameters.items() if name in self._values}

    def _begin(self, graph: Graph, values: Values) -> None:
        """Go on with a graph of which nothing is captured."""
        self._graph, self._values = graph, values
        self._waiting: set[int] = set()  # the places of nodes that wait
        self._parts = [Captured(part, self) for part in parts_of(graph, ())]

    def __call__(self, given: Values) -> Values:
        values = {name: self._placed(name, each) for name, each in given.items()}
        if self._asks_gradients(values) or not all(map(_is_captured, values.values())):
            found = self.run(self._graph, values)
        else:
            with self._lock:  # parts may be divided
                found = self._by_parts(values)
        lasting = {id(each) for each in (*given.values(), *self._values.values())}
        return {name: self._returned(each, lasting) for name, each in found.items()}

    def _by_parts(self, values: Values) -> Values:
        at = 0
        while at < len(self._parts):
            part = self._parts[at]
            try:
                values |= part(values)
            except WaitsError as error:
                self._divide(at, error)
                continue
            if part.of.barrier is not None:
                values = self._past(part.of, values)
            at += 1
        every = self._values | values
        return {each.name: every[each.name] for each in self._graph.outputs}

    def _divide(self, at: int, error: WaitsError) -> None:
        """Have a node of a part be run by itself from now on; the parts before it stay."""
        part = self._parts[at].of
        self._waiting.add(part.start + error.place)
        self.waits = tuple(dict.fromkeys((*self.waits, str(error))))
        again = parts_of(self._graph, self._waiting, part.start)
        self._parts[at:] = [Captured(each, self) for each in again]

    def _past(self, part: Part, values: Values) -> Values:
        """What is there after a node that waits: what is needed on the host is read while it waits anyway."""
        assert part.barrier is not None
        values = {name: self._placed(name, each) for name, each in values.items()}
        scope = Scope(self._values | values, {}, self.contents.opsets.get("", 1))
        results = self._run_of().node(part.barrier, scope)
        values |= zip(part.barrier.outputs, results, strict=False)
        return {name: self._placed(name, each) for name, each in values.items() if name in part.read_later}

    def run(self, graph: Graph, given: Values) -> Values:
        """A graph's outputs, or those of a part of it, node by node."""
        run = self._run_of()
        results = run.model(graph, self._values | given)
        self.waits = tuple(dict.fromkeys((*self.waits, *run.waits)))
        return {each.name: result for each, result in zip(graph.outputs, results, strict=True)}

    def is_known(self, name: str, value: Any) -> bool:
        """Whether an input is taken to the host, as what a capture is made for."""
        return name in self._on_host and _is_key(value)

    def release(self) -> dict[str, wg.Tensor]:
        """The weights by name. Who holds them may change them: nothing that is computed from them is kept
        from here on.
        """
        if not self._is_released:
            missing = self._uploaded(name for name in self._names if name not in self._parameters)
            self._parameters = {name: (self._parameters | missing)[name] for name in self._names}
            self._begin(self.contents.graph, {**self._arrays, **self._parameters})
            self._is_released = True
        return dict(self._parameters)

    def _run_of(self) -> Run:
        opset = self.contents.opsets.get("", 1)
        return Run(self.device, opset, self._lasting, self._kept, made=self._made)

    def _is_parameter(self, name: str, array: Array) -> bool:
        """Whether an array of the file lies on the device: floats that are no single numbers, and integers
        that are too many for a shape.
        """
        if not is_for_tensors(array) or (name in self._on_host and array.size <= HOST):
            return False
        return array.size > LARGE if array.dtype.kind in "iub" else array.ndim > 0

    def _uploaded(self, names: Iterable[str]) -> dict[str, wg.Tensor]:
        """Weights as tensors, one for equal names of one array."""
        weights = self.contents.graph.weights
        made: dict[int, wg.Tensor] = {}
        for name in (names := list(names)):
            if id(weights[name]) not in made:
                made[id(weights[name])] = uploaded(weights[name], self.device)
        return {name: made[id(weights[name])] for name in names}

    def _placed(self, name: str, given: Any) -> Any:
        """An input: on the host what the graph needs there, everything else on the device."""
        if given is None or isinstance(given, list | tuple):
            return given and [self._placed(name, each) for each in given]
        if isinstance(given, dict):
            return given
        given = given if isinstance(given, wg.Tensor) else np.asarray(given)
        if self.is_known(name, given):
            return given.numpy() if isinstance(given, wg.Tensor) else given
        return uploaded(given, self.device) if is_for_tensors(given) else given

    def _returned(self, value: Any, lasting: Container[int]) -> Any:
        """A result: of what lasts, inputs and weights, a copy, since who gets it may write into it."""
        if isinstance(value, list):
            return [self._returned(each, lasting) for each in value]
        if isinstance(value, wg.Tensor):
            sharing = value.alias.members.alive() if value.alias else [value]
            return wg.copy(value) if any(id(each) in lasting for each in sharing) else value
        return as_tensor(value, self.device) if is_for_tensors(value) else value

    def _asks_gradients(self, computed: Values) -> bool:
        if not wg.is_grad_enabled():
            return False
        tensors = [*computed.values(), *(self._parameters.values() if self._is_released else ())]
        return any(isinstance(each, wg.Tensor) and each.requires_grad for each in tensors)


class Captured:
    """A part whose calls are captured: at once, or when the same shapes come again."""

    def __init__(self, part: Part, program: Program) -> None:
        self.of = part
        self._program = program
        self._seen: OrderedDict[Any, None] = OrderedDict()

        def run(computed: Values, known: Sequence[tuple[str, _Known]]) -> Values:
            return program.run(part.graph, {**computed, **{name: each.value for name, each in known}})

        self._captured: Any = wg.jit(run, static=("known",))

    def __call__(self, values: Values) -> Values:
        if not self.of.graph.nodes:
            return {}
        given = {name: each for name, each in values.items() if name in self.of.reads}
        known = {name: each for name, each in given.items() if isinstance(each, np.ndarray)}
        computed = {name: each for name, each in given.items() if name not in known}
        keys = tuple((name, _Known(each)) for name, each in known.items())
        if not all(map(_is_captured, given.values())) or self._is_new(computed, keys):
            return self._program.run(self.of.graph, given)
        found: Values = self._captured(computed, known=keys)
        return found

    def _is_new(self, computed: Values, keys: Any) -> bool:
        """Whether shapes that hang on computed values come for the first time: they may never come again, and
        a few nodes are run sooner than compiled.
        """
        if not self.of.start or len(self.of.graph.nodes) >= MANY:
            return False
        shapes = {name: getattr(each, "shape", None) for name, each in computed.items()}
        key = tuple(shapes.items()), keys
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        return True


class _Known:
    """An array that calls are told apart by."""

    __slots__ = ("key", "value")

    def __init__(self, value: Array) -> None:
        self.value = value
        self.key = value.dtype.str, value.shape, value.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _is_captured(value: Any) -> bool:
    """Whether a call with a value is captured: not one with texts."""
    return not isinstance(value, np.ndarray) or is_for_tensors(value)


def _is_key(value: Any) -> bool:
    """Whether calls may be captured apart by what an input holds: counts, axes, shapes, no data."""
    return bool(value.ndim <= 1 and value.size <= (MAX_FLOATS if value.dtype.kind == "f" else MAX_WHOLE))
