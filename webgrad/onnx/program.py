"""A model's graph on a device: its weights in place, its calls captured.

In: a model's records, then the values of a call by name. Out: the results by name. What depends on weights
only is computed once. A call is captured for each set of shapes and of known values; where an operator needs
a computed value on the host, or a text is given, the graph runs as it stands, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .constants import arrays_of_file, settled
from .evaluation import HOST, Run, Uploads, Values, WaitsError, as_tensor, is_for_tensors
from .graph import Contents
from .host_values import needed_on_host
from .operators.values import uploaded

__all__ = ["Program"]

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
        self._graph, self._values = settled(contents.graph, given, self._run_of())
        self._parameters = {name: each for name, each in self._parameters.items() if name in self._values}
        self._captured: Any = wg.jit(self._call, static=("known",))

    def __call__(self, given: Values) -> Values:
        given = {name: self._placed(name, each) for name, each in given.items()}
        known = {name: each for name, each in given.items() if isinstance(each, np.ndarray)}
        computed = {name: each for name, each in given.items() if name not in known}
        if not self.waits and all(map(is_for_tensors, known.values())) and not self._asks_gradients(computed):
            try:
                keys = tuple((name, _Known(each)) for name, each in known.items())
                found: Values = self._captured(computed, known=keys)
                return found
            except WaitsError as error:
                self.waits = (str(error),)
        return self._results({**computed, **known})

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
            self._graph, self._values = self.contents.graph, {**self._arrays, **self._parameters}
            self._captured.clear()
            self._is_released = True
        return dict(self._parameters)

    def with_weights(self, given: Values, weights: Values) -> Values:
        """A call with other tensors as weights, run as it stands: who captures it is its caller."""
        self.release()
        placed = {name: self._placed(name, each) for name, each in given.items()}
        return self._results({**weights, **placed})

    def _call(self, computed: Values, known: Sequence[tuple[str, _Known]]) -> Values:
        return self._results({**computed, **{name: each.value for name, each in known}})

    def _results(self, given: Values) -> Values:
        run = self._run_of()
        results = run.model(self._graph, self._values | given)
        self.waits = tuple(dict.fromkeys((*self.waits, *run.waits)))
        return {
            each.name: self._returned(result)
            for each, result in zip(self._graph.outputs, results, strict=True)
        }

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

    def _uploaded(self, names: Iterable[str], uploading: Uploading) -> dict[str, wg.Tensor]:
        """Weights as tensors, one for equal names of one array; `uploading` hears of the bytes of each."""
        weights = self.contents.graph.weights
        made: dict[int, wg.Tensor] = {}
        for name in (names := list(names)):
            if id(weights[name]) not in made:
                made[id(weights[name])] = uploaded(weights[name], self.device)
                uploading(weights[name].nbytes)
        return {name: made[id(weights[name])] for name in names}

    def _placed(self, name: str, given: Any) -> Any:
        """An input: on the host what the graph needs there, everything else on the device."""
        if given is None or isinstance(given, list | tuple):
            return given and [self._placed(name, each) for each in given]
        given = given if isinstance(given, wg.Tensor) else np.asarray(given)
        if name in self._on_host and _is_key(given):
            return given.numpy() if isinstance(given, wg.Tensor) else given
        return uploaded(given, self.device) if is_for_tensors(given) else given

    def _returned(self, value: Any) -> Any:
        if isinstance(value, list):
            return list(map(self._returned, value))
        return as_tensor(value, self.device) if is_for_tensors(value) else value

    def _asks_gradients(self, computed: Values) -> bool:
        if not wg.is_grad_enabled():
            return False
        tensors = [*computed.values(), *(self._parameters.values() if self._is_released else ())]
        return any(isinstance(each, wg.Tensor) and each.requires_grad for each in tensors)


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


def _is_key(value: Any) -> bool:
    """Whether calls may be captured apart by what an input holds: counts, axes, shapes, no data."""
    return bool(value.ndim <= 1 and value.size <= (MAX_FLOATS if value.dtype.kind == "f" else MAX_WHOLE))
