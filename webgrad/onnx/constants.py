"""What a graph computes of its weights only: computed once, when the model is loaded.

In: a graph, its weights. Out: the nodes that are left, and the values that they read. A result that is larger
than what it is made of stays a node: quantised weights are unpacked where they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .evaluation import CANNOT, Run, Scope, Values
from .graph import Contents, Function, Graph, Node, last_uses, names_read

__all__ = ["arrays_of_file", "settled"]

SMALL = 1 << 16  # bytes: so much is made at once, whatever it is made of


def settled(graph: Graph, weights: Values, run: Run) -> tuple[Graph, Values]:
    """A graph without what hangs on weights only, and the values that the rest of it reads."""
    scope = Scope(dict(weights), {}, run.opset)
    rest = [_prepared(node, scope) for node in graph.nodes if not _is_settled(node, scope, run)]
    uses = last_uses(rest, [each.name for each in graph.outputs])
    reduced = Graph(graph.name, graph.inputs, graph.outputs, {}, tuple(rest), uses)
    read = {name for node in rest for name in names_read(node)} | {each.name for each in graph.outputs}
    values = {name: each for name, each in scope.values.items() if name in read}
    wg.eval([each for each in values.values() if isinstance(each, wg.Tensor)])
    return reduced, values


def _is_settled(node: Node, scope: Scope, run: Run) -> bool:
    """Whether a node's results are known now, in the scope."""
    operator, values = node.operator, scope.values
    if isinstance(operator, Function) or not operator.folds or node.graphs:
        return False
    if not all(name in values for name in node.inputs if name):
        return False
    results = _computed(node, scope, run)
    made = sum(map(_nbytes, results))
    if made > SMALL and made > sum(_nbytes(values[name]) for name in node.inputs if name):
        return False
    values.update(zip(node.outputs, results, strict=False))
    return True


def _computed(node: Node, scope: Scope, run: Run) -> Sequence[Any]:
    """A node's results; what it cannot take of weights is the file's fault."""
    try:
        return run.node(node, scope)
    except wg.ModelFileError:
        raise
    except wg.WebgradError as error:
        raise wg.ModelFileError(str(error)) from error


def _prepared(node: Node, scope: Scope) -> Node:
    """A node that reads its weights in the form that its operator wants."""
    if isinstance(node.operator, Function) or node.operator.prepare is None or not node.outputs:
        return node
    weights = [scope.values.get(name) for name in node.inputs]
    names = list(node.inputs)
    try:
        forms = node.operator.prepare(*weights, **node.attributes)
    except CANNOT:  # what it refuses it refuses when it runs, with the node's name
        return node
    for place, value in forms.items():
        names[place] = "" if value is None else f"{node.inputs[place]} as {node.outputs[0]} has it"
        scope.values[names[place]] = value
    return replace(node, inputs=tuple(names))


def _nbytes(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_nbytes, value))
    return value.nbytes if isinstance(value, np.ndarray | wg.Tensor) else 0


def arrays_of_file(contents: Contents) -> Iterator[Array]:
    """Arrays that last as long as the model: of graphs, of their inner graphs, of attributes."""
    yield from contents.graph.weights.values()
    for nodes in (contents.graph.nodes, *(each.nodes for each in contents.functions.values())):
        yield from _arrays_of(nodes)


def _arrays_of(nodes: Sequence[Node]) -> Iterator[Array]:
    for node in nodes:
        yield from (each for each in node.attributes.values() if isinstance(each, np.ndarray))
        for graph in node.graphs:
            yield from graph.weights.values()
            yield from _arrays_of(graph.nodes)
