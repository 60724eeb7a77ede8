"""Scans: a thread (or a lane) goes along a row, or along a chunk of one.

In: a group around a scan of x, or of (x, totals): the totals before each chunk but the first. Out: a
`Kernel`. Sums of floats have two parts, the total before a short run and the run itself, so that rounding
errors do not add up along a row.
"""

from __future__ import annotations

import math

from ..device_profile import DeviceProfile
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from ..schedule.plan import Group
from .index import Index, flatten, unflatten
from .ir import Instruction, Kernel, Type
from .pull import BLOCK, Puller
from .threads import deal, kernel_of, open_steps


class Scan:
    """One scan: its sizes, and the layout of its threads."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        (output,) = group.outputs
        sig = graph.sigs[output]
        self.graph, self.output, self.sig = graph, output, sig
        self.source, *totals = graph.inputs[output]
        self.totals = totals[0] if totals else -1
        self.axis = sig.attributes[0]
        self.length = sig.shape[self.axis]
        self.chunk: int = sig.attributes[1] if totals else self.length
        self.sizes = list(sig.shape)
        self.sizes[self.axis] = -(-self.length // self.chunk)
        last = self.axis == len(sig.shape) - 1
        self.by_lanes = not last and sig.shape[-1] % 4 == 0  # lanes are rows
        rows = math.prod(self.sizes)
        self.steps = rows // 4 if self.by_lanes else rows
        # Lanes go along the row: the last four may reach into a buffer's padding.
        self.vector = last and (self.length % 4 == 0 or _is_flat(graph, group, output))
        assert not totals or self.chunk % 4 == 0
        self.type = Type(sig.dtype.compute, 4 if self.by_lanes else 1)
        self.fold = TABLE[str(sig.op.wgsl)]


def _is_flat(graph: Snapshot, group: Group, output: int) -> bool:
    """Whether the only row is read at the indices that are written, and padding holds a group of four."""
    shape, size = graph.sigs[output].shape, graph.sigs[output].size
    totals = graph.inputs[output][1:]
    reads = [graph.sigs[each] for each in group.reads if each not in totals]
    inside = [graph.sigs[each] for each in group.inside if each != output]
    return (
        shape[-1] == size
        and all(each.kind in ("map", "cast") and each.shape in (shape, ()) for each in inside)
        and all(each.shape == shape for each in reads)
        and all(each.dtype.itemsize <= 4 for each in (*reads, graph.sigs[output]))
    )


def lower_scan(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """Running totals along an axis."""
    scan = Scan(graph, group)
    threads = deal(profile, scan.steps, max(1, scan.chunk // 4))
    puller = Puller(graph, group.outputs, group.reads)
    build = puller.builder
    row = open_steps(puller, threads)
    at = list(unflatten(puller.loop_index(row, scan.steps, scan.by_lanes), scan.sizes))
    start = _start(scan, puller, at)
    width = 4 if scan.vector else 1
    steps, chunk = -(-scan.length // width), scan.chunk // width
    first, stop = build.constant(0), build.size(steps, "length")
    if scan.totals >= 0:
        stretch = build.size(chunk, "chunk")
        first = build.arithmetic("*", build.index(at[scan.axis]), stretch)
        stop = build.arithmetic("min", build.arithmetic("+", first, stretch), stop)
    total = build.here("register", scan.type, (start,))
    if scan.sig.dtype.kind == "f" and scan.sig.op.wgsl == "add":
        _sums(scan, puller, at, total, first, stop, steps)
    else:
        loop = build.open_loop(first, stop, build.constant(1))
        _step(scan, puller, at, total, puller.loop_index(loop, steps, scan.vector), None)
        build.close()
    build.close()
    return kernel_of(group, puller, threads.workgroup, threads.groups)


def _start(scan: Scan, puller: Puller, at: list[Index]) -> Instruction:
    """The start value of a row or chunk."""
    build = puller.builder
    value = scan.sig.op.identity(scan.sig.dtype)  # type: ignore[misc]
    identity = build.widened(build.constant(value, Type(scan.type.scalar)), scan.type.width)
    if scan.totals < 0:
        return identity
    size = scan.sizes[scan.axis] - 1
    before = at[scan.axis].shifted(-1)
    place = tuple(before.limited(size) if axis == scan.axis else each for axis, each in enumerate(at))
    given = build.widened(puller.pull(scan.totals, place), scan.type.width)
    return build.select(puller.within(before, size), given, identity)


def _sums(
    scan: Scan,
    puller: Puller,
    at: list[Index],
    total: Instruction,
    first: Instruction,
    stop: Instruction,
    steps: int,
) -> None:
    """Runs of BLOCK steps, each from 0, added to the total before them."""
    build = puller.builder
    zero = build.widened(build.constant(0, Type(scan.type.scalar)), scan.type.width)
    stretch = build.constant(BLOCK)
    outer = build.open_loop(first, stop, stretch)
    before = build.here("read", scan.type, (total,))
    run = build.here("register", scan.type, (zero,))
    end = build.arithmetic("min", build.arithmetic("+", outer, stretch), stop)
    loop = build.open_loop(outer, end, build.constant(1))
    _step(scan, puller, at, run, puller.loop_index(loop, steps, scan.vector), before)
    build.close()
    whole = build.here("apply", scan.type, (before, build.here("read", scan.type, (run,))), scan.fold)
    build.here("write", None, (total, whole))
    build.close()


def _step(
    scan: Scan,
    puller: Puller,
    at: list[Index],
    register: Instruction,
    place: Index,
    before: Instruction | None,
) -> None:
    """One element, or four of a row, or one of four rows: the register goes on, and results are stored."""
    build = puller.builder
    indices = tuple(place if axis == scan.axis else each for axis, each in enumerate(at))
    value = build.widened(puller.pull(scan.source, indices), 4 if scan.vector or scan.by_lanes else 1)
    total, parts = build.here("read", scan.type, (register,)), []
    for lane in range(4 if scan.vector else 1):
        each = build.lane(value, lane) if scan.vector else value
        total = build.here("apply", scan.type, (total, each), scan.fold)
        parts.append(total if before is None else build.here("apply", scan.type, (before, total), scan.fold))
    build.here("write", None, (register, total))
    result = build.lanes(parts) if scan.vector else parts[0]
    puller.store(scan.output, flatten(indices, scan.sig.shape), result)
