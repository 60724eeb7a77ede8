"""Unrolled folds over windows: the few elements of a window need no loop.

In: a graph and the nodes of a kernel. Out: those folds among them that go over the elements of small windows,
and nothing else. A loop would compute every index again, and costs several times as much as the fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..graph.snapshot import Snapshot
from ..schedule.axes import Axes, through_map, through_move
from ..schedule.size import MAX_UNROLLED_TERMS

MAX_UNROLLED_COST = 220  # additions of all unrolled elements together


def window_folds(graph: Snapshot, nodes: Iterable[int]) -> frozenset[int]:
    """The folds over small windows, of nodes with inputs first."""
    elements: dict[int, Axes] = {}  # node → its axes that are the elements of windows
    cost: dict[int, int] = {}  # of one element, without the folds before it, which are computed once
    found: set[int] = set()
    for node in nodes:
        sig, inputs = graph.sigs[node], graph.inputs[node]
        if sig.kind == "reduce":
            shape, axes = graph.sigs[inputs[0]].shape, frozenset(sig.attributes[0])
            terms = math.prod(shape[axis] for axis in axes)
            few = 0 < terms <= MAX_UNROLLED_TERMS and terms * cost.get(inputs[0], 0) <= MAX_UNROLLED_COST
            if few and axes <= elements.get(inputs[0], frozenset()):
                found.add(node)
            continue
        cost[node] = sig.op.cost * (sig.kind == "map") + sum(cost.get(each, 0) for each in inputs)
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
