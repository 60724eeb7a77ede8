"""A loaded model: what a user holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..io.memory_map import map_file
from .graph import Contents, Value, contents_of
from .inputs import bound
from .module import OnnxModule
from .program import Program, Uploading
from .protobuf import parse
from .summary import Summary, summary_of
from .tensorflow import contents_of_graph

__all__ = ["Model", "Outputs", "load"]

SHOWN = 8  # inputs
MEGABYTE = 1 << 20
LARGE = 256 * MEGABYTE  # of weights: what is less is there before a bar is read


class Outputs(dict[str, Any]):
    """What a call gives: values by name, by place (`out[0]`), and as attributes (`out.logits`)."""

    def __getitem__(self, key: str | int) -> Any:
        if not isinstance(key, int):
            return super().__getitem__(key)
        values = list(self.values())
        if not -len(values) <= key < len(values):
            raise IndexError(f"there are {len(values)} outputs, {', '.join(self)}, and no place {key}")
        return values[key]

    def __missing__(self, key: str) -> Any:
        raise KeyError(f"there is no output {key!r}, only {', '.join(self)}")

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no output {name!r}, only {', '.join(self)}")


class Model:
    """An ONNX model on a device: called with tensors or arrays, it gives `Outputs`.

    Made by `webgrad.onnx.load`. `inputs` and `outputs` are what its file says of them.
    """

    def __init__(
        self, contents: Contents, source: str, device: Any = None, uploading: Uploading | None = None
    ) -> None:
        self.contents = contents
        self.source = source
        graph = contents.graph
        self.inputs: tuple[Value, ...] = tuple(
            each for each in graph.inputs if each.name not in graph.weights
        )
        self.outputs: tuple[Value, ...] = graph.outputs
        self.device = wg.zeros(1, device=device).device
        self._program = Program(contents, self.device, *([uploading] if uploading else []))

    @property
    def waits(self) -> tuple[str, ...]:
        """The nodes that need a computed value on the host, which the model waits for, call by call."""
        return self._program.waits

    def explain(self) -> str:
        """Which nodes are captured together, and which the host waits for, as the calls so far have shown."""
        return "\n".join(self._program.lines())

    def __call__(self, *args: Any, **named: Any) -> Outputs:
        """The outputs for inputs by place or by name: tensors, arrays, numbers; texts as arrays or lists."""
        return Outputs(self._program(self._given(args, named)))

    def summary(self) -> Summary:
        """A table of inputs, outputs, operators by count, weights, operator sets and producer."""
        return summary_of(self.contents, self.inputs, self.source, self.waits)

    def is_known(self, name: str, value: Any) -> bool:
        """Whether an input's numbers are needed on the host, so that each value is a capture of its own."""
        return self._program.is_known(name, value)

    def state_dict(self) -> dict[str, wg.Tensor]:
        """Its weights by their names in the file: tensors that may be changed in place.

        From then on nothing that follows from weights is kept from call to call.
        """
        return self._program.release()

    def parameters(self) -> Iterator[wg.Tensor]:
        """The weights that are floats, for an optimiser."""
        return iter([each for each in self.state_dict().values() if each.dtype.kind in "fc"])

    def requires_grad_(self, requires_grad: bool = True) -> Model:
        """Have gradients go to its weights: `backward()` of what a call gives leaves them in their `grad`."""
        for each in self.parameters():
            each.requires_grad = requires_grad
        return self

    def to_module(self) -> OnnxModule:
        """A module of its own with these weights as parameters, under the names that they have in the file.

        Called like the model, it gives the only output, or all of them by name. It trains, and its
        `state_dict` saves and loads, as that of any module; the model keeps its own weights.
        """
        return OnnxModule(self._call_with, self._program.release())

    def _call_with(
        self, args: tuple[Any, ...], named: Mapping[str, Any], weights: Mapping[str, wg.Tensor]
    ) -> Outputs:
        return Outputs(self._program.with_weights(self._given(args, named), dict(weights)))

    def _given(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        return bound(self, self.inputs, args, named)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.inputs[:SHOWN])) + (", …" if len(self.inputs) > SHOWN else "")
        return f"<webgrad.onnx.Model {Path(self.source).name}({inputs}) on {self.device}>"


def _contents(target: Path) -> Contents:
    if target.is_dir() or target.suffix == ".json":
        return contents_of_graph(wg.io.open(target))
    return contents_of(parse(map_file(target), "Model", str(target)), target.parent, str(target))


def load(path: str | os.PathLike[str], device: Any = None, progress: bool = True) -> Model:
    """A model from an ONNX file, ready to be called, on a device: by default the best one there is.

    So is the model.json of a graph model of TensorFlow.js, or its folder.

    `path` may be a name of `wg.models.catalogue()`, or a source, as `wg.models.pull` takes them. Where there
    is much to bring to the device, a bar shows how far that is, unless `progress` is false.
    """
    target = wg.models.locate(path)
    contents = _contents(target)
    total = sum(each.nbytes for each in contents.graph.weights.values())
    megabytes = total // MEGABYTE
    show = progress and total >= LARGE
    done = 0
    with wg.training.progress(total=megabytes, label=target.name, unit="MB", show=show) as bar:

        def uploading(nbytes: int) -> None:
            nonlocal done
            before, done = done // MEGABYTE, done + nbytes
            bar.advance(done // MEGABYTE - before)

        return Model(contents, str(target), device, uploading if show else None)
