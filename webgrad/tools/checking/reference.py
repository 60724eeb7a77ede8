"""The reference for parts of a graph: values and bounds of some nodes, from those that are known.

In: a graph, known values, and the nodes that are wanted. Out: a `Bounded` for each. The invariants: nothing
is kept longer than it is needed, and what would not fit the host's memory is refused before it is begun.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from ...arrays import np
from ...graph.node import Signature
from ...graph.snapshot import Snapshot
from ...runtime.host import memory_bytes
from .bounds import bounded
from .rounding import Bounded

__all__ = ["TooLarge", "between", "referred"]

SHARE = 4  # of the machine's memory a reference may take a quarter
BYTES = 40  # that an element takes: its value, its bound, and what is computed on the way to them


class TooLarge(Exception):
    """The values between known ones and wanted ones do not fit the host's memory."""


def between(graph: Snapshot, wanted: Sequence[int], known: Container[int]) -> list[int]:
    """The nodes to compute for the wanted ones, inputs first; known ones are not looked behind."""
    order: list[int] = []
    seen: set[int] = set()
    stack = list(reversed(wanted))
    while stack:
        number = stack[-1]
        if number in seen:
            stack.pop()
            continue
        waiting = [each for each in graph.inputs[number] if each not in seen and each not in known]
        if waiting:
            stack += reversed(waiting)
        else:
            seen.add(number)
            order.append(number)
            stack.pop()
    return order


def referred(
    graph: Snapshot, wanted: Sequence[int], known: Mapping[int, Bounded]
) -> Iterator[tuple[int, Bounded]]:
    """Every node between known and wanted ones, inputs first, with its value: gone when nobody needs it."""
    order = between(graph, wanted, known)
    last = {each: at for at, number in enumerate(order) for each in graph.inputs[number]}
    _check_room(graph, order, last, wanted)
    values: dict[int, Bounded] = {}
    for at, number in enumerate(order):
        inputs = [known[each] if each in known else values[each] for each in graph.inputs[number]]
        if graph.sigs[number].op.name == "bitcast":
            inputs = [_stored(inputs[0], graph.sigs[graph.inputs[number][0]])]
        values[number] = bounded(graph.sigs[number], inputs)
        yield number, values[number]
        for each in (*graph.inputs[number], number):
            if last.get(each, at) <= at:
                values.pop(each, None)


def _stored(x: Bounded, sig: Signature) -> Bounded:
    """A value as it lies in memory, whose bits are asked for; floats are computed in float64."""
    if x.value.dtype == sig.dtype.numpy or (x.error is not None and x.error.any() and sig.dtype.itemsize > 2):
        return x  # bits of what was rounded are found by its ends
    with np.errstate(all="ignore"):
        return Bounded(x.value.astype(sig.dtype.numpy), x.error)


def _check_room(
    graph: Snapshot, order: Sequence[int], last: Mapping[int, int], wanted: Sequence[int]
) -> None:
    most = (memory_bytes() or 8 << 30) // SHARE
    live: dict[int, int] = {}
    for at, number in enumerate(order):
        sig = graph.sigs[number]
        live[number] = 0 if sig.op.name == "expand" else BYTES * sig.size
        if sum(live.values()) > most:
            raise TooLarge
        for each in (*graph.inputs[number], number):
            if last.get(each, at) <= at:
                live.pop(each, None)
