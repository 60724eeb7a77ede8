"""The reference: every node by NumPy, one after another, with nothing fused.

In: nodes, or a `Snapshot` without complex dtypes. Out: NumPy arrays. It computes what is seen for the first
time, everything where there is no compiler, and what tests compare with. The invariants: inputs are never
written to; every result is a contiguous array of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

from ..arrays import Array, np
from ..graph.node import Node
from ..graph.snapshot import Snapshot
from ..graph.walk import pending
from ..runtime.host_buffers import is_own
from .functions import functions_for, value_of

__all__ = ["ReferencePlan", "compute", "value_of"]

LARGE = 1 << 12  # bytes of a value that is let go after its last reader; smaller ones stay to the end


class ReferencePlan:
    """A graph, node by node. Making one costs little: most graphs that come here are seen once."""

    def __init__(self, graph: Snapshot, order: Sequence[int] | None = None) -> None:
        """`order` are the nodes, inputs first, where that is known."""
        self._graph = graph
        self._roots = graph.roots
        sigs = graph.sigs
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
        inputs, sigs, kept = self._graph.inputs, self._graph.sigs, frozenset(self._roots)
        last = {each: node for node in self.nodes for each in inputs[node]}
        ends: dict[int, list[int]] = {}
        for each, node in last.items():
            if sigs[each].nbytes >= LARGE and each not in kept:
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
        sigs, inputs, ends = self._graph.sigs, self._graph.inputs, self._ends
        functions = functions_for(sigs)
        arrays: list[Any] = [None] * len(sigs)
        for each, value in values.items():
            arrays[each] = value
        for numbers in (self._numbers, scalars):
            for each, number in numbers.items():
                arrays[each] = np.array(number, sigs[each].dtype.numpy)
        with np.errstate(all="ignore"):
            for at, node in enumerate(self.nodes):
                began = 0 if tell is None else perf_counter_ns()
                arrays[node] = functions[sigs[node]](*[arrays[each] for each in inputs[node]])
                if tell is not None:
                    tell(at, began, perf_counter_ns())
                if node in ends:
                    for each in ends[node]:
                        arrays[each] = None
        return self._results(arrays, values)

    def _results(self, arrays: Sequence[Any], values: Mapping[int, Array]) -> dict[int, Array]:
        """Arrays that share memory with nothing else; leaves stay what they are."""
        found: dict[int, Array] = {}
        taken: set[int] = {id(each) for each in values.values()}
        for root in self._roots:
            array = arrays[root]
            if array.__class__ is not np.ndarray:
                array = np.asarray(array)  # NumPy's sum of a line, for one, is no array
            if root not in values and (id(array) in taken or not is_own(array)):
                array = np.array(array, order="C")
            taken.add(id(array))
            found[root] = array
        return found


def compute(roots: list[Node]) -> list[Array]:
    """The values of nodes on the cpu."""
    values: dict[int, Array] = {}
    for node in pending(roots):
        if node.storage is not None:
            values[id(node)] = np.asarray(node.storage, node.sig.dtype.numpy)
        else:
            values[id(node)] = value_of(node.sig, [values[id(each)] for each in node.inputs])
    return [values[id(each)] for each in roots]
