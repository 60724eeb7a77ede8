"""A traced function as commands over numbered buffers, for adapters of one kind.

In: a `Graph` and a `Planner`, which has a device on paper. Out: `Commands`, the part of a plan that the
runner executes. The functions of a bundle share a planner, and so weights, state and the memory of what is
between. The invariant: a tensor or a state lies in the same buffer in every function and after every run.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..device_profile import DeviceProfile
from ..evaluate.gpu_plan import GpuPlan, GpuReplay
from ..graph.node import Node
from ..graph.op import LEAF
from ..graph.snapshot import Snapshot
from ..graph.trace import is_runtime
from ..runtime.buffers import Buffer
from ..runtime.layer import PARAMS_STRIDE
from ..schedule.plan import Schedule
from ..schedule.schedule import schedule
from ..wgsl import Program
from .paper import PaperDevice, Variant, WrittenDown
from .trace import Given, Graph

__all__ = ["Commands", "Planner", "Schedules"]


class Commands(NamedTuple):
    """One function: what the runner's `functions` entry holds."""

    commands: list[list[Any]]
    numbers: list[list[Any]]
    inputs: dict[str, int]
    outputs: dict[str, int]
    copies: list[int]


class _Made(NamedTuple):
    """A graph recorded on a device: its commands with their parameters, and where its results are."""

    written: WrittenDown
    params: list[bytes]
    recorded: GpuReplay
    buffers: dict[int, Buffer]  # of what was computed, by the node's identity


class Schedules:
    """What functions' graphs are scheduled as, once for all variants that differ in features alone: by those
    kernels are written, not chosen.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, DeviceProfile], Schedule] = {}

    def __call__(self, graph: Snapshot, profile: DeviceProfile, *, fuse: bool) -> Schedule:
        """The schedule, whose graph whoever compiles it may add to."""
        plain = replace(profile, features=frozenset(), subgroup_size=0)
        key = id(graph), plain
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = schedule(graph.copy(), plain, fuse=fuse)
        return replace(made, graph=made.graph.copy())


class Planner:
    """The kernels and buffers of all functions for one variant.

    `name_of` says what a leaf that is no input is called; texts are numbered, and graphs are scheduled, for
    all variants together.
    """

    def __init__(
        self, variant: Variant, texts: dict[str, int], name_of: Callable[[Node], str], schedules: Schedules
    ) -> None:
        self.variant = variant
        self.schedules = schedules
        self.device = PaperDevice(variant)
        self.kernels: list[dict[str, Any]] = []
        self._texts = texts
        self._name_of = name_of
        self._kernel_numbers: dict[tuple[int, str, str], int] = {}
        self._places: dict[str, Buffer] = {}  # of tensors and state, by name
        self._constants: list[Buffer] = []  # parameters that are more than travel with a command
        self._numbers: dict[int, int] = {}  # a paper buffer's handle → its number in the plan
        self._sizes: list[int] = []

    def plan(self, graphs: Mapping[str, Graph]) -> dict[str, Commands]:
        """The commands of every function.

        What stays gets its place first: a buffer for what is between is any that is free by then.
        """
        for graph in graphs.values():
            for node in graph.leaves():
                self._place(node)
        plans = {name: self._planned(graph) for name, graph in graphs.items()}
        for plan in plans.values():
            self._constants += [step.more for step in plan.steps if step.pipeline and step.more]
        return {name: self._commands(graph, plans[name]) for name, graph in graphs.items()}

    def _commands(self, graph: Graph, plan: GpuPlan) -> Commands:
        given = {
            each.name: self.device.lend(math.prod(each.shape) * each.dtype.itemsize)
            for each in graph.inputs
            if each.kind == "tensor"
        }

        def place(node: Node) -> Buffer:
            source = node.storage
            return given[source.name] if isinstance(source, Given) else self._place(node)

        donated = self._donated(graph, plan)
        made = _recorded(self.device, plan, graph, donated, place)
        for before, after in graph.changed:
            if id(before) in donated:
                self._places[self._name_of(before)] = made.buffers[id(after)]
        return self._finished(graph, made, given, place)

    def buffers(self, state: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Every buffer: its bytes, and what it holds at first."""
        held = {self._number(buffer): name for name, buffer in self._places.items()}
        data = {self._number(buffer): bytes(buffer.virtual.host) for buffer in self._constants}
        rows: list[dict[str, Any]] = [{"bytes": size} for size in self._sizes]
        for number, name in held.items():
            rows[number]["state" if name in state else "tensor"] = name
        for number, contents in data.items():
            rows[number]["data"] = base64.b64encode(contents).decode()
        return rows

    # Recording

    def _planned(self, graph: Graph) -> GpuPlan:
        return GpuPlan(graph.snapshot, self.device, nodes=graph.nodes, scheduler=self.schedules)

    def _donated(self, graph: Graph, plan: GpuPlan) -> frozenset[int]:
        """The state, by the identity of its leaves, whose storage its new value takes: found by trying."""
        results = [node for _, node in graph.outputs] + [after for _, after in graph.changed]
        kept = {id(node.storage) for node in results if node.sig.op is LEAF}  # read once all has run
        tried = frozenset(
            id(before)
            for before, after in graph.changed
            if id(before) in graph.places and after.storage is None and id(before.storage) not in kept
        )
        while tried:
            scratch = PaperDevice(self.variant)
            places: dict[int, Buffer] = {}

            def place(node: Node, scratch: PaperDevice = scratch, places: Any = places) -> Buffer:
                return places.setdefault(id(node), scratch.lend(node.sig.nbytes))  # type: ignore[no-any-return]

            made = _recorded(scratch, plan, graph, tried, place)
            stayed = frozenset(
                id(before)
                for before, after in graph.changed
                if id(before) in tried and _same_place(made.buffers[id(after)], places[id(before)])
            )
            if stayed == tried:
                break
            tried = stayed
        return tried

    def _place(self, node: Node) -> Buffer:
        """Where a tensor or a state lies, in all functions."""
        name = self._name_of(node)
        found = self._places.get(name)
        if found is None:
            found = self._places[name] = self.device.lend(node.sig.nbytes)
        return found

    # As numbers

    def _finished(
        self, graph: Graph, made: _Made, given: Mapping[str, Buffer], place: Callable[[Node], Buffer]
    ) -> Commands:
        def number_of(node: Node) -> int:
            return self._number(made.buffers[id(node)] if id(node) in made.buffers else place(node))

        moves = [
            (number_of(after), self._number(self._place(before)), (before.sig.nbytes + 3) & ~3)
            for before, after in graph.changed
        ]
        return Commands(
            commands=self._rows(made.written),
            numbers=_number_places(made, graph),
            inputs={name: self._number(buffer) for name, buffer in given.items()},
            outputs={name: number_of(node) for name, node in graph.outputs},
            copies=self._copies([each for each in moves if each[0] != each[1] and each[2]]),
        )

    def _copies(self, moves: Sequence[tuple[int, int, int]]) -> list[int]:
        """Copies of (source, target, bytes); by way of others where one's target is another's source."""
        sources = {source for source, _, _ in moves}
        if not any(target in sources for _, target, _ in moves):
            return [each for source, target, nbytes in moves for each in (source, 0, target, 0, nbytes)]
        between = [self.device.lend(nbytes) for _, _, nbytes in moves]
        there = zip(moves, map(self._number, between), strict=True)
        first, last = [], []
        for (source, target, nbytes), middle in there:
            first += [source, 0, middle, 0, nbytes]
            last += [middle, 0, target, 0, nbytes]
        return first + last

    def _rows(self, written: WrittenDown) -> list[list[Any]]:
        rows = []
        for row, params in zip(written.rows, written.params, strict=True):
            bound = [
                each
                for handle, offset, nbytes in row.group.handle
                for each in (self._number_of(handle), offset, nbytes)
            ]
            kernel = self._kernel(row.pipeline.handle, row.pipeline.pipeline)
            rows.append([kernel, bound, list(row.grid), base64.b64encode(params).decode()])
        return rows

    def _kernel(self, text: str, pipeline: Any) -> int:
        program = pipeline.program
        accesses = "".join("w" if each == "read_write" else "r" for each in pipeline.accesses)
        key = (self._texts.setdefault(text, len(self._texts)), program.entry, accesses)
        number = self._kernel_numbers.get(key)
        if number is None:
            number = self._kernel_numbers[key] = len(self.kernels)
            self.kernels.append({"text": key[0], "entry": key[1], "accesses": key[2], "label": program.label})
        return number

    def _number(self, buffer: Buffer) -> int:
        if not buffer.virtual.physical:  # of what is empty no kernel ever writes
            buffer = self.device.lend(0)
        return self._number_of(self.device.handle_of(buffer))

    def _number_of(self, handle: int) -> int:
        number = self._numbers.get(handle)
        if number is None:
            number = self._numbers[handle] = len(self._sizes)
            self._sizes.append(self.device.layer.sizes[handle])
        return number


