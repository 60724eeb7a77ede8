"""Plans for GPUs: a schedule compiled to launches, run by recording commands over virtual buffers.

In: a graph and a device; then, for each run, the nodes. Out: buffers. All that can be is decided when the
plan is made: a run packs the run-time numbers and records one command a kernel.
"""

from __future__ import annotations

from typing import Any

from .graph.node import Node
from .graph.snapshot import Snapshot
from .lower.compile import alias_of, compile_schedule
from .lower.emit import Emitted
from .runtime.buffers import Buffer
from .runtime.webgpu import Device
from .schedule.schedule import schedule

__all__ = ["GpuPlan"]


class _Step:
    """One launch: values by number, and what is given free after it."""

    __slots__ = (
        "drop",
        "emitted",
        "grid",
        "inputs",
        "label",
        "more",
        "outputs",
        "params",
        "pipeline",
        "simple",
        "sizes",
    )

    def __init__(self, device: Device, emitted: Emitted, sizes: dict[int, int]) -> None:
        self.emitted: Emitted | None = emitted
        self.pipeline = device.pipeline(emitted.program)
        self.grid = emitted.grid
        self.label = emitted.kernel.name
        self.params = None if emitted.scalars else emitted.tail
        self.more: Buffer | None = device.upload(emitted.more, keep=True) if emitted.more else None
        count = len(emitted.bound) - emitted.writes
        self.inputs = [each.value for each in emitted.bound[:count]]
        self.outputs = list(dict.fromkeys(each.value for each in emitted.bound[count:]))
        self.sizes = [sizes[each] for each in self.outputs]
        whole = not any(each.nbytes for each in emitted.bound)
        self.simple = emitted.writes == 1 and whole and not emitted.updates
        self.drop: list[int] = []


class _Alias(_Step):
    """A value under another number: no launch at all."""

    __slots__ = ()

    def __init__(self, result: int, value: int) -> None:
        self.emitted = None
        self.inputs, self.outputs, self.drop = [value], [result], []


class GpuPlan:
    """A graph's kernels on one device."""

    def __init__(self, graph: Snapshot, device: Device, *, fuse: bool = True) -> None:
        self.device = device
        count = len(graph)
        self.sources = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
        self.schedule = schedule(graph, device.profile, fuse=fuse)
        compiled = compile_schedule(self.schedule, device.profile, check=device.settings.debug)
        sizes = {at: sig.nbytes for at, sig in enumerate(graph.sigs)}
        self.steps: list[_Step] = []
        self.empty: list[tuple[int, int]] = []
        for groups, launches in compiled:
            self.empty += [
                (each, 0) for group in groups for each in group.outputs if not graph.sigs[each].size
            ]
            alias = (
                None
                if launches or self.empty[-1:] == [(groups[0].outputs[0], 0)]
                else alias_of(graph, groups)
            )
            if alias is not None:
                self.steps.append(_Alias(*alias))
            self.steps += [_Step(device, each, sizes) for each in launches]
        kept = {each for group in self.schedule.groups for each in group.outputs if each < count}
        self.roots = graph.roots
        self.stored = tuple(sorted((kept & graph.held) | set(graph.roots)))
        self._free_early()

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
        values: dict[int, Any] = {each: nodes[each].storage for each in self.sources}
        queue = self.device.queue
        with queue.hold() as (allocate, dispatch, compute):
            for each, nbytes in self.empty:
                values[each] = allocate(nbytes)
            for step in self.steps:
                emitted = step.emitted
                if emitted is None:
                    values[step.outputs[0]] = values[step.inputs[0]]
                    for each in step.drop:
                        del values[each]
                    continue
                params = step.params
                if params is None:
                    params = (
                        emitted.front.pack(*[nodes[each].storage for each in emitted.scalars]) + emitted.tail
                    )
                if step.simple:
                    inputs = [step.more if each < 0 else values[each] for each in step.inputs]
                    values[step.outputs[0]] = compute(
                        step.pipeline, inputs, step.sizes[0], params, step.grid, step.label
                    )
                else:
                    for each, nbytes in zip(step.outputs, step.sizes, strict=True):
                        if not (emitted.updates and each in values):
                            values[each] = allocate(nbytes, step.label)
                    buffers = [
                        step.more
                        if each.value < 0
                        else queue.view(values[each.value], each.start, each.nbytes)
                        if each.nbytes
                        else values[each.value]
                        for each in emitted.bound
                    ]
                    dispatch(step.pipeline, buffers, params, step.grid)
                for each in step.drop:
                    del values[each]
        return [values[each] for each in self.stored]
