"""The reference: every node by NumPy, one after another, with nothing fused.

In: nodes, or a `Snapshot` without complex dtypes. Out: NumPy arrays. It computes what is seen for the first
time, everything where there is no compiler, and what tests compare with. The invariants: inputs are never
written to; every result is a contiguous array of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any, NamedTuple

from ..arrays import Array, np
from ..graph.node import Node
from ..graph.snapshot import Snapshot
from ..graph.walk import pending
from ..runtime.host_buffers import is_own
from .functions import host_function, value_of

__all__ = ["ReferencePlan", "compute", "value_of"]


class _Step(NamedTuple):
    """A node to compute, and the values that nobody needs afterwards."""

    node: int
    inputs: tuple[int, ...]
    compute: Callable[..., Array]
    ends: tuple[int, ...]


class ReferencePlan:
    """A graph, node by node."""

    def __init__(self, graph: Snapshot) -> None:
        self._roots = graph.roots
        self._sigs = graph.sigs
        nodes = graph.order()
        order = [each for each in nodes if graph.sigs[each].kind not in ("leaf", "scalar")]
        numbers = [
            each for each in nodes if graph.sigs[each].kind == "scalar" and graph.sigs[each].attributes
        ]
        self._numbers = {each: graph.sigs[each].attributes[0] for each in numbers}
        last = {each: at for at, node in enumerate(order) for each in (*graph.inputs[node], node)}
        kept = set(graph.roots)
        ends: dict[int, list[int]] = {}
        for each, at in last.items():
            if each not in kept:
                ends.setdefault(at, []).append(each)
        self._steps = [
            _Step(each, graph.inputs[each], host_function(graph.sigs[each]).compute, tuple(ends.get(at, ())))
            for at, each in enumerate(order)
        ]

    @property
    def nodes(self) -> list[int]:
        """What is computed, in order."""
        return [step.node for step in self._steps]

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
        arrays = dict(values)
        for each, number in (self._numbers | dict(scalars)).items():
            arrays[each] = np.array(number, self._sigs[each].dtype.numpy)
        for at, step in enumerate(self._steps):
            began = 0 if tell is None else perf_counter_ns()
            arrays[step.node] = step.compute(*[arrays[each] for each in step.inputs])
            if tell is not None:
                tell(at, began, perf_counter_ns())
            for each in step.ends:
                del arrays[each]
        return self._results(arrays, values)

    def _results(self, arrays: Mapping[int, Array], values: Mapping[int, Array]) -> dict[int, Array]:
        """Arrays that share memory with nothing else; leaves stay what they are."""
        found: dict[int, Array] = {}
        taken: set[int] = {id(each) for each in values.values()}
        for root in self._roots:
            array = arrays[root]
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
