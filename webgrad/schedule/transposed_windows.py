"""Transposes under the windows of products: they are stored, so that windows are read along the last axis.

In: a graph. Out: the nodes to store: what was transposed, a network's activations with channels last say, and
is in many windows that a product goes over. Else each of these loads would be far from the one beside it.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot

LEAST = 4  # how often an element is in windows: what is read less often is not stored


def windowed_transposes(graph: Snapshot) -> set[int]:
    """The transposes whose elements are in many windows."""
    found: set[int] = set()
    times: dict[int, dict[int, float]] = {}  # node → transposes that it reads, and how often each element
    for number in graph.order():
        sig = graph.sigs[number]
        known = {each: count for one in graph.inputs[number] for each, count in times.get(one, {}).items()}
        if sig.kind == "contract":
            found |= {each for each, count in known.items() if count >= LEAST}
        elif sig.op.name == "window":
            times[number] = {
                each: count * sig.attributes[1] / sig.attributes[2] for each, count in known.items()
            }
        elif _moves_last_axis(graph, number) and all(count == 1 for count in known.values()):
            times[number] = {number: 1}
        elif sig.kind in ("move", "map", "cast") and known:
            times[number] = known
    return found


def _moves_last_axis(graph: Snapshot, number: int) -> bool:
    """Whether elements that lie side by side after a permutation did not before."""
    sig = graph.sigs[number]
    if sig.op.name != "permute":
        return False
    order = [axis for axis, size in zip(sig.attributes[0], sig.shape, strict=True) if size > 1]
    return bool(order) and order[-1] != max(order)
