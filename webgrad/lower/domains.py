"""Domains: which index is the thread and where the loops run, chosen for a device over one group.

In: a schedule's groups and a device's profile. Out: a `Kernel`. On software adapters a thread takes a stretch
of elements or a row; on GPUs four elements are a thread, and a workgroup shares a long row.
"""

from __future__ import annotations

import math

from ..graph.snapshot import Snapshot
from ..runtime.profile import DeviceProfile
from ..schedule.plan import Group
from .index import Index, flatten, unflatten
from .ir import U32, Kernel
from .pull import Puller
from .threads import Threads as _Threads
from .threads import close as _close
from .threads import deal as _deal
from .threads import kernel_of as _kernel
from .threads import name_of
from .threads import open_steps as _open_steps

__all__ = ["lower_maps", "lower_rows", "name_of"]

WIDE_ROW = 64  # steps of a row from which a workgroup shares it on GPUs
SHORT_ROW = 16  # elements of a last axis from which a map goes row by row


# Maps


def lower_maps(graph: Snapshot, groups: list[Group], profile: DeviceProfile) -> Kernel:
    """Map groups, one after another in the same launch."""
    if len(groups) == 1:
        return _lower_map(graph, groups[0], profile)
    outputs = [each for group in groups for each in group.outputs]
    reads = dict.fromkeys(each for group in groups for each in group.reads)
    puller = Puller(graph, outputs, [each for each in reads if each not in outputs])
    # One by one: with fours there are four times the loads and stores to compile, for every group anew.
    vector = any(graph.sigs[each].dtype.itemsize < 4 for each in outputs)
    first = 0
    for group in groups:
        size = graph.sigs[group.outputs[0]].size
        threads = _deal(profile, -(-size // 4) if vector else size)
        build = puller.builder
        number = build.emit("thread", U32, (), "group")
        build.open_if(build.compare("<", number, build.size(first + threads.groups)))
        build.open_if(build.compare(">=", number, build.size(first)))
        _flat_map(puller, group, threads, first, vector=vector)
        _close(puller, 2)
        first += threads.groups
    return _kernel(graph, groups[0], puller, threads.workgroup, first)


def _lower_map(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    sig = graph.sigs[group.outputs[0]]
    packed = any(graph.sigs[each].dtype.itemsize < 4 for each in group.outputs)
    columns = sig.shape[-1] if sig.shape else 1
    whole = sig.size % 4 == 0 and (packed or columns % 4 == 0)
    padded = is_flat(graph, group) and (sig.size % 4 == 0 or not _wide(graph, group))
    forms = [_by_fours if whole or padded else _by_clamped_fours if packed else _by_ones]
    if columns >= SHORT_ROW and profile.kind == "software" and (columns % 4 == 0 or not packed):
        forms.append(_by_rows)
    kernel = forms[0](graph, group, profile)
    if len(forms) > 1 and _divisions(kernel):
        kernel = forms[1](graph, group, profile)
    return kernel


def _wide(graph: Snapshot, group: Group) -> bool:
    """Whether it touches 64-bit elements: four of them are more than the padding of a buffer."""
    return any(graph.sigs[each].dtype.itemsize == 8 for each in (*group.reads, *group.outputs))


def is_flat(graph: Snapshot, group: Group) -> bool:
    """Whether all that is read is read at the place that is written to, or is one number."""
    shape = graph.sigs[group.outputs[0]].shape
    return all(
        graph.sigs[each].kind in ("map", "cast") and graph.sigs[each].shape in (shape, ())
        for each in group.inside
    ) and all(graph.sigs[each].shape == shape or graph.sigs[each].size == 1 for each in group.reads)


def _divisions(kernel: Kernel) -> int:
    """How many divisions are done for every element, or loads one by one."""
    depth = count = 0
    for each in kernel.body:
        depth += (each.op in ("loop", "if")) - (each.op in ("end_loop", "end_if"))
        if depth and each.op == "arithmetic" and each.data in "/%":
            count += 1
    return count


def _by_fours(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    threads = _deal(profile, -(-graph.sigs[group.outputs[0]].size // 4))
    puller = Puller(graph, group.outputs, group.reads)
    _flat_map(puller, group, threads)
    return _kernel(graph, group, puller, threads.workgroup, threads.groups)


def _flat_map(
    puller: Puller, group: Group, threads: _Threads, first_group: int = 0, *, vector: bool = True
) -> None:
    step, opened = _open_steps(puller, threads, first_group)
    place = puller.loop_index(step, threads.count, vector)
    _store_all(puller, group, place)
    _close(puller, opened)


def _by_clamped_fours(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """Packed results that are no whole groups of four: spare lanes repeat the last element."""
    size = graph.sigs[group.outputs[0]].size
    threads = _deal(profile, -(-size // 4))
    puller = Puller(graph, group.outputs, group.reads)
    step, opened = _open_steps(puller, threads)
    place = puller.loop_index(step, threads.count, vector=True)
    _store_all(puller, group, place, place.limited(size))
    _close(puller, opened)
    return _kernel(graph, group, puller, threads.workgroup, threads.groups)


def _by_ones(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    threads = _deal(profile, graph.sigs[group.outputs[0]].size)
    puller = Puller(graph, group.outputs, group.reads)
    step, opened = _open_steps(puller, threads)
    _store_all(puller, group, puller.loop_index(step, threads.count, vector=False))
    _close(puller, opened)
    return _kernel(graph, group, puller, threads.workgroup, threads.groups)


def _store_all(puller: Puller, group: Group, place: Index, read_at: Index | None = None) -> None:
    values = []
    for each in group.outputs:
        shape = puller.graph.sigs[each].shape
        values.append(puller.pull(each, unflatten(place if read_at is None else read_at, shape)))
    for each, value in zip(group.outputs, values, strict=True):
        puller.store(each, place, value)


def _by_rows(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """A thread takes whole rows of the last axis: what depends on the row is done once for it."""
    shape = graph.sigs[group.outputs[0]].shape
    rows, columns = math.prod(shape[:-1]), shape[-1]
    vector = columns % 4 == 0
    steps = columns // 4 if vector else columns
    threads = _deal(profile, rows, steps)
    puller = Puller(graph, group.outputs, group.reads)
    row, opened = _open_steps(puller, threads)
    row_index = puller.loop_index(row, rows, vector=False)
    build = puller.builder
    loop = build.open_loop(build.constant(0), build.size(steps), build.constant(1))
    place = row_index * columns + puller.loop_index(loop, steps, vector)
    _store_all(puller, group, place)
    _close(puller, opened + 1)
    return _kernel(graph, group, puller, threads.workgroup, threads.groups)


# Rows


def lower_rows(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """Folds, with maps before, between and after them: one row of the kept axes at a time."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    row_sides = [sig.shape[axis] for axis in group.row_axes]
    free = [axis for axis, side in enumerate(sig.shape) if side != 1 and axis not in group.row_axes]
    rows, spread = math.prod(row_sides), math.prod(sig.shape[axis] for axis in free)
    along, length = _folded(graph, group)
    puller = Puller(graph, group.outputs, group.reads)
    packed = sig.dtype.itemsize < 4
    # Lanes are rows where rows lie side by side; a packed result's four must be one word's.
    across = not along and bool(row_sides) and row_sides[-1] % 4 == 0
    by_lanes = not free if packed else across
    steps = -(-rows // 4) if by_lanes else rows
    build = puller.builder
    if along and not by_lanes and profile.kind != "software" and length // 4 >= WIDE_ROW:
        threads = _Threads(rows, 1, min(256, profile.max_invocations))
        puller.threads = threads.workgroup
        # A row that is not there is the last one again: barriers need every thread.
        row = build.arithmetic("min", build.emit("thread", U32, (), "group"), build.size(rows - 1))
        opened, groups = 0, rows
    else:
        threads = _deal(profile, steps, max(1, (length + spread) // 4))
        row, opened = _open_steps(puller, threads)
        groups = threads.groups
        puller.row_depth = opened
    row_index = puller.loop_index(row, steps, by_lanes)
    clamped = row_index.limited(rows) if by_lanes and rows % 4 else row_index
    _store_rows(puller, group, free, row_index, clamped, row_sides)
    _close(puller, opened)
    return _kernel(graph, group, puller, threads.workgroup, groups)


def _folded(graph: Snapshot, group: Group) -> tuple[bool, int]:
    """Whether the folds go along the last axis in memory, and how long the longest is."""
    along, length = False, 1
    for number in group.inside:
        sig = graph.sigs[number]
        if sig.kind == "reduce":
            shape = graph.sigs[graph.inputs[number][0]].shape
            last = [axis for axis, side in enumerate(shape) if side != 1][-1:]
            along = along or not last or last[0] in sig.attributes[0]
            length = max(length, math.prod(shape[axis] for axis in sig.attributes[0]))
    return along, length


def _store_rows(
    puller: Puller, group: Group, free: list[int], row: Index, clamped: Index, row_sides: list[int]
) -> None:
    (output,) = group.outputs
    shape, build = puller.graph.sigs[output].shape, puller.builder
    at = dict(zip(group.row_axes, unflatten(clamped, row_sides), strict=True))
    if not free:
        indices = tuple(at.get(axis, Index({}, 0)) for axis in range(len(shape)))
        value = puller.pull(output, indices)
        if puller.threads > 1:
            local = build.emit("thread", U32, (), "local")
            build.open_if(build.compare("<", local, build.constant(1)))
            puller.store(output, row, value)
            build.close()
        else:
            puller.store(output, row, value)
        return
    sides = [shape[axis] for axis in free]
    spread = math.prod(sides)
    lanes = build.has_lanes(row)
    last = [axis for axis, side in enumerate(shape) if side != 1][-1]
    vector = not lanes and last in free and shape[last] % 4 == 0
    steps = spread // 4 if vector else spread
    start, step = build.constant(0), build.constant(1)
    if puller.threads > 1:
        start, step = build.emit("thread", U32, (), "local"), build.constant(puller.threads)
    loop = build.open_loop(start, build.size(steps), step)
    at |= dict(zip(free, unflatten(puller.loop_index(loop, steps, vector), sides), strict=True))
    indices = tuple(at.get(axis, Index({}, 0)) for axis in range(len(shape)))
    puller.store(output, flatten(indices, shape), puller.pull(output, indices))
    build.close()
