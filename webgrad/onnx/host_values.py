"""Which values a graph needs on the host: shapes, axes, counts, conditions, and what they are computed from.

In: a graph. Out: the names of inputs, weights and values whose numbers an operator wants to know. A shape is
known without its tensor, so nothing before Shape and Size is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .graph import Function, Graph, Node

__all__ = ["needed_on_host"]

_KNOWN_ANYWAY = ("Shape", "Size", "SequenceLength", "OptionalHasElement")


def needed_on_host(graph: Graph) -> frozenset[str]:
    """The names of a graph's values that are needed as arrays, inner graphs' needs of outer ones included."""
    needed: set[str] = set()
    _collect(graph.nodes, needed)
    return frozenset(needed)


def _collect(nodes: Sequence[Node], needed: set[str]) -> None:
    """From the last node to the first: who is needed needs what it is computed from."""
    for node in reversed(nodes):
        if isinstance(node.operator, Function):
            _collect_function(node, node.operator, needed)
            continue
        for graph in node.graphs:
            _collect_graph(node, graph, needed)
        if node.operator.name not in _KNOWN_ANYWAY and not needed.isdisjoint(filter(None, node.outputs)):
            needed.update(filter(None, node.inputs))
        needed.update(
            name
            for at, name in enumerate(node.inputs)
            if name and node.operator.input_name(at) in node.operator.host
        )


def _collect_graph(node: Node, graph: Graph, needed: set[str]) -> None:
    """Through a branch or body: its outputs are the last of a node's, and a loop's first is its condition."""
    first = len(graph.outputs) - len(node.outputs)
    names = [each.name for each in graph.outputs]
    needed.update(names[: max(first, 0)])
    needed.update(_paired(names[max(first, 0) :], node.outputs, needed))
    _collect(graph.nodes, needed)
    given = [each.name for each in graph.inputs]
    needed.update(_paired(node.inputs[len(node.inputs) - len(given) :], given, needed))


def _collect_function(node: Node, function: Function, needed: set[str]) -> None:
    inner = set(_paired(function.outputs, node.outputs, needed))
    _collect(function.nodes, inner)
    needed.update(filter(None, _paired(node.inputs, function.inputs, inner)))


def _paired(names: Iterable[str], others: Iterable[str], needed: set[str]) -> list[str]:
    """The names whose partners are needed."""
    return [name for name, other in zip(names, others, strict=False) if other in needed]
