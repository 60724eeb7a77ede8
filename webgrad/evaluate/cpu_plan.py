"""Plans for the cpu, as `evaluate` runs them: from nodes to their arrays.

In: a graph; then, for each run, the nodes. Out: arrays for the roots, and for stored values that someone
holds. A graph that is seen for the first time is computed node by node, unless it is much work; what is seen
again is compiled.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from ..arrays import Array
from ..config import settings
from ..cpu.plan import CompiledPlan
from ..device_profile import CPU_PROFILE
from ..errors import OutOfMemoryError
from ..graph.node import Node, Signature
from ..graph.snapshot import Snapshot
from ..lower.threads import name_of
from ..native.compiler import is_available
from ..observing import Note, observers, stage
from ..reference.plan import ReferencePlan
from ..runtime.host import memory_bytes
from ..runtime.host_buffers import is_own
from ..runtime.stats import readable_bytes
from ..schedule.cpu_passes import CPU_PASSES
from ..schedule.places import Place, begin_anywhere, numbers_at
from ..schedule.plan import Group, GroupKind, Schedule
from ..schedule.schedule import schedule
from ..schedule.work import work_of
from .cpu_replay import HostReplay

MUCH = 1 << 24  # elements that all nodes of a graph have, from which it may be compiled at once
# What making a plan costs, for each node, and a call of NumPy's, in elements that NumPy computes meanwhile
PLANNED, CALLED = 1 << 17, 1 << 9
SLOWLY = 32  # times as long as for floats NumPy takes for half floats, which it converts, and for blocks
FEWEST, MOST = 2, 64  # runs by NumPy before native code, if it is not compiled at once


class HostPlan:
    """A graph on the cpu.

    One that is captured, or much work, is compiled at once. Another one is computed by NumPy, node by node,
    until that has taken about as long as compiling it, if the option does not say otherwise. What is seen
    seldom, such as each length of a growing sequence, is never compiled.
    """

    def __init__(
        self,
        graph: Snapshot,
        device: Any,
        *,
        captured: bool = False,
        varying: frozenset[int] = frozenset(),
    ) -> None:
        self._count = graph.count
        self._graph, self._begins = graph, len(graph)
        self._varying = varying
        self.leaves = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
        self.scalars = [at for at, sig in enumerate(graph.sigs) if sig.kind == "scalar"]
        self._complex = {at: sig.dtype.numpy for at, sig in enumerate(graph.sigs) if sig.dtype.kind == "c"}
        self._places: Sequence[Place] = ()
        self.device = device
        self._runs = 0
        self._compiled: tuple[Schedule, CompiledPlan] | None = None
        self._replay: HostReplay | None = None
        option = settings().compile
        self._by_numpy = 0 if captured or option == "always" else _runs_by_numpy(graph)
        if not is_available() or (self._by_numpy and option != "repeated"):
            self._by_numpy = sys.maxsize
        self.plan = self._by_reference(graph) if self._by_numpy else self._natively(graph)
        self.stored: tuple[int, ...] = graph.roots

    def vary(self, forms: frozenset[int]) -> bool:
        """Have movement of these forms begin elsewhere in each run; whether that can be, without another
        plan: it can before there is native code.
        """
        if not isinstance(self.plan, ReferencePlan):
            return False
        self._varying, self._compiled, self._runs = forms, None, 0
        return True

    def _natively(self, graph: Snapshot) -> CompiledPlan:
        made = self._scheduled(graph)
        outputs = {each for group in made.groups for each in group.outputs}
        _store(graph, sorted(outputs & graph.held))
        _check_room(graph, graph.roots)
        with stage("lower"):
            plan = CompiledPlan(made)
        self._announce(made)
        return plan

    def _scheduled(self, graph: Snapshot) -> Schedule:
        with stage("schedule"):
            self._places = begin_anywhere(graph, self._varying) if self._varying else ()
            return schedule(graph, CPU_PROFILE, CPU_PASSES)

    def _by_reference(self, graph: Snapshot) -> ReferencePlan:
        """A plan that keeps all computed values that someone holds."""
        with stage("schedule"):
            _store(graph, sorted(each for each in graph.held if graph.sigs[each].kind != "move"))
            plan = ReferencePlan(graph, None if graph.origins else range(len(graph)))
        _check_room(graph, plan.nodes)
        self._about: list[tuple[Note, int]] = []
        if observers():
            self._announce(_node_by_node(graph, plan))
        return plan

    def _announce(self, made: Schedule) -> None:
        """Tell those who watch of a plan, and keep what to tell them of its runs."""
        self._about = self._notes(made)
        for each in observers():
            each.planned(self.device, made, ())

    def _notes(self, made: Schedule) -> list[tuple[Note, int]]:
        return [_about(made.graph, group, self._count) for group in made.groups]

    def _compile(self) -> None:
        """Ask for native code at one run, and go on to it at the next, however long it takes: results depend
        on how often a graph was seen, not on the time.
        """
        if self._compiled is None:
            made = self._scheduled(self._graph.copy())
            with stage("lower"):
                self._compiled = made, CompiledPlan(made)
        else:
            made, self.plan = self._compiled
            self._announce(made)
            self._compiled = None
            if not self._places:
                self._replay = self._replayed(())

    apart: Sequence[int] = ()

    def record(self, steady: Sequence[int] = ()) -> HostPlan | HostReplay:
        """The plan with as little to do in a run as may be: native code's, that computes every root."""
        return self._replayed(steady) or self

    def _replayed(self, steady: Sequence[int]) -> HostReplay | None:
        """Runs with little to do, where there is native code that computes every root."""
        if isinstance(self.plan, ReferencePlan):
            return None
        return HostReplay.of(self.plan, self.stored, steady, self._complex, self.run)

    def run(
        self, nodes: list[Node], donated: frozenset[int] = frozenset(), apart: Sequence[Node] = ()
    ) -> list[Any]:
        """The arrays of `stored`."""
        if self._replay is not None and not observers():
            return self._replay.run(nodes, donated)
        self._runs += 1
        tell = None
        if observers():
            tell = self._tell(nodes)
            if isinstance(self.plan, ReferencePlan) and not self._about:  # it was made before they watched
                self._about = self._notes(_node_by_node(self._graph, self.plan))
        if self._runs >= self._by_numpy and isinstance(self.plan, ReferencePlan):
            self._compile()
        if isinstance(self.plan, ReferencePlan):
            arrays: list[Any] = [each.storage for each in nodes]
            arrays += [None] * (self._begins - len(nodes))
            return self.plan.compute(arrays, self.scalars, self._sigs(nodes), tell)
        leaves = {at: _floats(nodes[at].storage) for at in self.leaves}
        scalars = {at: nodes[at].storage for at in self.scalars}
        scalars |= dict(enumerate(numbers_at(self._places, nodes), self._begins))
        free = frozenset(at for at in donated if is_own(leaves[at]))
        found = self.plan.run(leaves, scalars, free, tell)
        return [_as_stored(nodes[each], found[each]) for each in self.stored]

    def _sigs(self, nodes: list[Node]) -> list[Signature]:
        """The nodes' signatures, since slices may begin elsewhere than the graph's; of composites what is in
        them.
        """
        sigs = [each.sig for each in nodes]
        if self._graph.origins:
            sigs += self._graph.sigs[len(nodes) : self._begins]
            for each in self._graph.origins:
                sigs[each] = self._graph.sigs[each]
        return sigs

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


