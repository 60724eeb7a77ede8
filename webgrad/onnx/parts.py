"""A graph in parts: nodes that are captured together, and between them nodes that the host waits for.

In: a graph, and the places of the nodes that wait. Out: parts in their order. The invariant: run one after
the other, each part with what those before it left, they give what the graph gives.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from .graph import Graph, Node, Value, last_uses, names_read

__all__ = ["Part", "parts_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that run without a wait, and the node that waits behind them."""

    start: int  # its first node's place in the whole graph
    graph: Graph  # its outputs: what is read later
    reads: frozenset[str]
    barrier: Node | None
    read_later: frozenset[str]  # by what comes behind the barrier


def parts_of(graph: Graph, waiting: Collection[int], start: int = 0) -> list[Part]:
    """The parts of a graph from a node on, divided at the nodes that wait."""
    ends = sorted(at for at in waiting if at >= start)
    bounds = [start - 1, *ends, len(graph.nodes)]
    outputs = [each.name for each in graph.outputs]
    return [_part(graph, first + 1, end, outputs) for first, end in pairwise(bounds)]


def _part(graph: Graph, start: int, end: int, outputs: list[str]) -> Part:
    nodes, later = graph.nodes[start:end], graph.nodes[end + 1 :]
    barrier = graph.nodes[end] if end < len(graph.nodes) else None
    read_later = frozenset([*outputs, *(name for node in later for name in names_read(node))])
    wanted = read_later | set(names_read(barrier) if barrier else ())
    made = [name for node in nodes for name in node.outputs if name in wanted]
    values = tuple(map(Value, made))
    inner = Graph(graph.name, (), values, {}, nodes, last_uses(nodes, made))
    return Part(
        start, inner, frozenset(name for node in nodes for name in names_read(node)), barrier, read_later
    )
