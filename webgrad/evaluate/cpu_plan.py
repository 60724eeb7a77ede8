"""Plans for the cpu, as `evaluate` runs them: from nodes to their arrays.

In: a graph; then, for each run, the nodes. Out: arrays for the roots, and for stored values that someone
holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..arrays import Array
from ..cpu.execute import CpuPlan
from ..cpu.memory import is_own
from ..device_profile import CPU_PROFILE
from ..errors import OutOfMemoryError
from ..graph.node import Node
from ..graph.snapshot import Snapshot
from ..lower.threads import name_of
from ..observing import Note, observers, stage
from ..runtime.host import memory_bytes
from ..runtime.stats import readable_bytes
from ..schedule.cpu_passes import CPU_PASSES
from ..schedule.plan import Group
from ..schedule.schedule import schedule
from ..schedule.work import work_of


def _check_room(graph: Snapshot) -> None:
    """Refuse results that the machine's memory cannot hold: systems grant more than there is, and stall."""
    needed = sum(graph.sigs[each].nbytes for each in graph.roots)
    memory = memory_bytes()
    if memory and needed > memory:
        error = OutOfMemoryError(
            f"results of {readable_bytes(needed)} are more than this machine's memory, "
            f"{readable_bytes(memory)}: work in smaller parts"
        )
        error.value = max(graph.roots, key=lambda each: graph.sigs[each].nbytes)  # type: ignore[attr-defined]
        raise error


def _floats(array: Array) -> Array:
    """Complex numbers as the pairs of floats that plans compute with."""
    return array[..., None].view(array.real.dtype) if array.dtype.kind == "c" else array


def _as_stored(node: Node, array: Array) -> Array:
    """Pairs of floats as complex numbers, where a node has those."""
    sig = node.sig
    return array.view(sig.dtype.numpy)[..., 0] if sig.dtype.kind == "c" else array


class HostPlan:
    """A graph by NumPy."""

    def __init__(self, graph: Snapshot, device: Any) -> None:
        count = len(graph)
        self.leaves = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
        self.scalars = [at for at, sig in enumerate(graph.sigs) if sig.kind == "scalar"]
        with stage("schedule"):
            made = schedule(graph, CPU_PROFILE, CPU_PASSES)
        outputs = {each for group in made.groups for each in group.outputs}
        graph.roots = tuple(dict.fromkeys([*graph.roots, *sorted(outputs & graph.held)]))
        self.stored = graph.roots
        _check_room(graph)
        with stage("lower"):
            self.plan = CpuPlan(made)
        self._about = [_about(graph, group, count) for group in made.groups]
        self.device = device
        for each in observers():
            each.planned(device, made, ())

    def record(self) -> HostPlan:
        """Itself: there is nothing to record."""
        return self

    def run(self, nodes: list[Node], donated: frozenset[int] = frozenset()) -> list[Any]:
        """The arrays of `stored`."""
        leaves = {at: _floats(nodes[at].storage) for at in self.leaves}
        scalars = {at: nodes[at].storage for at in self.scalars}
        free = frozenset(at for at in donated if is_own(leaves[at]))
        found = self.plan.run(leaves, scalars, free, self._tell(nodes) if observers() else None)
        return [_as_stored(nodes[each], found[each]) for each in self.stored]

    def _tell(self, nodes: list[Node]) -> Callable[[int, int, int], None]:
        """Has those who watch told of each group's time."""

        def tell(group: int, began: int, ended: int) -> None:
            note, origin = self._about[group]
            if origin >= 0:
                note = replace(note, where=nodes[origin].where)
            for each in observers():
                each.computed(self.device, note, began, ended)

        return tell


def _about(graph: Snapshot, group: Group, count: int) -> tuple[Note, int]:
    """What a group is about, for those who watch, and the node it is about."""
    ops, read, written, operations, origin = work_of(graph, [group], count)
    return Note(name_of(graph, group), ops, None, read, written, operations), origin
