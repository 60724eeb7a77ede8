"""A model's graph on a device: its weights in place, its calls captured.

In: a model's records, then the values of a call by name. Out: the results by name. What depends on weights
only is computed once. A call is captured for each set of shapes and of known values. A node that needs a
computed value on the host divides the graph: what is before it and what is behind are captured apart. Where a
text is given, or gradients are asked for, the graph runs as it stands, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import RLock
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .constants import arrays_of_file, settled
from .division import Divided, is_captured
from .evaluation import HOST, Run, Uploads, Values, as_tensor, is_for_tensors
from .graph import Contents, Graph, names_of
from .host_values import needed_on_host
from .operators.values import uploaded

__all__ = ["Program", "Uploading"]

LARGE = 1024  # elements: larger integer weights lie on the device, smaller ones may be shapes
MAX_FLOATS, MAX_WHOLE = 8, 64  # elements: larger inputs are never part of a capture's key


def _ignore(nbytes: int) -> None:
    """Nobody watches."""


Uploading = Callable[[int], None]


class Program:
    """A model that can be called. `waits` are the nodes whose inputs the host has to wait for."""

    def __init__(self, contents: Contents, device: Any, uploading: Uploading = _ignore) -> None:
        self.contents = contents
        self.device = device
        self.waits: tuple[str, ...] = ()
        self._lock = RLock()
        self._on_host = needed_on_host(contents.graph)
        weights = contents.graph.weights
        self._names = [name for name, array in weights.items() if self._is_parameter(name, array)]
        self._arrays = {name: weights[name] for name in weights if name not in set(self._names)}
        self._parameters = self._uploaded(self._names, uploading)
        self._is_released = False
        self._lasting = frozenset(map(id, arrays_of_file(contents)))
        self._kept: Uploads = {}
        self._made: dict[Any, Any] = {}
        given = {**self._arrays, **self._parameters}
        self._begin(*settled(contents.graph, given, self.run_of()))
        self._parameters = {name: each for name, each in self._parameters.items() if name in self._values}

    def _begin(self, graph: Graph, values: Values) -> None:
        """Go on with a graph of which nothing is captured."""
        self._graph, self._values = graph, values
        self._lasting_ids = frozenset(map(id, values.values()))
        self._divided = Divided(graph, values, self, is_inner=False)
        self._inner: dict[int, Divided] = {}  # branches and bodies that the host decides on, by identity

    def __call__(self, given: Values) -> Values:
        values = {name: self.placed(name, each) for name, each in given.items()}
        if self._asks_gradients(values) or not all(map(is_captured, values.values())):
            found = self.run(self._graph, self._values | values)
        else:
            with self._lock:  # graphs may be divided
                found = self._divided(values)
        return self._results(found, given)

    def run(self, graph: Graph, values: Values, *, captures: bool = False) -> Values:
        """A graph's outputs, or those of a part of it, node by node; branches and bodies perhaps captured."""
        run = self.run_of(captures=captures)
        results = run.model(graph, values)
        self.note(*run.waits)
        return {each.name: result for each, result in zip(graph.outputs, results, strict=True)}

    def inner(self, graph: Graph, values: Values) -> list[Any]:
        """The outputs of a branch or body that the host decided on."""
        if id(graph) not in self._inner:
            steady = {name: self._values[name] for name in names_of(graph) if name in self._values}
            self._inner[id(graph)] = Divided(graph, steady | graph.weights, self, is_inner=True)
        divided = self._inner[id(graph)]
        given = {name: each for name, each in values.items() if name not in divided.values}
        found = divided({name: self.placed(name, each) for name, each in given.items()})
        return [found[each.name] for each in graph.outputs]

    def note(self, *waits: str) -> None:
        """Remember nodes that wait."""
        self.waits = tuple(dict.fromkeys((*self.waits, *waits)))

    def is_known(self, name: str, value: Any) -> bool:
        """Whether an input is taken to the host, as what a capture is made for."""
        return name in self._on_host and _is_key(value) and not getattr(value, "requires_grad", False)

    def lines(self) -> Iterator[str]:
        """What is captured together, and what the host waits for, as far as calls have shown."""
        yield from self._divided.lines()
        for divided in self._inner.values():
            yield f"inside of it, {divided.graph.name or 'a branch or body'}:"
            yield from (f"  {each}" for each in divided.lines())

    def release(self) -> dict[str, wg.Tensor]:
        """The weights by name. Who holds them may change them: nothing that is computed from them is kept
        from here on.
        """
        if not self._is_released:
            # Weights that are equal now need not be so after a step: each is a tensor of its own.
            weights = self.contents.graph.weights
            owners = {id(each): name for name, each in self._parameters.items()}
            for name in self._names:
                if name not in self._parameters or owners[id(self._parameters[name])] != name:
                    self._parameters[name] = uploaded(np.array(weights[name]), self.device)
            self._parameters = {name: self._parameters[name] for name in self._names}
            self._begin(self.contents.graph, {**self._arrays, **self._parameters})
            self._is_released = True
        return dict(self._parameters)

    def with_weights(self, given: Values, weights: Values) -> Values:
        """A call with other tensors as weights, run as it stands: who captures it is its caller."""
        self.release()
        placed = {name: self.placed(name, each) for name, each in given.items()}
        found = self.run(self._graph, {**self._values, **weights, **placed})
        return self._results(found, given, weights)

    def run_of(self, *, captures: bool = False) -> Run:
        """An evaluation; with `captures` branches and bodies outside of captured parts are captured too."""
        opset = self.contents.opsets.get("", 1)
        run = Run(self.device, opset, self._lasting, self._kept, made=self._made)
        run.inner = self.inner if captures else None
        return run

    def _is_parameter(self, name: str, array: Array) -> bool:
        """Whether an array of the file lies on the device: floats that are no single numbers, and integers
        that are too many for a shape.
        """
        if not is_for_tensors(array) or (name in self._on_host and array.size <= HOST):
            return False
        return array.size > LARGE if array.dtype.kind in "iub" else array.ndim > 0

    def _uploaded(self, names: Sequence[str], uploading: Uploading) -> dict[str, wg.Tensor]:
        """Weights as tensors, one for equal names of one array; `uploading` hears of the bytes of each."""
        weights = self.contents.graph.weights
        made: dict[int, wg.Tensor] = {}
        for name in names:
            if id(weights[name]) not in made:
                made[id(weights[name])] = uploaded(weights[name], self.device)
                uploading(weights[name].nbytes)
        return {name: made[id(weights[name])] for name in names}

    def placed(self, name: str, given: Any) -> Any:
        """A value: on the host what the graph needs there, everything else on the device."""
        if given is None or isinstance(given, list | tuple):
            return given and [self.placed(name, each) for each in given]
        if isinstance(given, dict):
            return given
        given = given if isinstance(given, wg.Tensor) else np.asarray(given)
        if self.is_known(name, given):
            return given.numpy() if isinstance(given, wg.Tensor) else given
        return uploaded(given, self.device) if is_for_tensors(given) else given

    def _results(self, found: Values, *given: Values) -> Values:
        """What a call gives back, of what it was given."""
        taken = {id(each) for values in given for each in values.values()}
        return {name: self._returned(each, taken) for name, each in found.items()}

    def _returned(self, value: Any, taken: set[int]) -> Any:
        """A result, which is `taken` then: of what others hold, inputs, weights and other results, a copy,
        since who gets it may write into it.
        """
        if isinstance(value, list):
            return [self._returned(each, taken) for each in value]
        if isinstance(value, wg.Tensor):
            sharing = map(id, value.alias.members.alive() if value.alias else [value])
            if any(each in taken or each in self._lasting_ids for each in sharing):
                return wg.copy(value)
            taken.add(id(value))
            return value
        return as_tensor(value, self.device) if is_for_tensors(value) else value

    def _asks_gradients(self, computed: Values) -> bool:
        if not wg.is_grad_enabled():
            return False
        tensors = [*computed.values(), *(self._parameters.values() if self._is_released else ())]
        return any(isinstance(each, wg.Tensor) and each.requires_grad for each in tensors)


def _is_key(value: Any) -> bool:
    """Whether calls may be captured apart by what an input holds: counts, axes, shapes, no data."""
    return bool(value.ndim <= 1 and value.size <= (MAX_FLOATS if value.dtype.kind == "f" else MAX_WHOLE))
