"""The reference: every node by NumPy, one after another, with nothing fused.

In: nodes, or a `Snapshot`. Out: NumPy arrays. It computes what is seen for the first
time, everything where there is no compiler, and what tests compare with. The invariants: inputs are never
written to; every result is a contiguous array of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

from ..arrays import Array, np
from ..graph.node import Node, Signature
from ..graph.snapshot import Snapshot, snapshot, walk
from ..runtime.host_buffers import is_own
from .functions import functions_for, value_of

__all__ = ["ReferencePlan", "compute", "value_of"]

LARGE = 1 << 12  # bytes of a value that is let go after its last reader; smaller ones stay to the end


class ReferencePlan:
    """A graph, node by node. Making one costs little: most graphs that come here are seen once."""

    def __init__(self, graph: Snapshot, order: Sequence[int] | None = None) -> None:
        """`order` are the nodes, inputs first, where that is known."""
        self._inputs = graph.inputs
        self._roots = graph.roots
        self._sigs = sigs = graph.sigs
        order = graph.order() if order is None else order
        self.nodes = [each for each in order if sigs[each].kind not in ("leaf", "scalar")]
        self._numbers = {
            each: sigs[each].attributes[0]
            for each in order
            if sigs[each].kind == "scalar" and sigs[each].attributes
        }
        self._ends = self._last_reads()

    def _last_reads(self) -> dict[int, list[int]]:
        """The large values that nobody needs after a node."""
        ends: dict[int, list[int]] = {}
        large = {at for at, sig in enumerate(self._sigs) if sig.nbytes >= LARGE}.difference(self._roots)
        if large:
            last = {each: node for node in self.nodes for each in self._inputs[node] if each in large}
            for each, node in last.items():
                ends.setdefault(node, []).append(each)
        return ends

    def run(
        self,
        values: Mapping[int, Array],
        scalars: Mapping[int, Any],
        donated: frozenset[int] = frozenset(),
        tell: Callable[[int, int, int], None] | None = None,
    ) -> dict[int, Array]:
        """The roots' arrays from the leaves' arrays and the scalars' numbers. `tell` hears when which node
        was computed, in nanoseconds.
        """
        arrays: list[Any] = [None] * len(self._sigs)
        for each, value in (*values.items(), *scalars.items()):
            arrays[each] = value
        return dict(zip(self._roots, self.compute(arrays, [*scalars], tell=tell), strict=True))

    def compute(
        self,
        arrays: list[Any],
        numbers: Sequence[int],
        sigs: Sequence[Signature] | None = None,
        tell: Callable[[int, int, int], None] | None = None,
    ) -> list[Array]:
        """The same from a list that has the leaves' arrays and the scalars' numbers, and is filled up.
        `numbers` are the scalars; `sigs` are the nodes', where slices begin at other places than the graph's.
        """
        sigs = self._sigs if sigs is None else sigs
        inputs, ends = self._inputs, self._ends
        functions = functions_for(sigs)
        leaves = [each for each in arrays if each is not None]
        for each, number in self._numbers.items():
            arrays[each] = np.array(number, sigs[each].dtype.numpy)
        for each in numbers:
            arrays[each] = np.array(arrays[each], sigs[each].dtype.numpy)
        with np.errstate(all="ignore"):
            for at, node in enumerate(self.nodes):
                began = 0 if tell is None else perf_counter_ns()
                arrays[node] = functions[sigs[node]](*[arrays[each] for each in inputs[node]])
                if tell is not None:
                    tell(at, began, perf_counter_ns())
                if node in ends:
                    for each in ends[node]:
                        arrays[each] = None
        return self._results(arrays, {id(each) for each in leaves})

    def _results(self, arrays: Sequence[Any], taken: set[int]) -> list[Array]:
        """Arrays that share memory with nothing else; leaves stay what they are."""
        found: list[Array] = []
        for root in self._roots:
            array = arrays[root]
            if array.__class__ is not np.ndarray:
                array = np.asarray(array)  # NumPy's sum of a line, for one, is no array
            if self._sigs[root].kind != "leaf" and (id(array) in taken or not is_own(array)):
                array = np.array(array, order="C")
            taken.add(id(array))
            found.append(array)
        return found


def compute(roots: list[Node]) -> list[Array]:
    """The values of nodes on the cpu."""
    walked = walk(roots)
    graph = snapshot(walked, roots)
    plan = ReferencePlan(graph)
    arrays: list[Any] = [each.storage for each in walked.nodes]
    arrays += [None] * (len(graph) - len(arrays))
    for at, sig in enumerate(graph.sigs):
        if sig.kind == "leaf":
            arrays[at] = np.asarray(arrays[at], sig.dtype.numpy)
    return plan.compute(arrays, [at for at, sig in enumerate(graph.sigs) if sig.kind == "scalar"])
