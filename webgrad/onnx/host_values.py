"""Which values a graph needs on the host: shapes, axes, counts, conditions, and what they are computed from.

In: a graph. Out: the names of inputs, weights and values whose numbers an operator wants to know. A shape is
known without its tensor, so nothing before Shape and Size is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Function, Graph, Node

__all__ = ["needed_on_host"]

_KNOWN_ANYWAY = ("Shape", "Size")


def needed_on_host(graph: Graph) -> frozenset[str]:
    """The names of a graph's values that are needed as arrays, inner graphs' needs of outer ones included."""
    needed: set[str] = set()
    _collect(graph.nodes, needed)
    return frozenset(needed)


def _collect(nodes: Sequence[Node], needed: set[str]) -> None:
    """From the last node to the first: who is needed needs what it is computed from."""
    for node in reversed(nodes):
        for graph in node.graphs:
            _collect(graph.nodes, needed)
        if isinstance(node.operator, Function):
            inner = {
                name
                for name, given in zip(node.operator.outputs, node.outputs, strict=False)
                if given in needed
            }
            _collect(node.operator.nodes, inner)
            needed.update(
                given
                for name, given in zip(node.operator.inputs, node.inputs, strict=False)
                if given and name in inner
            )
            continue
        if node.operator.name not in _KNOWN_ANYWAY and not needed.isdisjoint(filter(None, node.outputs)):
            needed.update(filter(None, node.inputs))
        needed.update(
            name
            for at, name in enumerate(node.inputs)
            if name and node.operator.input_name(at) in node.operator.host
        )
