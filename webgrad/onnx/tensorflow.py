"""Graph models of TensorFlow.js as a model's records, so that all that runs ONNX models runs them.

In: a model.json and its weights. Out: `Contents`, whose nodes are of the domain "tensorflow". A value
has the name of the node that gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..io.memory_map import is_possible, shown
from .graph import Contents, Graph, Node, Value, check_node, last_uses
from .operators import find
from .operators.tensorflow import TENSORFLOW, TYPES
from .types import code_of, type_of

__all__ = ["contents_of_graph"]

# Attributes that say what follows from a node's inputs, or how it is to be computed
_IDLE = frozenset({
    "T", "TArgs", "Tdim", "Tdims", "Tidx", "Tindices", "Tmultiples", "Tpaddings", "Tparams", "Taxis", "Tperm",
    "Tshape", "Index", "N", "SrcT", "Truncate", "dtype", "num_args", "num_host_args", "out_type",
    "use_cudnn_on_gpu", "validate_indices",
})  # fmt: skip
_GIVEN = ("Placeholder", "Const")


def contents_of_graph(weights: wg.io.Weights) -> Contents:
    """The records of a graph model."""
    source, listed = str(weights.path), wg.io.tfjs_nodes(weights)
    nodes = {each.name: each for each in listed}
    if len(nodes) < len(listed):
        raise wg.ModelFileError(f"{source} is damaged: two of its nodes have one name")
    placeholders = [each for each in listed if each.op == "Placeholder"]
    arrays = {name: _array(weights, name) for name, each in nodes.items() if each.op == "Const"}
    inputs = tuple(_value(source, each.name, each.attributes) for each in placeholders)
    computed = [each for each in _in_order(source, nodes) if each.op not in _GIVEN]
    results = _results(source, weights.metadata, computed)
    made = tuple(_node(source, each) for each in computed if each.op != "NoOp")
    used = {name for each in made for name in each.inputs} | set(results)
    known = {*arrays, *(each.name for each in inputs), *(name for each in made for name in each.outputs)}
    for name in sorted(used - known):
        raise wg.ModelFileError(f"{source}: the value {shown(name)} is computed nowhere")
    outputs = tuple(Value(name) for name in results)
    graph = Graph(weights.path.name, inputs, outputs, arrays, made, last_uses(made, results))
    producer = str(weights.metadata.get("convertedBy") or "TensorFlow.js")
    return Contents(graph, {TENSORFLOW: 1}, {}, {}, producer)


def _array(weights: wg.io.Weights, name: str) -> Array:
    if name not in weights:
        raise wg.ModelFileError(f"{weights.path}: there is no weight {shown(name)}, which its graph reads")
    return np.asarray(weights.host(name))


def _read(name: str) -> str:
    """The value that an input names."""
    return name.removesuffix(":0")


def _results(source: str, metadata: Mapping[str, Any], nodes: Sequence[wg.io.GraphNode]) -> list[str]:
    """The outputs that the file lists; else all that nobody reads."""
    holder = metadata if metadata.get("signature") else _table(source, metadata, "userDefinedMetadata")
    listed = _table(source, _table(source, holder, "signature"), "outputs")
    if listed:
        return [_read(str(_table(source, listed, key).get("name", key))) for key in listed]
    read = {_read(name).split(":")[0] for each in nodes for name in each.inputs}
    return [each.name for each in nodes if each.name not in read]


def _table(source: str, holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table within another one, empty where there is none."""
    found = holder.get(key)
    if found is not None and not isinstance(found, dict):
        raise wg.ModelFileError(f"{source} is damaged: {shown(key)} is {found!r:.80}, and no table")
    return found or {}


def _value(source: str, name: str, attributes: Mapping[str, Any]) -> Value:
    """An input. TensorFlow.js counts with 32 bits where TensorFlow has 64."""
    kind = TYPES.get(str(attributes.get("dtype")))
    shape = _shape(source, name, attributes.get("shape"))
    return Value(name, element=type_of(code_of(np.dtype(kind))) if kind else None, shape=shape)


def _shape(source: str, name: str, sizes: Any) -> tuple[int | None, ...] | None:
    """The sizes of an input, None for those that are open; None where not even their number is known."""
    if sizes is None:
        return None
    is_shape = isinstance(sizes, tuple) and all(type(each) is int and each >= -1 for each in sizes)
    if not is_shape or not is_possible(tuple(max(each, 0) for each in sizes)):
        raise wg.ModelFileError(f"{source}: {shown(name)} has the shape {sizes!r:.80}, which no array has")
    return tuple(None if each < 0 else each for each in sizes)


def _node(source: str, node: wg.io.GraphNode) -> Node:
    label = shown(node.name)
    found = find(TENSORFLOW, node.op, 1)
    if found is None:
        raise wg.ModelFileError(f"{source}: {label} is {shown(node.op)}, which webgrad has not")
    inputs = tuple(_read(each) for each in node.inputs if not each.startswith("^"))
    attributes = {
        name: value
        for name, value in node.attributes.items()
        if not name.startswith("_") and (name not in _IDLE or name in found.attributes)
    }
    made = Node(label, found, inputs, (node.name,), attributes, refers=False)
    check_node(made)
    return made


def _in_order(source: str, nodes: Mapping[str, wg.io.GraphNode]) -> Iterator[wg.io.GraphNode]:
    """Nodes, each behind all that it reads."""
    done, waiting = set[str](), set[str]()
    stack = [(name, False) for name in reversed(list(nodes))]
    while stack:
        name, is_ready = stack.pop()
        if name in done:
            continue
        if is_ready:
            waiting.discard(name)
            done.add(name)
            yield nodes[name]
            continue
        waiting.add(name)
        stack.append((name, True))
        for each in nodes[name].inputs:
            before = each.removeprefix("^").split(":")[0]
            if before not in nodes:
                raise wg.ModelFileError(f"{source}: {shown(name)} reads {shown(before)}, which is not there")
            if before in waiting:
                raise wg.ModelFileError(f"{source}: {shown(before)} reads what is computed of it")
            if before not in done:
                stack.append((before, False))