def _runs_by_numpy(graph: Snapshot) -> int:
    """How often a graph is computed by NumPy before it is compiled; 0: it is compiled at once."""
    count = len(graph)
    if max([sig.size for sig in graph.sigs], default=0) < CALLED:
        return MOST
    work = _work(graph)
    if work >= max(MUCH, count * PLANNED):
        return 0
    return min(max(FEWEST, count * PLANNED // (work + count * CALLED)), MOST)


_UNPACKING = ("decode", "decode_rows", "matmul_blocks")


def _work(graph: Snapshot) -> int:
    """The elements that are computed, roughly; those that NumPy takes long for count several times."""
    total = 0
    for sig, inputs in zip(graph.sigs, graph.inputs, strict=True):
        times = (
            SLOWLY if sig.op.name in _UNPACKING or any(graph.sigs[one].dtype.is_half for one in inputs) else 1
        )
        if sig.kind == "attend":  # by NumPy, with a score for each query and key
            total += math.prod(sig.shape[:-1]) * graph.sigs[inputs[1]].shape[-2]
        if sig.kind not in ("move", "leaf", "scalar"):
            total += times * max(sig.size, *[graph.sigs[one].size for one in inputs], 0)
    return total


def _node_by_node(graph: Snapshot, plan: ReferencePlan) -> Schedule:
    """What a plan by NumPy does, for those who watch."""
    groups = tuple([_alone(graph, each) for each in plan.nodes])
    return Schedule(graph, groups, tuple([(at,) for at in range(len(groups))]))


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
