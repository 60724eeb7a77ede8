"""Slices and pads that begin where a run says: x[i] of another i is the same plan.

In: a `Snapshot`, and the forms of the movement that begins elsewhere in other runs. Out: the same graph with
gathers in the place of that movement, and the `Place`s whose values a run supplies, as scalars that come next
after the graph's own nodes. Where movement begins at one place only, it stays what it is: numbers that are
known make better kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from .. import dtypes
from ..graph.node import Node, signature
from ..graph.op import SCALAR
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE

__all__ = ["Place", "begin_anywhere", "numbers_at"]


class Place(NamedTuple):
    """Where a node begins along an axis: a slice in its input, or a pad's input in the pad."""

    node: int
    axis: int


def numbers_at(places: Sequence[Place], nodes: Sequence[Node]) -> list[int]:
    """The values of places in a graph."""
    return [nodes[node].sig.attributes[0][axis][0] for node, axis in places]


def begin_anywhere(graph: Snapshot, forms: Collection[int]) -> list[Place]:
    """Rewrite the movement of some forms in place; gives the places that are numbers of a run."""
    places = [
        Place(node, axis)
        for node, sig in enumerate(graph.sigs)
        if sig.op.form is not None
        and sig.form in forms
        and node not in graph.origins  # what is in a composite begins where it does
        and graph.sigs[graph.inputs[node][0]].size
        for axis, (size, whole) in enumerate(
            zip(sig.shape, graph.sigs[graph.inputs[node][0]].shape, strict=True)
        )
        if size != whole
    ]
    device = graph.sigs[0].device
    starts = [graph.add(signature(SCALAR, (), dtypes.int32, device), ()) for _ in places]
    own: dict[int, dict[int, int]] = {}
    for (node, axis), start in zip(places, starts, strict=True):
        own.setdefault(node, {})[axis] = start
    for node, axes in own.items():
        graph.replace(node, (_sliced if graph.sigs[node].op.name == "slice" else _padded)(graph, node, axes))
    for added in range(starts[0], len(graph)) if starts else ():
        graph.origins.setdefault(added, next(iter(own)))
    return places


def _map(graph: Snapshot, name: str, *inputs: int) -> int:
    return graph.make(TABLE[name], inputs)


def _counted(graph: Snapshot, length: int, device: Any) -> int:
    """0, 1, 2, …"""
    return graph.add(signature(TABLE["iota"], (length,), dtypes.int32, device), ())


def _sliced(graph: Snapshot, node: int, starts: dict[int, int]) -> int:
    """A slice: the elements that are so far from where it starts."""
    sig, (found,) = graph.sigs[node], graph.inputs[node]
    for axis, start in starts.items():
        count, step = sig.shape[axis], sig.attributes[0][axis][2]
        if count == 1:
            index = graph.make(TABLE["reshape"], (start,), ((1,),))
        else:
            index = _counted(graph, count, sig.device)
            if step != 1:
                index = _map(graph, "multiply", index, graph.number(step, dtypes.int32, sig.device))
            index = _map(graph, "add", index, start)
        found = graph.make(TABLE["take"], (found, index), (axis,))
    rest = tuple(
        (0, size, 1) if axis in starts else span
        for axis, (span, size) in enumerate(zip(sig.attributes[0], graph.sigs[found].shape, strict=True))
    )
    return graph.make(TABLE["slice"], (found,), (rest,))


def _padded(graph: Snapshot, node: int, starts: dict[int, int]) -> int:
    """A pad: what it pads is taken at all places, and put where there are such."""
    sig, (found, filler) = graph.sigs[node], graph.inputs[node]
    rank = len(sig.shape)
    for axis, start in starts.items():
        size = graph.sigs[found].shape[axis]
        at = _map(graph, "subtract", _counted(graph, sig.shape[axis], sig.device), start)
        zero, last = (graph.number(each, dtypes.int32, sig.device) for each in (0, size - 1))
        inside = (
            _map(graph, "equal", at, zero)
            if size == 1
            else _map(
                graph,
                "logical_and",
                _map(graph, "greater_equal", at, zero),
                _map(graph, "less_equal", at, last),
            )
        )
        shape = tuple([sig.shape[axis] if each == axis else 1 for each in range(rank)])
        marks = graph.make(TABLE["reshape"], (inside,), (shape,))
        taken = found if size == 1 else graph.make(TABLE["take"], (found, at), (axis,))
        found = _map(graph, "where", marks, taken, filler)
    return found
