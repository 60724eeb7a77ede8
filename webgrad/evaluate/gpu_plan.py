"""Plans for GPUs: a schedule compiled to launches, run by recording commands over virtual buffers.

In: a graph and a device; then, for each run, the nodes. Out: buffers. All that can be is decided when the
plan is made, and only that is kept: a run packs the run-time numbers and records one command a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..dtypes import int32
from ..errors import WebgradError
from ..graph.node import Node, scalar
from ..graph.snapshot import Snapshot
from ..kernels.launch import Bound, Launch
from ..lower.compile import compile_schedule
from ..lower.structures import alias_of
from ..observing import Note, observers, stage
from ..runtime.buffers import Buffer
from ..runtime.command_list import CommandList
from ..runtime.pipelines import Pipeline
from ..runtime.webgpu import Device
from ..schedule.places import begin_anywhere, numbers_at
from ..schedule.plan import Schedule
from ..schedule.schedule import schedule
from ..schedule.work import Work, work_of
from ..tuning.choice import choosing


class Step:
    """A launch made ready on a device, and what is let go after it; without one, a value's second number."""

    __slots__ = (
        "about",
        "drop",
        "inputs",
        "launch",
        "more",
        "new",
        "origin",
        "outputs",
        "pipeline",
        "simple",
    )

    about: Note
    launch: Launch
    more: Buffer | None
    new: list[tuple[int, int]]  # the outputs that it is the first to write to, with their bytes
    origin: int
    simple: bool  # whether it binds whole values, and makes one new one

    def __init__(self, inputs: list[int], outputs: list[int]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.drop: list[int] = []
        self.pipeline: Pipeline | None = None

    @classmethod
    def of(
        cls, device: Device, launch: Launch, graph: Snapshot, about: Note, origin: int, made: set[int]
    ) -> Step:
        """The step of a launch; `origin` is the node that it is about, `made` what was written before it."""
        count = len(launch.bound) - launch.writes
        step = cls(list(launch.values[:count]), list(dict.fromkeys(launch.written)))
        step.launch, step.origin = launch, origin
        step.pipeline = device.pipeline(launch.program, checked=launch.checked, in_place=launch.in_place)
        step.more = device.upload(launch.more, keep=True) if launch.more else None
        step.new = [(each, graph.sigs[each].nbytes) for each in step.outputs if each not in made]
        made.update(step.outputs)
        step.about = replace(
            about,
            name=launch.kernel.name,
            numbers=launch.front.size,
            dtypes=tuple([graph.sigs[each].dtype.name for each in launch.written]),
        )
        whole = not any(each.nbytes for each in launch.bound)
        step.simple = launch.writes == len(step.new) == 1 and whole
        return step

    def params(self, nodes: list[Node]) -> bytes:
        """The parameters: run-time numbers first."""
        launch = self.launch
        if not launch.scalars:
            return launch.params
        return launch.front.pack(*[nodes[each].storage for each in launch.scalars]) + launch.params

    def note(self, nodes: list[Node]) -> Note:
        """What it is about, for those who watch."""
        return self.about if self.origin < 0 else replace(self.about, where=nodes[self.origin].where)


def _about(work: Work) -> tuple[Note, int]:
    """What a launch is about, and the node it is about."""
    ops, read, written, operations, origin = work
    return Note("", ops, None, read, written, operations), origin


class GpuPlan:
    """A graph's kernels on one device."""

    def __init__(
        self,
        graph: Snapshot,
        device: Device,
        *,
        fuse: bool = True,
        nodes: Sequence[Node] = (),
        varying: frozenset[int] = frozenset(),
        scheduler: Callable[..., Schedule] = schedule,
    ) -> None:
        self.device = device
        count = graph.count
        self._begins = len(graph)
        self._places = begin_anywhere(graph, varying) if varying else ()
        self.sources = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
        self.source_bytes = [graph.sigs[at].nbytes for at in self.sources]
        with stage("schedule"):
            made = scheduler(graph, device.profile, fuse=fuse)
        graph = made.graph
        numbers = {at: each.storage for at, each in enumerate(nodes) if each.sig.kind == "scalar"}
        with choosing(device, numbers) as choose:
            compiled = compile_schedule(made, device.profile, check=device.settings.checks, choose=choose)
        for each in observers():
            each.planned(device, made, compiled)
        self.steps: list[Step] = []
        self.empty: list[int] = []
        written: set[int] = set()
        for groups, launches in compiled:
            empty = [each for group in groups for each in group.outputs if not graph.sigs[each].size]
            self.empty += empty
            alias = None if launches or empty else alias_of(graph, groups)
            if alias is not None:
                self.steps.append(Step([alias[1]], [alias[0]]))
            if launches:
                about, origin = _about(work_of(graph, groups, count).share(len(launches)))
                self.steps += [Step.of(device, each, graph, about, origin, written) for each in launches]
        kept = {each for group in made.groups for each in group.outputs if each < count}
        self.stored = tuple(sorted((kept & graph.held) | set(graph.roots)))
        self._free_early()
        alone = len(self.steps) == 1 and not self.empty and self.steps[0].pipeline is not None
        alone = alone and self.steps[0].simple and self.steps[0].more is None
        self._only = self.steps[0] if alone and self.stored == tuple(self.steps[0].outputs) else None

    def _free_early(self) -> None:
        last: dict[int, Step] = {}
        for step in self.steps:
            for each in (*step.inputs, *step.outputs):
                last[each] = step
        for each, step in last.items():
            if each >= 0 and each not in self.stored:
                step.drop.append(each)

    def vary(self, forms: frozenset[int]) -> bool:
        """Movement that begins elsewhere in each run needs other kernels."""
        return False

    def run(self, nodes: list[Node]) -> list[Any]:
        """Record the kernels over the nodes' buffers."""
        if self._places:
            numbers = numbers_at(self._places, nodes)
            inner: list[Any] = [None] * (self._begins - len(nodes))  # of composites
            nodes = nodes + inner + [scalar(each, int32, self.device) for each in numbers]
        step = self._only
        queue = self.device.queue
        annotate = queue.annotate if observers() else None
        if step is not None and step.pipeline is not None:  # a single op, as in a REPL: the short way
            inputs = [nodes[each].storage for each in step.inputs]
            found = self.device.compute(
                step.pipeline, inputs, step.new[0][1], step.params(nodes), step.launch.grid, step.about.name
            )
            if annotate is not None:
                annotate(step.note(nodes))
            return [found]
        values: dict[int, Any] = {each: nodes[each].storage for each in self.sources}
        try:
            with queue.hold() as (allocate, dispatch, compute):
                for each in self.empty:
                    values[each] = allocate(0)
                for step in self.steps:
                    if step.pipeline is None:
                        values[step.outputs[0]] = values[step.inputs[0]]
                    else:
                        launch, params = step.launch, step.params(nodes)
                        if step.simple:
                            inputs = [step.more if each < 0 else values[each] for each in step.inputs]
                            values[step.outputs[0]] = compute(
                                step.pipeline, inputs, step.new[0][1], params, launch.grid, step.about.name
                            )
                        else:
                            for each, nbytes in step.new:
                                values[each] = allocate(nbytes, step.about.name)
                            buffers = [self._buffer(step, values, each) for each in launch.bound]
                            dispatch(step.pipeline, buffers, params, launch.grid)
                        if annotate is not None:
                            annotate(step.note(nodes))
                    for each in step.drop:
                        del values[each]
        except WebgradError as error:
            if step is not None and step.outputs[0] < len(nodes):
                error.node = nodes[step.outputs[0]]  # type: ignore[attr-defined]  # whose line the message names
            raise
        return [values[each] for each in self.stored]

    def record(self, steady: Sequence[int] = ()) -> GpuReplay:
        """The same kernels as a list of commands, to be run again over other buffers."""
        return GpuReplay(self)

    def _buffer(self, step: Step, values: dict[int, Any], bound: Bound) -> Buffer | None:
        """What a binding gets: a value, a part of it, or the step's own parameters."""
        if bound.value < 0:
            return step.more
        if bound.nbytes:
            return self.device.queue.view(values[bound.value], bound.start, bound.nbytes)
        whole: Buffer = values[bound.value]
        return whole


class GpuReplay:
    """A plan's commands, recorded once: a run fills in leaves and numbers, and submits."""

    apart: Sequence[int] = ()

    def __init__(self, plan: GpuPlan) -> None:
        self.plan = plan
        self.commands = commands = CommandList(plan.device.queue.limits.max_binding)
        slots = {
            each: commands.slot(nbytes, given=True)
            for each, nbytes in zip(plan.sources, plan.source_bytes, strict=True)
        }
        self.constants: list[Buffer] = []  # parameters of steps that are more than travel with a command
        self.params: list[bytes] = []
        self.packed: list[tuple[int, Step]] = []  # where parameters hold numbers of the run
        self.users: dict[int, list[tuple[int, Step]]] = {}  # those of each number
        for each in plan.empty:
            slots[each] = commands.slot(0)
        for step in plan.steps:
            if step.pipeline is None:
                slots[step.outputs[0]] = slots[step.inputs[0]]
            else:
                self._add(step, slots)
        # The numbers of the last run and its parameters: one attribute, since threads may meet here.
        self.last: tuple[list[Any], list[bytes]] = [None] * len(self.users), self.params
        commands.outputs += [slots[each] for each in plan.stored]
        kept = frozenset(commands.outputs)  # a result may be a leaf in another shape, in the same memory
        self._donatable = {each: at for at, each in enumerate(plan.sources) if slots[each] not in kept}

    def _add(self, step: Step, slots: dict[int, int]) -> None:
        commands = self.commands
        more = -1
        if step.more is not None:
            more = commands.slot(step.more.nbytes, given=True)
            self.constants.append(step.more)
        for each, nbytes in step.new:
            slots[each] = commands.slot(nbytes)
        bound = []
        for part in step.launch.bound:
            slot = more if part.value < 0 else slots[part.value]
            bound.append(commands.view(slot, part.start, part.nbytes) if part.nbytes else slot)
        assert step.pipeline is not None
        commands.launch(step.pipeline, step.launch.grid, bound)
        if step.launch.scalars:
            self.packed.append((len(self.params), step))
            for each in set(step.launch.scalars):
                self.users.setdefault(each, []).append(self.packed[-1])
        self.params.append(step.launch.params)

    def donated_inputs(self, leaves: Iterable[int]) -> frozenset[int]:
        """Leaves that are donated, as inputs of the commands: but for those that are results themselves."""
        return frozenset(self._donatable[each] for each in leaves if each in self._donatable)

    def run(
        self, nodes: list[Node], donated: frozenset[int] = frozenset(), apart: Sequence[Node] = ()
    ) -> list[Any]:
        """Buffers for `stored`; `donated` are the numbers of leaves whose storage the caller gives up."""
        plan = self.plan
        inputs = [nodes[each].storage for each in plan.sources]
        params = self._packed(nodes) if self.packed else self.params
        notes = [each.note(nodes) for each in plan.steps if each.pipeline is not None] if observers() else ()
        return plan.device.queue.replay(
            self.commands, inputs + self.constants, params, self.donated_inputs(donated), notes
        )

    def _packed(self, nodes: list[Node]) -> list[bytes]:
        """The parameters of a run: those of the last one, but where another number stands in them."""
        numbers = [nodes[each].storage for each in self.users]
        before, params = self.last
        # Only the same object is the same number: 0.0 equals -0.0.
        changed = [at for at, number in enumerate(numbers) if number is not before[at]]
        if changed:
            params = params.copy()
            users = list(self.users.values())
            for at, step in dict.fromkeys(each for number in changed for each in users[number]):
                params[at] = step.params(nodes)
            self.last = numbers, params
        return params
