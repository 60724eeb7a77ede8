"""Padding that windows overlap on: it is stored, so that what reads an element again and again has no bounds.

In: a graph. Out: the `pad` nodes to store: each of their elements is in many windows that a fold goes over.
Products copy windows anyway, and find the bounds of whole runs.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot

LEAST = 16  # elements of a window: fewer are guarded for less than the copy takes
LEAST_OF_LONG = 8  # the same in folds of at least so many terms, which go along the windows:
LONG = 256


def windowed_pads(graph: Snapshot) -> set[int]:
    """The pads whose elements are in many windows."""
    found: set[int] = set()
    windows: dict[int, dict[int, int]] = {}  # node → pads that it moves, and elements of their windows
    for number in graph.order():
        sig, inputs = graph.sigs[number], graph.inputs[number]
        known = {pad: count for each in inputs for pad, count in windows.get(each, {}).items()}
        if sig.op.name == "pad":
            windows[number] = {number: 1}
        elif sig.op.name == "window":
            windows[number] = {pad: count * sig.attributes[1] for pad, count in known.items()}
        elif sig.kind in ("move", "map", "cast") and known:
            windows[number] = known
        elif sig.kind == "reduce":
            terms = graph.sigs[inputs[0]].size // max(sig.size, 1)
            least = LEAST_OF_LONG if terms >= LONG else LEAST
            found |= {pad for pad, count in known.items() if count >= least}
    return found
