"""Plans for GPUs: a schedule compiled to launches, run by recording commands over virtual buffers.

In: a graph and a device; then, for each run, the nodes. Out: buffers. All that can be is decided when the
plan is made, and only that is kept: a run packs the run-time numbers and records one command a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import WebgradError
from ..graph.node import Node
from ..graph.snapshot import Snapshot
from ..lower.compile import alias_of, compile_schedule
from ..lower.emit import Bound, Emitted
from ..observing import Note, observers, stage
from ..runtime.buffers import Buffer
from ..runtime.pipelines import Pipeline
from ..runtime.recording import Recording
from ..runtime.webgpu import Device
from ..schedule.plan import Schedule
from ..schedule.schedule import schedule
from ..schedule.work import Work, work_of
from ..tuning.choosing import choosing

__all__ = ["GpuPlan", "GpuRecording"]


class _Step:
    """One launch over numbered values, and what is let go after it; without a pipeline, a value's second
    number.
    """

    __slots__ = (
        "about",
        "bound",
        "drop",
        "grid",
        "inputs",
        "label",
        "more",
        "origin",
        "outputs",
        "pack",
        "pipeline",
        "scalars",
        "simple",
        "sizes",
        "tail",
        "updates",
    )

    about: Note
    bound: tuple[Bound, ...]
    grid: tuple[int, int, int]
    label: str
    more: Buffer | None
    origin: int
    pack: Callable[..., bytes]
    scalars: tuple[int, ...]
    simple: bool
    sizes: list[int]
    tail: bytes
    updates: bool

    def __init__(self, inputs: list[int], outputs: list[int]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.drop: list[int] = []
        self.pipeline: Pipeline | None = None

    @classmethod
    def launch(cls, device: Device, emitted: Emitted, graph: Snapshot, about: Note, origin: int) -> _Step:
        """The step of an emitted kernel; `origin` is the node that it is about."""
        count = len(emitted.bound) - emitted.writes
        written = dict.fromkeys(each.value for each in emitted.bound[count:])
        step = cls([each.value for each in emitted.bound[:count]], list(written))
        step.pipeline = device.pipeline(
            emitted.program, in_place=emitted.in_place, replacing=emitted.replacing
        )
        step.grid = emitted.grid
        step.label = emitted.kernel.name
        step.scalars, step.pack, step.tail = emitted.scalars, emitted.front.pack, emitted.tail
        step.more = device.upload(emitted.more, keep=True) if emitted.more else None
        step.sizes = [graph.sigs[each].nbytes for each in step.outputs]
        step.about = replace(
            about,
            name=step.label,
            numbers=emitted.front.size,
            dtypes=tuple([graph.sigs[each.value].dtype.name for each in emitted.bound[count:]]),
        )
        step.origin = origin
        step.bound, step.updates = emitted.bound, emitted.updates
        whole = not any(each.nbytes for each in emitted.bound)
        step.simple = emitted.writes == 1 and whole and not emitted.updates
        return step

    def params(self, nodes: list[Node]) -> bytes:
        """The parameters: run-time numbers first."""
        if not self.scalars:
            return self.tail
        return self.pack(*[nodes[each].storage for each in self.scalars]) + self.tail

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
        replaces: Mapping[int, int] | None = None,
        scheduler: Callable[..., Schedule] = schedule,
    ) -> None:
        self.device = device
        count = len(graph)
        self.sources = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
        self.source_bytes = [graph.sigs[at].nbytes for at in self.sources]
        with stage("schedule"):
            made = scheduler(graph, device.profile, fuse=fuse)
        graph = made.graph
        numbers = {at: each.storage for at, each in enumerate(nodes) if each.sig.kind == "scalar"}
        with choosing(device, numbers) as choose:
            compiled = compile_schedule(
                made, device.profile, check=device.settings.checks, choose=choose, replaces=replaces or {}
            )
        for each in observers():
            each.planned(device, made, compiled)
        self.steps: list[_Step] = []
        self.empty: list[int] = []
        for groups, launches in compiled:
            empty = [each for group in groups for each in group.outputs if not graph.sigs[each].size]
            self.empty += empty
            alias = None if launches or empty else alias_of(graph, groups)
            if alias is not None:
                self.steps.append(_Step([alias[1]], [alias[0]]))
            if launches:
                about, origin = _about(work_of(graph, groups, count).share(len(launches)))
                self.steps += [_Step.launch(device, each, graph, about, origin) for each in launches]
        kept = {each for group in made.groups for each in group.outputs if each < count}
        self.stored = tuple(sorted((kept & graph.held) | set(graph.roots)))
        self._free_early()
        alone = len(self.steps) == 1 and not self.empty and self.steps[0].pipeline is not None
        alone = alone and self.steps[0].simple and self.steps[0].more is None
        self._only = self.steps[0] if alone and self.stored == tuple(self.steps[0].outputs) else None

    def _free_early(self) -> None:
        last: dict[int, _Step] = {}
        for step in self.steps:
            for each in (*step.inputs, *step.outputs):
                last[each] = step
        for each, step in last.items():
            if each >= 0 and each not in self.stored:
                step.drop.append(each)

    def run(self, nodes: list[Node]) -> list[Any]:
        """Record the kernels over the nodes' buffers."""
        step = self._only
        queue = self.device.queue
        annotate = queue.annotate if observers() else None
        if step is not None and step.pipeline is not None:  # a single op, as in a REPL: the short way
            inputs = [nodes[each].storage for each in step.inputs]
            found = self.device.compute(
                step.pipeline, inputs, step.sizes[0], step.params(nodes), step.grid, step.label
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
                        params = step.params(nodes)
                        if step.simple:
                            inputs = [step.more if each < 0 else values[each] for each in step.inputs]
                            values[step.outputs[0]] = compute(
                                step.pipeline, inputs, step.sizes[0], params, step.grid, step.label
                            )
                        else:
                            self._allocate(step, values, allocate)
                            buffers = [self._buffer(step, values, each) for each in step.bound]
                            dispatch(step.pipeline, buffers, params, step.grid)
                        if annotate is not None:
                            annotate(step.note(nodes))
                    for each in step.drop:
                        del values[each]
        except WebgradError as error:
            if step is not None and step.outputs[0] < len(nodes):
                error.node = nodes[step.outputs[0]]  # type: ignore[attr-defined]  # whose line the message names
            raise
        return [values[each] for each in self.stored]

    def record(self) -> GpuRecording:
        """The same kernels as a recording, to be run again over other buffers."""
        return GpuRecording(self)

    def _allocate(self, step: _Step, values: dict[int, Any], allocate: Any) -> None:
        for each, nbytes in zip(step.outputs, step.sizes, strict=True):
            if not (step.updates and each in values):
                values[each] = allocate(nbytes, step.label)

    def _buffer(self, step: _Step, values: dict[int, Any], bound: Bound) -> Buffer | None:
        """What a binding gets: a value, a part of it, or the step's own parameters."""
        if bound.value < 0:
            return step.more
        if bound.nbytes:
            return self.device.queue.view(values[bound.value], bound.start, bound.nbytes)
        whole: Buffer = values[bound.value]
        return whole


class GpuRecording:
    """A plan's commands, recorded once: a run fills in leaves and numbers, and submits."""

    def __init__(self, plan: GpuPlan) -> None:
        self.plan = plan
        self.recording = recording = Recording(plan.device.queue.limits.max_binding)
        slots = {
            each: recording.slot(nbytes, given=True)
            for each, nbytes in zip(plan.sources, plan.source_bytes, strict=True)
        }
        self.constants: list[Buffer] = []  # parameters of steps that are more than travel with a command
        self.params: list[bytes] = []
        self.packed: list[tuple[int, _Step]] = []  # where parameters hold numbers of the run
        self.users: dict[int, list[tuple[int, _Step]]] = {}  # those of each number
        for each in plan.empty:
            slots[each] = recording.slot(0)
        for step in plan.steps:
            if step.pipeline is None:
                slots[step.outputs[0]] = slots[step.inputs[0]]
            else:
                self._add(step, slots)
        # The numbers of the last run and its parameters: one attribute, since threads may meet here.
        self.last: tuple[list[Any], list[bytes]] = [None] * len(self.users), self.params
        recording.outputs += [slots[each] for each in plan.stored]
        kept = frozenset(recording.outputs)  # a result may be a leaf in another shape, in the same memory
        self.donable = {each: at for at, each in enumerate(plan.sources) if slots[each] not in kept}

    def _add(self, step: _Step, slots: dict[int, int]) -> None:
        recording = self.recording
        more = -1
        if step.more is not None:
            more = recording.slot(step.more.nbytes, given=True)
            self.constants.append(step.more)
        for each, nbytes in zip(step.outputs, step.sizes, strict=True):
            if not (step.updates and each in slots):
                slots[each] = recording.slot(nbytes)
        bound = []
        for part in step.bound:
            slot = more if part.value < 0 else slots[part.value]
            bound.append(recording.view(slot, part.start, part.nbytes) if part.nbytes else slot)
        assert step.pipeline is not None
        recording.launch(step.pipeline, step.grid, bound)
        if step.scalars:
            self.packed.append((len(self.params), step))
            for each in set(step.scalars):
                self.users.setdefault(each, []).append(self.packed[-1])
        self.params.append(step.tail)

    def run(self, nodes: list[Node], donated: frozenset[int] = frozenset()) -> list[Any]:
        """Buffers for `stored`; `donated` are the numbers of leaves whose memory may be taken over."""
        plan = self.plan
        inputs = [nodes[each].storage for each in plan.sources]
        given = frozenset(self.donable[each] for each in donated if each in self.donable)
        params = self._packed(nodes) if self.packed else self.params
        notes = [each.note(nodes) for each in plan.steps if each.pipeline is not None] if observers() else ()
        return plan.device.queue.replay(self.recording, inputs + self.constants, params, given, notes)

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
