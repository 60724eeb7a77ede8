"""How much a kernel does: the ops in it, the bytes it moves, and about how many operations it takes.

In: groups that share a kernel. Out: `Work`. Operations are additions, products and the like, a function
counts by its cost in the table; movement and loads are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..graph.snapshot import Snapshot
from .plan import Group


class Work(NamedTuple):
    """What a kernel does; `origin` is its main node, or -1 where passes made all of its nodes."""

    ops: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    operations: int
    origin: int

    def share(self, launches: int) -> Work:
        """The share of each of several launches."""
        return self._replace(
            bytes_read=self.bytes_read // launches,
            bytes_written=self.bytes_written // launches,
            operations=self.operations // launches,
        )


def work_of(graph: Snapshot, groups: Sequence[Group], count: int) -> Work:
    """The work of groups that share a kernel; the first `count` nodes are the user's."""
    sigs = graph.sigs
    inside = [each for group in groups for each in group.inside]
    reads = {each for group in groups for each in group.reads}
    writes = {each for group in groups for each in group.outputs}
    about = (groups[0].center, *groups[0].outputs, *reversed(inside))
    origins = [graph.origins.get(each, each) for each in about]
    return Work(
        tuple([sigs[each].op.name for each in inside]),
        _bytes_read(graph, inside, reads, writes),
        sum(sigs[each].nbytes for each in writes),
        sum(_operations(graph, each) for each in inside),
        next((each for each in origins if 0 <= each < count), -1),
    )


def _bytes_read(graph: Snapshot, inside: Sequence[int], reads: set[int], writes: set[int]) -> int:
    """Each value once, and of those that are sliced or gathered only the reachable part."""
    sigs = graph.sigs
    wanted: dict[int, int] = {}  # node → elements, at most
    for number in reversed(inside):
        sig = sigs[number]
        here = sig.size if number in writes else wanted.get(number, sig.size)
        for place, source in enumerate(graph.inputs[number]):
            whole = part = sigs[source].size
            if sig.kind in _BY_ELEMENT or (sig.kind == "gather" and place == 0):
                part = min(here, whole)
            elif sig.kind == "decode" and sig.size:
                part = -(-whole * here // sig.size)
            wanted[source] = min(whole, wanted.get(source, 0) + part)
    return sum(
        sigs[each].nbytes * wanted.get(each, sigs[each].size) // (sigs[each].size or 1) for each in reads
    )


def _operations(graph: Snapshot, number: int) -> int:
    count = _COUNTS.get(graph.sigs[number].kind)
    return 0 if count is None else count(graph, number)


def _read(graph: Snapshot, number: int, place: int = 0) -> tuple[int, ...]:
    shape: tuple[int, ...] = graph.sigs[graph.inputs[number][place]].shape
    return shape


def _product(graph: Snapshot, number: int) -> int:
    return 2 * graph.sigs[number].size * (_read(graph, number) or (1,))[-1]


def _attention(graph: Snapshot, number: int) -> int:
    """Scores of every query with every key, their softmax, and their product with the values."""
    queries, keys = _read(graph, number), _read(graph, number, 1)
    scores = math.prod(queries[:-1]) * keys[-2]
    return scores * (2 * queries[-1] + 2 * graph.sigs[number].shape[-1] + 5)


def _sort(graph: Snapshot, number: int) -> int:
    return graph.sigs[number].size * _rounds(_read(graph, number)[-1])


def _transform(graph: Snapshot, number: int) -> int:
    """Five operations per complex number and round; half as many for real ones."""
    sig = graph.sigs[number]
    if sig.op.name == "fft":
        reals, length = sig.shape, sig.shape[sig.attributes[2]]
    else:
        reals = _read(graph, number) if sig.op.name == "rfft" else sig.shape
        length = reals[-1]
    return 5 * math.prod(reals) * _rounds(length) // 2


def _rounds(length: int) -> int:
    """How often a line is halved until nothing is left to halve."""
    return max(1, (length - 1).bit_length())


_BY_ELEMENT = frozenset(
    {"map", "cast", "move"}
)  # an element of the result takes one of each operand, at most

# kind → operations of a node; others only move
_COUNTS: dict[str, Callable[[Snapshot, int], int]] = {
    "map": lambda graph, number: graph.sigs[number].size * graph.sigs[number].op.cost,
    "cast": lambda graph, number: graph.sigs[number].size,
    "reduce": lambda graph, number: math.prod(_read(graph, number)),
    "scan": lambda graph, number: graph.sigs[number].size,
    "decode": lambda graph, number: 2 * graph.sigs[number].size,
    "scatter": lambda graph, number: math.prod(_read(graph, number, -1)),
    "contract": _product,
    "attend": _attention,
    "sort": _sort,
    "fft": _transform,
}
