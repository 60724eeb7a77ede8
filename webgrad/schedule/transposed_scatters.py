"""Writes along an axis that is not the first, without turning the array: a pass over the graph.

In: a graph for the cpu, in which such a write is a scatter between two permutations (rows must be rows).
Out: the same graph, the chain replaced by one scatter with attributes = (order, axes), which writes through
the turned view of its base; so a cache is written to in the place where it is. Only values that are set.
"""

from __future__ import annotations

import math

from ..graph.node import signature
from ..graph.snapshot import Snapshot

__all__ = ["write_turned"]


def write_turned(graph: Snapshot) -> None:
    """Rewrite a graph in place; numbers of nodes stay."""
    order = graph.order()
    if all(graph.sigs[each].op.name != "scatter_set" for each in order):
        return
    readers: dict[int, int] = {}
    for node in order:
        for each in graph.inputs[node]:
            readers[each] = readers.get(each, 0) + 1
    for node in order:
        if graph.sigs[node].op.name == "permute":
            _turn(graph, node, readers)


def _turn(graph: Snapshot, node: int, readers: dict[int, int]) -> None:
    kept = {*graph.roots, *graph.held}
    back = graph.sigs[node].attributes[0]
    inner = graph.inputs[node][0]
    chain = _reshapes(graph, inner)
    written = graph.sigs[chain[-1]]
    is_plain = written.op.name == "scatter_set" and not written.attributes  # one that is turned stays so
    if not is_plain or any(each in kept or readers[each] != 1 for each in chain):
        return
    rows, index, updates = graph.inputs[chain[-1]]
    turned = _reshapes(graph, rows)[-1]
    sig = graph.sigs[turned]
    if sig.op.name != "permute" or sig.shape != graph.sigs[inner].shape:
        return
    forth = sig.attributes[0]
    axes = _leading_axes(sig.shape, written.shape[0])
    if axes is None or tuple(forth[each] for each in back) != tuple(range(len(back))):
        return
    base = graph.sigs[node]
    graph.sigs[node] = signature(written.op, base.shape, base.dtype, base.device, (forth, axes))
    graph.inputs[node] = (graph.inputs[turned][0], index, updates)


def _reshapes(graph: Snapshot, node: int) -> list[int]:
    """A chain of reshapes, and what it is of."""
    chain = [node]
    while graph.sigs[chain[-1]].op.name == "reshape":
        chain.append(graph.inputs[chain[-1]][0])
    return chain


def _leading_axes(shape: tuple[int, ...], rows: int) -> int | None:
    """How many axes make as many rows."""
    found = (count for count in range(1, len(shape)) if math.prod(shape[:count]) == rows)
    return next(found, None)
