"""Functions with everything they need, as files: the plan, the weights, the runner, a typed module.

In: functions and examples of their inputs. Out: `Bundle`, which plans them for every kind of adapter and
writes plan.json, weights-….safetensors, runner.js, model.js and their declarations. The invariant: each
tensor is written once, whatever functions and variants use it.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from .. import __version__
from ..arrays import np
from ..errors import ArgumentError
from ..evaluate.evaluate import read
from ..graph.node import Node
from ..observing import unobserved
from ..runtime.buffers import Buffer
from ..runtime.transfer import as_bytes
from ..tuning import tune
from .declarations import declarations, module_text
from .paper import VARIANTS, Variant, tracing_device
from .plan import Planner, Schedules
from .shards import SHARD, Stored, write_shards
from .trace import Graph, Held, trace_on_paper

__all__ = ["Bundle"]

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Bundle:
    """Functions that share weights and state; `names` are what to call tensors that they close over."""

    def __init__(self, name: str, names: Iterable[tuple[str, Any]] = ()) -> None:
        self.name = name
        self.graphs: dict[str, Graph] = {}
        self._names: dict[int, str] = {}
        self._origins: dict[str, tuple[Any, Node]] = {}  # name → what a leaf stands for, and the leaf
        self._changed: set[int] = set()  # owners of state
        given = list(names)
        self._wanted = {id(tensor.node): label for label, tensor in given}
        self._wanted |= {id(tensor): label for label, tensor in given}

    def add(self, name: str, function: Callable[..., Any], example_inputs: Any) -> None:
        """Trace a function; later ones see the same weights and state."""
        if not name or not set(name) <= _PLAIN or name[0].isdigit():
            raise ArgumentError(
                f"export: {name!r} cannot be the name of a function: letters, digits and _, no digit first"
            )
        graph = trace_on_paper(function, example_inputs, tracing_device(), name)
        for node in graph.leaves():
            if node.sig.nbytes > SHARD:
                raise ArgumentError(
                    f"export: {self._name_of(node)} has {node.sig.nbytes:,} bytes, and tensors in browsers "
                    f"have at most {SHARD:,}: split it, or quantise it"
                )
        self.graphs[name] = graph

    def write(self, folder: Path, variants: Sequence[Variant] = VARIANTS) -> dict[str, Any]:
        """Write all files but pages; gives the plan."""
        texts: dict[str, int] = {}
        self._changed = {
            id(each.storage.owner) for graph in self.graphs.values() for each, _ in graph.changed
        }
        state = {self._name_of(before): before for each in self.graphs.values() for before, _ in each.changed}
        schedules = Schedules()
        with tune(False), unobserved():  # on paper there is nothing to measure or to watch
            planned = [(each, self._planned(each, texts, state, schedules)) for each in variants]
        files, tensors = write_shards(self._stored(state), folder)
        plan = {
            "format": "webgrad-plan",
            "version": 1,
            "generator": f"webgrad {__version__}",
            "name": self.name,
            "texts": list(texts),
            "weights": files,
            "tensors": tensors,
            "state": {name: self._state(name, node, tensors) for name, node in state.items()},
            "functions": {name: _described(graph) for name, graph in self.graphs.items()},
            "variants": [
                {"label": variant.label, "needs": variant.needs, **made}
                for variant, made in _without_repeats(planned)
            ],
        }
        (folder / "plan.json").write_text(json.dumps(plan, separators=(",", ":"), allow_nan=False), "utf-8")
        (folder / "model.js").write_text(module_text(), "utf-8")
        (folder / "model.d.ts").write_text(declarations(plan), "utf-8")
        for each in ("runner.js", "runner.d.ts"):
            with resources.as_file(resources.files("webgrad.runtime") / each) as path:
                shutil.copyfile(path, folder / each)
        return plan

    def _planned(
        self, variant: Variant, texts: dict[str, int], state: Mapping[str, Node], schedules: Schedules
    ) -> dict[str, Any]:
        planner = Planner(variant, texts, self._name_of, schedules)
        functions = {name: each._asdict() for name, each in planner.plan(self.graphs).items()}
        return {"kernels": planner.kernels, "buffers": planner.buffers(state), "functions": functions}

    # Names and values of what functions close over

    def _name_of(self, node: Node) -> str:
        """What a leaf is called: tensors with one node are one, but for those that change."""
        origin = node.storage
        value, owner = origin if isinstance(origin, Held) else (origin, origin)
        key = id(owner if id(owner) in self._changed else value)
        found = self._names.get(key)
        if found is None:
            wanted = self._wanted.get(id(owner)) or self._wanted.get(key) or f"constant_{len(self._names)}"
            found = wanted
            number = 1
            while found in self._origins:
                number += 1
                found = f"{wanted}_{number}"
            self._names[key] = found
            self._origins[found] = origin, node
        return found

    def _stored(self, state: Mapping[str, Node]) -> dict[str, Stored]:
        """What is written to files: all but state that begins as zeros."""
        found = {}
        for name, (origin, node) in self._origins.items():
            if name not in state or not _is_zero(origin):
                sig = node.sig
                found[name] = Stored(sig.dtype, sig.shape, sig.nbytes, partial(_bytes_of, origin))
        return found

    def _state(self, name: str, node: Node, tensors: Mapping[str, Any]) -> dict[str, Any]:
        sig = node.sig
        return {
            "dtype": sig.dtype.name,
            "shape": list(sig.shape),
            "bytes": sig.nbytes,
            "tensor": name if name in tensors else None,
        }


def _bytes_of(origin: Any) -> Any:
    """The value that a leaf stands for, on the host."""
    return origin.virtual.host if isinstance(origin, Buffer) else as_bytes(read(origin.node))


def _is_zero(origin: Any) -> bool:
    return not np.asarray(_bytes_of(origin)).any()


def _described(graph: Graph) -> dict[str, Any]:
    """A function's inputs and outputs."""
    inputs: dict[str, Any] = {}
    for each in graph.inputs:
        inputs[each.name] = {"kind": each.kind, "dtype": each.dtype.name}
        if each.kind == "tensor":
            nbytes = math.prod(each.shape) * each.dtype.itemsize
            inputs[each.name] |= {"shape": list(each.shape), "bytes": nbytes}
        elif each.default is not None:
            inputs[each.name]["default"] = each.default
        elif each.example is not None:
            inputs[each.name]["example"] = each.example
    outputs = {
        name: {"dtype": node.sig.dtype.name, "shape": list(node.sig.shape), "bytes": node.sig.nbytes}
        for name, node in graph.outputs
    }
    return {"inputs": inputs, "outputs": outputs}


def _without_repeats(planned: list[tuple[Variant, Any]]) -> list[tuple[Variant, Any]]:
    """Leave out a variant whose adapters would get the same from whichever later one they fit."""
    kept: list[tuple[Variant, Any]] = []
    for variant, made in reversed(planned):
        for later, same in kept:
            if same != made:
                kept.insert(0, (variant, made))
                break
            if later.includes(variant):
                break
        else:
            kept.insert(0, (variant, made))
    return kept
