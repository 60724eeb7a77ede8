"""Plans for the cpu, as `evaluate` runs them: from nodes to their arrays.

In: a graph; then, for each run, the nodes. Out: arrays for the roots, and for stored values that someone
holds. A graph that is seen for the first time is computed node by node, unless it is much work; what is seen
again is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from ..arrays import Array
from ..config import settings
from ..cpu.plan import CompiledPlan
from ..device_profile import CPU_PROFILE
from ..errors import OutOfMemoryError
from ..graph.node import Node
from ..graph.snapshot import Snapshot
from ..lower.threads import name_of
from ..native.compiler import is_available
from ..observing import Note, observers, stage
from ..reference.plan import ReferencePlan
from ..runtime.host import memory_bytes
from ..runtime.host_buffers import is_own
from ..runtime.stats import readable_bytes
from ..schedule.cpu_passes import CPU_PASSES
from ..schedule.pairs import split_pairs
from ..schedule.plan import Group, GroupKind, Schedule
from ..schedule.schedule import schedule
from ..schedule.work import work_of
from .cpu_replay import HostReplay

MUCH = 1 << 24  # elements that all nodes of a graph have, from which compiling it costs less than NumPy


class HostPlan:
    """A graph on the cpu.

    One that is captured, or much work, is compiled at once. Another one is computed by NumPy, node by node,
    the first two times, and compiled beside the program meanwhile, if the option does not say otherwise.
    """

    def __init__(self, graph: Snapshot, device: Any, *, captured: bool = False) -> None:
        self._count = graph.count
        self.leaves = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
        self.scalars = [at for at, sig in enumerate(graph.sigs) if sig.kind == "scalar"]
        self._complex = {at: sig.dtype.numpy for at, sig in enumerate(graph.sigs) if sig.dtype.kind == "c"}
        self.device = device
        self._runs = 0
        self._waiting: Snapshot | None = None  # to be compiled, if it is seen again
        self._compiled: tuple[Schedule, CompiledPlan] | None = None
        option = settings().compile
        at_once = captured or option == "always" or _work(graph) >= MUCH
        if at_once and is_available():
            self.plan: ReferencePlan | CompiledPlan = self._natively(graph)
        else:
            if option == "repeated" and is_available():
                self._waiting = graph.copy()
            self.plan = self._by_reference(graph)
        self.stored: tuple[int, ...] = graph.roots

    def _natively(self, graph: Snapshot) -> CompiledPlan:
        with stage("schedule"):
            made = schedule(graph, CPU_PROFILE, CPU_PASSES)
        outputs = {each for group in made.groups for each in group.outputs}
        _store(graph, sorted(outputs & graph.held))
        _check_room(graph, graph.roots)
        with stage("lower"):
            plan = CompiledPlan(made)
        self._announce(made)
        return plan

    def _by_reference(self, graph: Snapshot) -> ReferencePlan:
        """A plan that keeps all computed values that someone holds."""
        with stage("schedule"):
            split_pairs(graph)
            _store(graph, sorted(each for each in graph.held if graph.sigs[each].kind != "move"))
            plan = ReferencePlan(graph)
        _check_room(graph, plan.nodes)
        groups = tuple([_alone(graph, each) for each in plan.nodes] if observers() else ())
        self._announce(Schedule(graph, groups, tuple([(at,) for at in range(len(groups))])))
        return plan

    def _announce(self, made: Schedule) -> None:
        """Tell those who watch of a plan, and keep what to tell them of its runs."""
        self._about = [_about(made.graph, group, self._count) for group in made.groups]
        for each in observers():
            each.planned(self.device, made, ())

    def _compile(self, graph: Snapshot) -> None:
        """Ask for native code at the second run, and go on to it at the third, however long it takes: results
        depend on how often a graph was seen, not on the time.
        """
        if self._compiled is None:
            graph.roots = self.stored
            with stage("schedule"):
                made = schedule(graph, CPU_PROFILE, CPU_PASSES)
            with stage("lower"):
                self._compiled = made, CompiledPlan(made)
        else:
            made, self.plan = self._compiled
            self._announce(made)
            self._waiting = self._compiled = None

    apart: Sequence[int] = ()

    def record(self, steady: Sequence[int] = ()) -> HostPlan | HostReplay:
        """The plan with as little to do in a run as may be: native code's, that computes every root."""
        if isinstance(self.plan, ReferencePlan) or self._waiting is not None:
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
            if group >= len(self._about):  # of a plan that was made before they watched
                return
            note, origin = self._about[group]
            if not note.ops:  # only movement, of a view
                return
            if origin >= 0:
                note = replace(note, where=nodes[origin].where)
            for each in observers():
                each.computed(self.device, note, began, ended)

        return tell


def _store(graph: Snapshot, held: list[int]) -> None:
    """Let a plan give these values, too."""
    graph.roots = tuple(dict.fromkeys([*graph.roots, *held]))


def _check_room(graph: Snapshot, made: Any) -> None:
    """Refuse what the machine's memory cannot hold: systems grant more than there is, and stall. Of results
    all are there at a time, of what is computed node by node at least each by itself.
    """
    needed = max(
        sum(graph.sigs[each].nbytes for each in graph.roots),
        max((graph.sigs[each].nbytes for each in made if graph.sigs[each].kind != "move"), default=0),
    )
    memory = memory_bytes()
    if memory and needed > memory:
        error = OutOfMemoryError(
            f"results of {readable_bytes(needed)} are more than this machine's memory, "
            f"{readable_bytes(memory)}: work in smaller parts"
        )
        error.value = max(made, key=lambda each: graph.sigs[each].nbytes)  # type: ignore[attr-defined]
        raise error


def _floats(array: Array) -> Array:
    """Complex numbers as the pairs of floats that plans compute with."""
    return array[..., None].view(array.real.dtype) if array.dtype.kind == "c" else array


def _as_stored(node: Node, array: Array) -> Array:
    """Pairs of floats as complex numbers, where a node has those."""
    sig = node.sig
    return array.view(sig.dtype.numpy)[..., 0] if sig.dtype.kind == "c" else array


def _work(graph: Snapshot) -> int:
    """The elements that are computed, roughly."""
    total = 0
    for each in graph.order():
        sig, inputs = graph.sigs[each], graph.inputs[each]
        if sig.kind == "attend":  # by NumPy, with a score for each query and key
            total += math.prod(sig.shape[:-1]) * graph.sigs[inputs[1]].shape[-2]
        if sig.kind not in ("move", "leaf", "scalar"):
            total += max(graph.sigs[one].size for one in (each, *inputs))
    return total


def _alone(graph: Snapshot, node: int) -> Group:
    """A node as a group, for those who watch."""
    kind = graph.sigs[node].kind
    named = "rows" if kind == "reduce" else kind if kind in get_args(GroupKind) else "map"
    return Group(cast(GroupKind, named), (node,), (node,), graph.inputs[node], (), (), node)


def _about(graph: Snapshot, group: Group, count: int) -> tuple[Note, int]:
    """What a group is about, for those who watch, and the node it is about."""
    ops, read, written, operations, origin = work_of(graph, [group], count)
    if graph.sigs[group.center].kind == "move" and group.inside == group.outputs:
        ops = ()
    return Note(name_of(graph, group), ops, None, read, written, operations), origin
