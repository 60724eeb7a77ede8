"""Common subexpressions: a small value that is computed twice becomes one value.

In: a `Snapshot`, whose readers are rewritten in place. Out: nothing. Layers of a model that each clamp the
same positions then read one value, which is stored once if that pays. Large values are not shared: a program
that computes them twice, as a checkpoint does, means to save memory. Roots and held values are not replaced,
but others may be read from them. Node ids stay.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot

MAX_SHARED_SIZE = 1 << 12  # elements up to which equal values are computed once


def share_common_subexpressions(graph: Snapshot) -> None:
    """Make all readers of equal small values read the first of them."""
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
