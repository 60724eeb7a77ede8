"""Elements taken in the order that sorts them, and that order not wanted otherwise: a pass over the graph.

In: a graph for the cpu, in which a sort is `sort_places` and a `take_along` them. Out: the same graph, with
`sort_values` in their stead, since NumPy sorts elements sooner than it finds their places.
"""

from __future__ import annotations

from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE

__all__ = ["sort_values"]


def sort_values(graph: Snapshot) -> None:
    """Rewrite a graph in place; numbers of nodes stay."""
    order = graph.order()
    if all(graph.sigs[each].op.name != "sort_places" for each in order):
        return
    readers: dict[int, int] = dict.fromkeys((*graph.roots, *graph.held), 1)
    for node in order:
        for each in graph.inputs[node]:
            readers[each] = readers.get(each, 0) + 1
    for node in order:
        sig = graph.sigs[node]
        if sig.op.name != "take_along":
            continue
        x, places = graph.inputs[node]
        sort = graph.sigs[places]
        if sort.op.name != "sort_places" or graph.inputs[places] != (x,) or readers[places] != 1:
            continue
        descending, count = sort.attributes
        if sig.attributes == (len(sig.shape) - 1,) and count == graph.sigs[x].shape[-1]:
            graph.sigs[node] = signature(
                TABLE["sort_values"], sig.shape, sig.dtype, sig.device, (descending,)
            )
            graph.inputs[node] = (x,)
