"""Parts of a graph by the cpu device's own code, to be held against the same bounds as a GPU's kernels.

In: a graph, known values, and the nodes that are wanted. Out: their arrays, as the cpu's plans make them. The
reference is another thing: the rows of the table of ops, one by one in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...arrays import Array, np
from ...evaluate.cpu_plan import HostPlan
from ...graph.node import signature
from ...graph.op import LEAF
from ...graph.snapshot import Snapshot
from .reference import between
from .rounding import Bounded

__all__ = ["on_cpu"]


def on_cpu(
    graph: Snapshot, wanted: Sequence[int], known: Mapping[int, Bounded], numbers: Mapping[int, Any]
) -> dict[int, Array]:
    """The wanted values as the cpu computes them from the known ones; `numbers` are the scalars'."""
    order = between(graph, wanted, known)
    inside = set(order)
    sources = [each for at in order for each in graph.inputs[at] if each not in inside]
    place = {each: at for at, each in enumerate(dict.fromkeys([*sources, *order]))}
    sigs, inputs = [], []
    for each in place:
        sig = graph.sigs[each]
        if each not in inside and sig.kind != "scalar":
            sig = signature(LEAF, sig.shape, sig.dtype, sig.device)
        sigs.append(sig)
        inputs.append(tuple(place[at] for at in graph.inputs[each]) if each in inside else ())
    part = Snapshot(sigs, inputs, tuple(place[each] for each in wanted))
    plan = HostPlan(part, sigs[-1].device, captured=True)
    names = list(place)
    leaves = {at: np.asarray(known[names[at]].value, order="C") for at in plan.leaves}
    found = plan.plan.run(leaves, {at: numbers[names[at]] for at in plan.scalars})
    return {each: found[place[each]] for each in wanted}
