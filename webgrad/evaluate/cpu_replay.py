"""A captured plan of native code, run again and again: what stays from run to run is looked up once.

In: for each run the nodes of leaves and numbers. Out: the arrays of the plan's roots. Leaves that are
`apart`, such as weights, are expected to hold the same arrays as in the last run, which is all that is
seen to. The invariant: no array is kept alive; what is remembered of one is its address, which
counts for as long as a weak reference gives that very array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, call, is_
from typing import Any
from weakref import ref

from ..arrays import Array, np
from ..cpu.layout import NOTHING, Layout, Steady
from ..cpu.plan import CompiledPlan, contiguous
from ..graph.node import Node
from ..observing import observers
from ..runtime.addresses import address_of
from ..runtime.host_buffers import is_own, tick
from .evaluate import picker

__all__ = ["HostReplay"]

_storage_of: Callable[[Any], Any] = attrgetter("storage")
Watched = Callable[[list[Node], frozenset[int]], list[Array]]  # a run with observers, over all nodes


class HostReplay:
    """The runs of a captured plan, after its first."""

    def __init__(self, layout: Layout, pairs: Mapping[int, Any], watched: Watched) -> None:
        self._layout = layout
        self._watched = watched
        self.apart: Sequence[int] = layout.steady
        self._leaves, self._numbers = picker(layout.leaves), picker(layout.scalars)
        self._pairs = [at for at, each in enumerate(layout.leaves) if each in pairs]
        self._complex = [(at, pairs[each]) for at, each in enumerate(layout.roots) if each in pairs]
        self._kept: list[ref[Array]] = []
        self._addresses: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        plan: CompiledPlan,
        roots: Sequence[int],
        steady: Sequence[int],
        pairs: Mapping[int, Any],
        watched: Watched,
    ) -> HostReplay | None:
        """That of a plan, unless one of its roots is computed by nothing. `pairs` are complex values, with
        their dtypes: the plan has pairs of floats for them.
        """
        layout = plan.layout(steady=[each for each in steady if each not in pairs])
        return cls(layout, pairs, watched) if layout.roots == [*roots] else None

    def run(self, nodes: list[Node], donated: frozenset[int], apart: Sequence[Node] = ()) -> list[Array]:
        """The arrays of the roots; `apart` are the nodes of those leaves."""
        if observers():
            nodes = nodes.copy()  # the caller's has no weights in it
            for at, node in zip(self.apart, apart, strict=True):
                nodes[at] = node
            return self._watched(nodes, donated)
        tick()
        leaves = list(map(_storage_of, self._leaves(nodes)))
        for at in self._pairs:
            leaves[at] = leaves[at][..., None].view(leaves[at].real.dtype)
        donated = self._ready(leaves, donated)
        numbers = list(map(_storage_of, self._numbers(nodes)))
        steady = self._steady(apart) if apart else NOTHING
        found = self._layout.run(leaves, numbers, donated, steady)
        for at, dtype in self._complex:
            found[at] = found[at].view(dtype)[..., 0]
        return found

    def _ready(self, leaves: list[Array], donated: frozenset[int]) -> frozenset[int]:
        """Have leaves be plain and contiguous; which donated ones nobody else reaches."""
        for at, array in enumerate(leaves):
            if array.__class__ is not np.ndarray or not array.flags.c_contiguous:
                leaves[at] = contiguous(array)
        if not donated:
            return donated
        pairs = zip(self._layout.leaves, leaves, strict=True)
        return frozenset([leaf for leaf, array in pairs if leaf in donated and is_own(array)])

    def _steady(self, nodes: Sequence[Node]) -> Steady:
        arrays = list(map(_storage_of, nodes))
        if not self._kept or not all(map(is_, arrays, map(call, self._kept))):
            arrays = list(map(contiguous, arrays))
            self._kept = list(map(ref, arrays))
            self._addresses = tuple(map(address_of, arrays))
        return Steady(arrays, self._addresses)