def _recorded(
    device: PaperDevice,
    plan: GpuPlan,
    graph: Graph,
    donated: frozenset[int],
    place: Callable[[Node], Buffer],
) -> _Made:
    """Have a plan written down, by its own device or another of the same variant; `donated` are leaves, by
    identity.
    """
    nodes, numbers = graph.nodes, graph.places
    recorded = plan.record()
    inputs = [place(nodes[at]) for at in plan.sources]
    params = recorded.params.copy()
    for at, step in recorded.packed:
        params[at] = step.params(nodes)
    own = device is plan.device
    constants = [each if own else device.lend(each.nbytes) for each in recorded.constants]
    device.layer.encoded.clear()
    found = device.queue.replay(
        recorded.commands,
        inputs + constants,
        params,
        recorded.donated_inputs(numbers[each] for each in donated),
    )
    by_number = dict(zip(plan.stored, found, strict=True))
    buffers = {id(root): by_number[numbers[id(root)]] for root in graph.roots}
    written = device.layer.encoded[0] if device.layer.encoded else WrittenDown((), ())
    return _Made(written, params, recorded, buffers)


def _same_place(one: Buffer, other: Buffer) -> bool:
    return one.virtual.physical == other.virtual.physical


def _number_places(made: _Made, graph: Graph) -> list[list[Any]]:
    """Where run-time numbers stand: (input, type, offsets into the block of parameters)."""
    rows = {id(params): at for at, params in enumerate(made.written.params)}
    found: dict[tuple[str, str], list[int]] = {}
    for at, step in made.recorded.packed:
        row = rows.get(id(made.params[at]))
        if row is None:
            continue  # in place there was nothing left to do
        assert step.pipeline is not None
        for (type, offset), number in zip(_words(step.pipeline.program), step.launch.scalars, strict=False):
            node = graph.nodes[number]
            if is_runtime(node.storage):
                key = graph.numbers[id(node.storage)], type
                found.setdefault(key, []).append(row * PARAMS_STRIDE + offset)
    return [[name, type, offsets] for (name, type), offsets in found.items()]


def _words(program: Program) -> Iterator[tuple[str, int]]:
    """The parameters one number after another: what each is written as, and where."""
    for field in program.params:
        for at in range(field.size // 4):
            yield field.type.removesuffix(">")[-3:], field.offset + 4 * at
