"""What is small and computed twice in the same way is one value.

In: a `Snapshot`, whose readers are rewritten in place. Out: nothing. Layers of a model that each clamp the
same positions read one value then, which is stored once if that pays. Large values stay apart: who computes
them twice, as a checkpoint does, means to spare the memory. So do roots, and values that somebody holds;
others may be read from them. Numbers of nodes stay.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot

MAX_SHARED_SIZE = 1 << 12  # elements up to which equal values are computed once


def share_common_subexpressions(graph: Snapshot) -> None:
    """Let all readers of equal small values read the first of them."""
    kept = graph.held.union(graph.roots)
    first: dict[tuple[int, tuple[int, ...]], int] = {}
    same: dict[int, int] = {}
    for number in graph.order():
        sig = graph.sigs[number]
        if sig.kind in ("leaf", "scalar"):
            continue
        inputs = graph.inputs[number] = tuple([same.get(each, each) for each in graph.inputs[number]])
        if sig.size > MAX_SHARED_SIZE:
            continue
        found = first.setdefault((sig.number, inputs), number)
        if found != number and number not in kept:
            same[number] = found
