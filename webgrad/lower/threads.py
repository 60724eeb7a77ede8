"""Steps assigned to threads, and what all lowerings share: open the steps, close them, make the kernel.

In: how many steps there are, and a device's profile. Out: `Threads`, and instructions that give a thread its
step. On software adapters a thread takes a run of steps; on GPUs each step is a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..device_profile import DeviceProfile
from ..graph.snapshot import Snapshot
from ..schedule.plan import Group
from .ir import U32, Hole, Instruction, Kernel, Template
from .pull import Puller

CHUNK = 256  # steps of a thread's run on software adapters, at least
SPREAD = 512  # threads there, at most


@dataclass(frozen=True, slots=True)
class Threads:
    """Steps 0..count assigned to threads: one to each, or with `looped` up to `chunk`."""

    count: int
    chunk: int
    workgroup: int
    looped: bool = False

    @property
    def groups(self) -> int:
        """Workgroups."""
        return max(1, -(-self.count // (self.chunk * self.workgroup)))


def deal(profile: DeviceProfile, steps: int, work: int = 1) -> Threads:
    """Threads for steps of about `work` vectors each."""
    if profile.kind == "software":
        least = max(1, CHUNK // work)
        chunk = max(least, -(-steps // SPREAD)) if work == 1 else least
        return Threads(steps, min(chunk, max(steps, 1)), 8, looped=True)
    return Threads(steps, 1, 64)


def open_steps(puller: Puller, threads: Threads, first_group: int = 0) -> Instruction:
    """The step of this thread, in a loop or condition that is opened here."""
    build = puller.builder
    group = build.emit("thread", U32, (), "group")
    if first_group:
        group = build.arithmetic("-", group, build.size(first_group))
    local = build.emit("thread", U32, (), "local")
    thread = build.arithmetic("+", build.arithmetic("*", group, build.constant(threads.workgroup)), local)
    count = build.size(threads.count, "count")
    if not threads.looped:
        build.open_if(build.compare("<", thread, count))
        return thread
    chunk = build.size(threads.chunk, "chunk")
    start = build.arithmetic("*", thread, chunk)
    stop = build.arithmetic("min", build.arithmetic("+", start, chunk), count)
    return build.open_loop(start, stop, build.constant(1))


def name_of(graph: Snapshot, group: Group) -> str:
    """The name of a kernel: its kind, and its first ops."""
    names = [
        graph.sigs[each].op.name for each in group.inside if graph.sigs[each].kind not in ("move", "cast")
    ]
    return "_".join([group.kind, *names[:6], *(["more"] if len(names) > 6 else [])])


def kernel_of(
    group: Group,
    puller: Puller,
    workgroup: int,
    groups: int,
    template: Template | None = None,
    holes: Sequence[Hole] = (),
) -> Kernel:
    """The kernel that a puller has built: its instructions, or a template with the holes it has filled."""
    sigs = puller.graph.sigs
    return Kernel(
        name_of(puller.graph, group),
        tuple(puller.buffers),
        tuple((number, sigs[number].dtype) for number in puller.scalars),
        puller.builder.body() if template is None else (),
        workgroup,
        groups,
        template,
        tuple(holes),
    )
