"""An ONNX model node by node: each node here, on what onnxruntime gave the nodes before it.

For models that round between layers: where a number lies on the border of two steps, the last bit of a sum
decides, and all that follows; onnxruntime itself gives other results at other optimisation levels. In: a
model, a set of inputs, a Python with onnx and onnxruntime. Out: how far each node's results are off.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import webgrad as wg
from scripts.system import ROOT
from webgrad.cli.onnx_check import differences
from webgrad.cli.run import array_of
from webgrad.onnx.evaluation import Run, Scope, is_for_tensors
from webgrad.onnx.graph import Node
from webgrad.onnx.operators.values import uploaded

__all__ = ["Peers", "peers_values", "told_of_nodes"]

LEAST = 64  # elements of what is on the device: fewer may be a shape, which is known on the host
Peers = dict[str, Any]


class _Sums(NamedTuple):
    """What was seen of the nodes of a model."""

    nodes: int
    largest: float  # of floats and exact integers, as a share of an output's largest number
    off: int  # quantised numbers that are a step off
    quantised: int
    worst: str

    @property
    def told(self) -> str:
        return (
            f"{self.nodes:,} nodes by themselves, the worst {self.worst}; "
            f"a step off: {self.off:,} of {self.quantised:,} quantised numbers"
        )


def peers_values(python: str, path: str, given: Mapping[str, Any]) -> Peers:
    """What onnxruntime gives for every node's outputs, without optimisations."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder, "inputs-0.npz"), **given)
        Path(folder, "links.json").write_text("[{}]")
        script = str(ROOT / "scripts" / "onnx_peer.py")
        subprocess.run([python, script, path, folder, "--nodes"], check=True)
        names = json.loads(Path(folder, "names.json").read_text())
        with np.load(Path(folder, "outputs-0.npz")) as kept:
            return dict(zip(names, [kept[name] for name in kept.files], strict=True))


def told_of_nodes(path: str, device: str, values: Mapping[str, Any]) -> tuple[str, float]:
    """What is to be said of a model on a device, and the largest difference; inf where a quantised number is
    more than a step off.
    """
    rows = list(_rows(wg.onnx.load(path, device=device), values))
    worst = max(rows, key=lambda row: row[1])
    sums = _Sums(len(rows), worst[1], sum(row[2] for row in rows), sum(row[3] for row in rows), worst[0])
    return sums.told, sums.largest


def _rows(model: wg.onnx.Model, values: Mapping[str, Any]) -> Iterator[tuple[str, float, int, int]]:
    """For each node its label, its largest difference, quantised numbers that are a step off, and all."""
    graph = model.contents.graph
    known = {**graph.weights, **values}
    for node in graph.nodes:
        found = _run(model, node, known)
        wanted = {name: values[name] for name in found}
        if not wanted:
            continue
        if "QuantizeLinear" in str(node.operator) and "Dequantize" not in str(node.operator):
            steps = np.abs(found[node.outputs[0]].astype(np.int64) - wanted[node.outputs[0]])
            off = float("inf") if steps.max(initial=0) > 1 else 0.0
            yield node.label, off, int((steps > 0).sum()), steps.size
        else:
            every = differences(found, wanted)
            yield node.label, max(each.largest for each in every), 0, 0


def _run(model: wg.onnx.Model, node: Node, known: Mapping[str, Any]) -> dict[str, Any]:
    """A node's outputs, of those that the peer gives too."""
    names = [name for name in (*node.inputs, *_inner_names(node)) if name in known]
    inputs = {name: _placed(known[name], model.device) for name in names}
    run = Run(model.device, model.contents.opsets.get("", 1))
    results = run.node(node, Scope(inputs, {}, run.opset))
    return {
        name: array_of(each)
        for name, each in zip(node.outputs, results, strict=False)
        if isinstance(known.get(name), np.ndarray)
    }


def _inner_names(node: Node) -> set[str]:
    """What the graphs inside of a node read of those around it."""
    return {name for graph in node.graphs for each in graph.nodes for name in each.inputs if name}


def _placed(value: Any, device: Any) -> Any:
    """A value as the node would find it: on the device, but for what may be a shape."""
    is_data = is_for_tensors(value) and (value.dtype.kind == "f" or value.size >= LEAST)
    return uploaded(value, device) if is_data and value.ndim else value
