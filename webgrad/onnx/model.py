"""A loaded model: what a user holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..io.memory_map import map_file
from .evaluation import Run, WaitsError, as_tensor, is_for_tensors
from .graph import Contents, Value, contents_of
from .host_values import needed_on_host
from .protobuf import parse

__all__ = ["Model", "Outputs", "load"]

LARGE = 1024  # elements: larger integer weights lie on the device, smaller ones may be shapes


class Outputs(dict[str, Any]):
    """What a call gives: values by name, by place (`out[0]`), and as attributes (`out.logits`)."""

    def __getitem__(self, key: str | int) -> Any:
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)

    def __missing__(self, key: str) -> Any:
        raise KeyError(f"there is no output {key!r}, only {', '.join(self)}")

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no output {name!r}, only {', '.join(self)}")


class Model:
    """An ONNX model on a device: called with tensors or arrays, it gives `Outputs`.

    Made by `webgrad.onnx.load`.
    """

    def __init__(self, contents: Contents, source: str, device: Any = None) -> None:
        self.contents = contents
        self.source = source
        graph = contents.graph
        self.inputs: tuple[Value, ...] = tuple(
            each for each in graph.inputs if each.name not in graph.weights
        )
        self.outputs: tuple[Value, ...] = graph.outputs
        self.device = wg.zeros(1, device=device).device
        self._fixed_names = needed_on_host(graph)
        self._parameters: dict[str, wg.Tensor] = {}
        self._arrays: dict[str, Array] = {}
        for name, array in graph.weights.items():
            if name in self._fixed_names or not _is_weight(array):
                self._arrays[name] = array
            else:
                self._parameters[name] = wg.asarray(array, device=self.device)
        self._captured = wg.jit(self._run, static=("fixed",))
        self.waits: tuple[str, ...] = ()  # nodes whose values the host needs, which it waits for

    def __call__(self, *args: Any, **named: Any) -> Outputs:
        given = self._given(args, named)
        tensors = {name: each for name, each in given.items() if isinstance(each, wg.Tensor)}
        fixed = tuple((name, _Fixed(each)) for name, each in given.items() if name not in tensors)
        if not self.waits and not _asks_gradients([*tensors.values(), *self._parameters.values()]):
            try:
                return Outputs(self._captured(tensors, fixed=fixed))
            except WaitsError as error:
                self.waits = (str(error),)
        return Outputs(self._run(tensors, fixed))

    def state_dict(self) -> dict[str, wg.Tensor]:
        """Its weights by their names in the file."""
        return dict(self._parameters)

    def _run(self, tensors: Mapping[str, wg.Tensor], fixed: Sequence[tuple[str, _Fixed]]) -> dict[str, Any]:
        graph = self.contents.graph
        values = {**self._arrays, **self._parameters, **tensors, **{name: each.value for name, each in fixed}}
        run = Run(self.device, self.contents.opsets.get("", 1))
        results = run.model(graph, values)
        self.waits = tuple(dict.fromkeys((*self.waits, *run.waits)))
        return {
            each.name: as_tensor(result, self.device) if is_for_tensors(result) else result
            for each, result in zip(graph.outputs, results, strict=True)
        }

    def _given(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name: on the host what the graph needs there, everything else on the device."""
        names = [each.name for each in self.inputs]
        if len(args) > len(names):
            raise wg.ArgumentError(f"{self!r} takes {len(names)} inputs, not {len(args)}: {', '.join(names)}")
        given = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name not in names:
                raise wg.ArgumentError(f"{self!r} has no input {name!r}, only {', '.join(names)}")
            if name in given:
                raise wg.ArgumentError(f"the input {name!r} is given twice, by its place and by its name")
            given[name] = value
        return {each.name: self._placed(each, given[each.name]) for each in self.inputs if each.name in given}

    def _placed(self, value: Value, given: Any) -> Any:
        if value.name in self._fixed_names:
            return given.numpy() if isinstance(given, wg.Tensor) else np.asarray(given)
        if isinstance(given, wg.Tensor):
            return given
        array = np.asarray(given)
        return wg.asarray(array, device=self.device) if is_for_tensors(array) else array

    def __repr__(self) -> str:
        return f"<webgrad.onnx.Model {Path(self.source).name} on {self.device}>"


def load(path: str | os.PathLike[str], device: Any = None) -> Model:
    """A model from an ONNX file, ready to be called, on a device: by default the best one there is.

    `path` may be a name of `wg.models.catalogue()`, or a source, as `wg.models.pull` takes them.
    """
    target = wg.models.locate(path)
    contents = contents_of(parse(map_file(target), "Model", str(target)), target.parent, str(target))
    return Model(contents, str(target), device)


class _Fixed:
    """An array that calls are told apart by."""

    __slots__ = ("key", "value")

    def __init__(self, value: Array) -> None:
        self.value = value
        kept = tuple(value.reshape(-1).tolist()) if value.dtype == object else value.tobytes()
        self.key = str(value.dtype), value.shape, kept

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fixed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _is_weight(array: Array) -> bool:
    """Whether an array of the file lies on the device: floats, and integers that are too many for a shape."""
    return is_for_tensors(array) and (array.dtype.kind in "fcV" or array.size > LARGE)


def _asks_gradients(tensors: Sequence[wg.Tensor]) -> bool:
    return wg.is_grad_enabled() and any(each.requires_grad for each in tensors)
