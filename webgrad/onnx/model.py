"""A loaded model: what a user holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..io.memory_map import map_file
from .graph import Contents, Value, contents_of
from .program import Program
from .protobuf import parse

__all__ = ["Model", "Outputs", "load"]


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
        self._program = Program(contents, self.device)

    @property
    def waits(self) -> tuple[str, ...]:
        """The nodes that need a computed value on the host, which the model waits for, call by call."""
        return self._program.waits

    def __call__(self, *args: Any, **named: Any) -> Outputs:
        return Outputs(self._program(self._given(args, named)))

    def is_known(self, name: str, value: Any) -> bool:
        """Whether an input's numbers are needed on the host, so that each value is a capture of its own."""
        return self._program.is_known(name, value)

    def state_dict(self) -> dict[str, wg.Tensor]:
        """Its weights by their names in the file."""
        return self._program.release()

    def _given(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name."""
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
        return given

    def __repr__(self) -> str:
        return f"<webgrad.onnx.Model {Path(self.source).name} on {self.device}>"


def load(path: str | os.PathLike[str], device: Any = None) -> Model:
    """A model from an ONNX file, ready to be called, on a device: by default the best one there is.

    `path` may be a name of `wg.models.catalogue()`, or a source, as `wg.models.pull` takes them.
    """
    target = wg.models.locate(path)
    contents = contents_of(parse(map_file(target), "Model", str(target)), target.parent, str(target))
    return Model(contents, str(target), device)
