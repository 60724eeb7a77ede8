"""Plans for the cpu, as `evaluate` runs them: from nodes to their arrays.

In: a graph; then, for each run, the nodes. Out: arrays for the roots, and for stored values that someone
holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..arrays import Array
from ..config import settings
from ..cpu.compiled import CompiledPlan
from ..cpu.execute import CpuPlan
from ..device_profile import CPU_PROFILE
from ..errors import OutOfMemoryError
from ..graph.node import Node
from ..graph.snapshot import Snapshot
from ..lower.threads import name_of
from ..native.compiler import is_available
from ..observing import Note, observers, stage
from ..runtime.host import memory_bytes
from ..runtime.host_buffers import is_own
from ..runtime.stats import readable_bytes
from ..schedule.cpu_passes import CPU_PASSES, NATIVE_PASSES
from ..schedule.plan import Group, Schedule
from ..schedule.schedule import schedule
from ..schedule.work import work_of
from .cpu_replay import HostReplay

MUCH = 1 << 24  # elements that all nodes of a graph have, from which compiling it costs less than NumPy
LARGE = 1 << 16  # weights
AnyPlan = CompiledPlan | CpuPlan


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
    """A graph on the cpu: by NumPy while that is quicker than compiling, then by native code.

    A graph that is captured, or much work, is compiled at once. Another one is computed by NumPy; if the
    option says so, only the first two times, and compiled beside the program meanwhile.
    """

    def __init__(self, graph: Snapshot, device: Any, *, captured: bool = False) -> None:
        self._count = len(graph)
        self.leaves = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
        self.scalars = [at for at, sig in enumerate(graph.sigs) if sig.kind == "scalar"]
        self._complex = {at: sig.dtype.numpy for at, sig in enumerate(graph.sigs) if sig.dtype.kind == "c"}
        self.device = device
        self.stored: tuple[int, ...] = graph.roots
        self._runs = 0
        self._waiting: Snapshot | None = None  # to be compiled, if it is seen again
        self._compiled: tuple[Schedule, CompiledPlan] | None = None
        option = settings().compile
        at_once = captured or option == "always" or _work(graph) >= MUCH
        may = is_available() and not _has_stored_weights(graph)
        native = at_once and may
        if option == "repeated" and may and not native:
            self._waiting = graph.copy()
        self.plan: AnyPlan = self._planned(graph, native)

    def _planned(self, graph: Snapshot, native: bool) -> AnyPlan:
        """The plan of the first run."""
        with stage("schedule"):
            made = schedule(graph, CPU_PROFILE, NATIVE_PASSES if native else CPU_PASSES)
        outputs = {each for group in made.groups for each in group.outputs}
        graph.roots = tuple(dict.fromkeys([*graph.roots, *sorted(outputs & graph.held)]))
        self.stored = graph.roots
        _check_room(graph)
        return self._lowered(made, CompiledPlan if native else CpuPlan)

    def _lowered(self, made: Schedule, make: Callable[[Schedule], AnyPlan]) -> AnyPlan:
        with stage("lower"):
            plan = make(made)
        self._about = [_about(made.graph, group, self._count) for group in made.groups]
        for each in observers():
            each.planned(self.device, made, ())
        return plan

    def _compile(self, graph: Snapshot) -> None:
        """Ask for native code at the second run, and go on to it at the third, however long it takes: results
        depend on how often a graph was seen, not on the time.
        """
        if self._compiled is None:
            graph.roots = self.stored
            with stage("schedule"):
                made = schedule(graph, CPU_PROFILE, NATIVE_PASSES)
            with stage("lower"):
                self._compiled = made, CompiledPlan(made)
        else:
            made, plan = self._compiled
            self.plan = self._lowered(made, lambda _: plan)
            self._waiting = self._compiled = None

    apart: Sequence[int] = ()

    def record(self, steady: Sequence[int] = ()) -> HostPlan | HostReplay:
        """The plan with as little to do in a run as may be: native code's, that computes every root."""
        if not isinstance(self.plan, CompiledPlan) or self._waiting is not None:
            return self
        return HostReplay.of(self.plan, self.stored, steady, self._complex, self.run) or self

    def run(
        self, nodes: list[Node], donated: frozenset[int] = frozenset(), apart: Sequence[Node] = ()
    ) -> list[Any]:
        """The arrays of `stored`."""
        self._runs += 1
        if self._waiting is not None and self._runs > 1:
            self._compile(self._waiting)
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


def _has_stored_weights(graph: Snapshot) -> bool:
    """Whether weights are read as a model's file stores them: quantised, or as half floats. Steps over them
    are most of the work, and are quicker one after another than between calls of native code.
    """
    for sig, inputs in zip(graph.sigs, graph.inputs, strict=True):
        if sig.kind == "decode":
            return True
        source = graph.sigs[inputs[0]] if sig.op.name == "cast" else None
        if source is not None and source.kind == "leaf" and source.dtype.is_half and sig.size >= LARGE:
            return True
    return False


def _work(graph: Snapshot) -> int:
    """The elements that are computed, roughly."""
    total = 0
    for each in graph.order():
        if graph.sigs[each].kind not in ("move", "leaf", "scalar"):
            total += max(graph.sigs[one].size for one in (each, *graph.inputs[each]))
    return total


def _about(graph: Snapshot, group: Group, count: int) -> tuple[Note, int]:
    """What a group is about, for those who watch, and the node it is about."""
    ops, read, written, operations, origin = work_of(graph, [group], count)
    return Note(name_of(graph, group), ops, None, read, written, operations), origin
