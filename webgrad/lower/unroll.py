"""Folds over windows, which are written out: the few elements of a window need no loop.

In: a graph and the nodes of a kernel. Out: those folds among them that go over the elements of small windows,
and nothing else. A loop would compute every index anew, and costs several times what it folds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..graph.snapshot import Snapshot
from ..schedule.axes import Axes, through_map, through_move

__all__ = ["MOST_TERMS", "window_folds"]

MOST_TERMS = 12  # elements of a window that are written out: each is a load, and loads are slow to compile


def window_folds(graph: Snapshot, nodes: Iterable[int]) -> frozenset[int]:
    """The folds over small windows, of nodes with inputs first."""
    elements: dict[int, Axes] = {}  # node → its axes that are the elements of windows
    found: set[int] = set()
    for node in nodes:
        sig, inputs = graph.sigs[node], graph.inputs[node]
        if sig.kind == "reduce":
            shape, axes = graph.sigs[inputs[0]].shape, frozenset(sig.attributes[0])
            terms = math.prod(shape[axis] for axis in axes)
            if 0 < terms <= MOST_TERMS and axes <= elements.get(inputs[0], frozenset()):
                found.add(node)
            continue
        carry = through_move if sig.kind == "move" else through_map
        own: Axes = frozenset()
        if sig.kind in ("move", "map", "cast"):
            for each in inputs:
                if each in elements:
                    own |= carry(sig, graph.sigs[each], elements[each]) or frozenset()
        if sig.op.name == "window":
            own |= {len(sig.shape) - 1}
        if own:
            elements[node] = own
    return frozenset(found)
