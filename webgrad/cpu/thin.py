"""Half-width keys and values, which attention reads as they are stored: a pass over graphs.

In: a graph for the cpu, in which attention is over keys and values made float32. Out: the same graph, in
which it reads what is stored: to move all of it through memory in float32 would take many times as long.
"""

from __future__ import annotations

from ..graph.node import signature
from ..graph.snapshot import Snapshot

__all__ = ["keep_narrow"]


def keep_narrow(graph: Snapshot) -> None:
    """Rewrite a graph in place; numbers of nodes stay."""
    for number in graph.order():
        if graph.sigs[number].op.name == "attention":
            query, keys, values, *others = graph.inputs[number]
            narrow = (_stored_halves(graph, each) for each in (keys, values))
            graph.inputs[number] = (query, *narrow, *others)


def _stored_halves(graph: Snapshot, number: int) -> int:
    """Keys or values without their conversion to float32, which attention does itself, block by block."""
    sig, made = graph.sigs[number], number
    if sig.op.name == "reshape":
        (made,) = graph.inputs[number]
    if graph.sigs[made].op.name != "cast" or graph.sigs[made].dtype.name != "float32":
        return number
    (stored,) = graph.inputs[made]
    if graph.sigs[stored].dtype.name not in ("float16", "bfloat16"):
        return number
    if made == number:
        return stored
    dtype = graph.sigs[stored].dtype
    return graph.add(signature(sig.op, sig.shape, dtype, sig.device, sig.attributes), (stored,))
