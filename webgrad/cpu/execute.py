"""The cpu's plans: a schedule as a list of steps, made once and run again and again.

In: a `Schedule`. Out: `run` gives the arrays of the graph's roots from those of its leaves. The invariants:
inputs are never written to, but for those given for it; every result is a contiguous array of its own;
several threads may run one plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from time import perf_counter_ns
from typing import Any

from ..arrays import Array, np
from ..runtime.host_buffers import Buffers, tick
from ..schedule.plan import Schedule
from .assembly import Assembly
from .groups import add_group

__all__ = ["CpuPlan"]

LONG = 1 << 13  # elements of a value from which it pays to tell NumPy how to go through it


class CpuPlan:
    """A schedule for NumPy. Make schedules for it with `schedule(graph, CPU_PROFILE, CPU_PASSES)`."""

    def __init__(self, schedule: Schedule) -> None:
        graph = schedule.graph
        assembly = Assembly(graph)
        main = assembly.main
        self._leaves: list[tuple[int, int]] = []  # node, value
        self._scalars: list[tuple[int, int, np.dtype[Any]]] = []
        for node in graph.order():
            sig = graph.sigs[node]
            if sig.kind == "leaf":
                self._leaves.append((node, main.declare(node, narrow=True)))
            elif sig.kind == "scalar":
                self._scalars.append((node, main.declare(node, narrow=True), sig.dtype.numpy))
        for number, group in enumerate(schedule.groups):
            assembly.group = number
            add_group(assembly, group)
        self._roots = [(node, main.value(node, narrow=True)) for node in graph.roots]
        self._runs, self._groups = assembly.finish({value for _, value in self._roots})
        self._blank: list[Any] = [None] * len(main.values)
        self._calm = Buffers if any(sig.size >= LONG for sig in graph.sigs) else nullcontext

    def run(
        self,
        values: Mapping[int, Array],
        scalars: Mapping[int, object],
        donated: frozenset[int] = frozenset(),
        tell: Callable[[int, int, int], None] | None = None,
    ) -> dict[int, Array]:
        """The roots' arrays from the leaves' arrays and the scalars' numbers.

        Leaves that are `donated` may be written to, and be results. `tell` hears when which group was
        computed, in nanoseconds.
        """
        tick()
        slots = self._blank.copy()
        for node, slot in self._leaves:
            slots[slot] = values[node]
        slots.append({slot for node, slot in self._leaves if node in donated} if donated else donated)
        for node, slot, dtype in self._scalars:
            slots[slot] = np.array(scalars[node], dtype)
        with np.errstate(all="ignore"), self._calm():
            if tell is None:
                for run in self._runs:
                    run(slots)
            else:
                self._run_told(slots, tell)
        return {node: slots[slot] for node, slot in self._roots}

    def _run_told(self, slots: list[Any], tell: Callable[[int, int, int], None]) -> None:
        began = perf_counter_ns()
        for run, group, after in zip(self._runs, self._groups, [*self._groups[1:], -1], strict=True):
            run(slots)
            if group != after:
                ended = perf_counter_ns()
                tell(group, began, ended)
                began = perf_counter_ns()
