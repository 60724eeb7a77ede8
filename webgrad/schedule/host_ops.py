"""Which nodes of a plan for the cpu have no kernel: NumPy computes them between native calls.

In: a graph and a node. Out: whether it is such a node, or one whose kernel computes what it reads.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot

__all__ = ["HOST_KINDS", "is_by_host", "pulls_inputs"]

HOST_KINDS = frozenset(("sort", "scatter", "fft", "kernel"))
LEAST_COLUMNS = 16  # of rows that are added to computed places, by lanes


def is_by_host(graph: Snapshot, number: int) -> bool:
    """Whether NumPy computes a node of a native plan: there is no kernel for it."""
    sig = graph.sigs[number]
    return sig.kind in HOST_KINDS and not _adds_rows(graph, number)


def _adds_rows(graph: Snapshot, number: int) -> bool:
    """Whether rows are added to computed places that are long enough for lanes."""
    sig = graph.sigs[number]
    if sig.op.name != "scatter_add" or not sig.size:
        return False
    index = graph.sigs[graph.inputs[number][1]].dtype
    return sig.shape[1] >= LEAST_COLUMNS and sig.dtype.itemsize >= 4 and index.itemsize <= 4


def pulls_inputs(graph: Snapshot, number: int) -> bool:
    """Whether rows are added to those of one number, as in gradients of embeddings: where they are added to
    what is in memory, results may take its place before it was read.
    """
    if not _adds_rows(graph, number):
        return False
    base = graph.inputs[number][0]
    while graph.sigs[base].op.name in ("expand", "reshape"):
        (base,) = graph.inputs[base]
    return graph.sigs[base].kind == "scalar"
