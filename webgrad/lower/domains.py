"""Domains: which index is the thread and where the loops run, chosen for a device over one group.

In: a schedule's groups and a device's profile. Out: a `Kernel`. On software adapters a thread takes a stretch
of elements or a row; on GPUs four elements are a thread, and a workgroup shares a long row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..device_profile import DeviceProfile
from ..graph.snapshot import Snapshot
from ..schedule.plan import Group, folded_along, goes_by_fours, is_flat, joins_pairs
from ..schedule.size import MAX_SIZE
from .choices import Choice
from .index import ZERO, Index, constant, flatten, unflatten
from .ir import U32, Kernel
from .pull import Puller
from .size import emitted_size
from .threads import Threads, deal, kernel_of, open_steps
from .unroll import window_folds

WIDE_ROW = 64  # steps of a row from which a workgroup shares it on GPUs
FEW_ROWS = 256  # rows up to which sharing one may pay on software adapters, where a barrier is costly
LONGEST_ALONE = (
    1 << 16
)  # elements of a row that one thread of a GPU may be given: a watchdog ends longer kernels
SHORT_ROW = 16  # elements of the last axis from which a thread takes whole rows


def _puller(graph: Snapshot, group: Group) -> Puller:
    puller = Puller(graph, group.outputs, group.reads)
    puller.unrolled = window_folds(graph, group.inside)
    return puller


# Maps


def lower_maps(graph: Snapshot, groups: list[Group], profile: DeviceProfile) -> Kernel:
    """Map groups, one after another in the same launch."""
    if len(groups) == 1:
        return _lower_map(graph, groups[0], profile)
    outputs = [each for group in groups for each in group.outputs]
    reads = dict.fromkeys(each for group in groups for each in group.reads)
    puller = Puller(graph, outputs, [each for each in reads if each not in outputs])
    first = 0
    for group in groups:
        # Element by element if short: with fours there are four times as many loads and stores to compile.
        vector = goes_by_fours(graph, group, profile)
        threads = deal(profile, _steps(graph, group, vector))
        build = puller.builder
        number = build.emit("thread", U32, (), "group")
        build.open_if(build.compare("<", number, build.size(first + threads.groups)))
        build.open_if(build.compare(">=", number, build.size(first)))
        _flat_map(puller, group, threads, first, vector=vector)
        build.close()
        build.close()
        first += threads.groups
    return kernel_of(groups[0], puller, threads.workgroup, first)


def _lower_map(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    sig = graph.sigs[group.outputs[0]]
    packed = any(graph.sigs[each].dtype.is_packed for each in group.outputs)
    if sig.shape[-1:] == (2,) and not packed and any(joins_pairs(graph, each) for each in group.inside):
        return _by_pairs(graph, group, profile)
    columns = sig.shape[-1] if sig.shape else 1
    whole = sig.size % 4 == 0 and (packed or columns % 4 == 0)
    padded = is_flat(graph, group) and (sig.size % 4 == 0 or not _wide(graph, group))
    forms = [_by_fours if whole or padded else _by_clamped_fours if packed else _by_ones]
    if columns >= SHORT_ROW and profile.kind == "software" and (columns % 4 == 0 or not packed):
        forms.append(_by_rows)
    kernel = forms[0](graph, group, profile)
    if len(forms) > 1 and _divisions(kernel):
        kernel = forms[1](graph, group, profile)
    if (
        not packed and emitted_size(kernel) > MAX_SIZE
    ):  # with fours there are four times as many loads and stores
        kernel = _by_ones(graph, group, profile)
    return kernel


def _wide(graph: Snapshot, group: Group) -> bool:
    """Whether it touches 64-bit elements: four of them are more than the padding of a buffer."""
    return any(graph.sigs[each].dtype.itemsize == 8 for each in (*group.reads, *group.outputs))


def _divisions(kernel: Kernel) -> int:
    """The number of divisions, or of loads of single lanes, for every element."""
    depth = count = 0
    for each in kernel.body:
        depth += (each.op in ("loop", "if")) - (each.op in ("end_loop", "end_if"))
        if depth and each.op == "arithmetic" and each.data in "/%":
            count += 1
    return count


def _by_fours(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    return _by_steps(graph, group, profile, vector=True)


def _by_clamped_fours(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """Packed results whose length is not a multiple of four: spare lanes repeat the last element."""
    return _by_steps(graph, group, profile, vector=True, clamped=True)


def _by_ones(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    return _by_steps(graph, group, profile, vector=False)


def _by_steps(
    graph: Snapshot, group: Group, profile: DeviceProfile, *, vector: bool, clamped: bool = False
) -> Kernel:
    """A step is four elements in memory, or one."""
    threads = deal(profile, _steps(graph, group, vector))
    puller = _puller(graph, group)
    _flat_map(puller, group, threads, vector=vector, clamped=clamped)
    return kernel_of(group, puller, threads.workgroup, threads.groups)


def _steps(graph: Snapshot, group: Group, vector: bool) -> int:
    size = graph.sigs[group.outputs[0]].size
    return -(-size // 4) if vector else size


def _flat_map(
    puller: Puller,
    group: Group,
    threads: Threads,
    first_group: int = 0,
    *,
    vector: bool,
    clamped: bool = False,
) -> None:
    place = puller.loop_index(open_steps(puller, threads, first_group), threads.count, vector)
    size = puller.graph.sigs[group.outputs[0]].size
    _store_all(puller, group, place, place.limited(size) if clamped else place)
    puller.builder.close()


def _store_all(puller: Puller, group: Group, place: Index, read_at: Index) -> None:
    values = [puller.pull(each, unflatten(read_at, puller.graph.sigs[each].shape)) for each in group.outputs]
    for each, value in zip(group.outputs, values, strict=True):
        puller.store(each, place, value)


def _by_pairs(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """Complex numbers: a thread computes both parts of four of them, or of one."""
    *sizes, _ = graph.sigs[group.outputs[0]].shape
    count = math.prod(sizes)
    for vector in (True, False) if count % 4 == 0 else (False,):
        threads = deal(profile, count // 4 if vector else count)
        puller = _puller(graph, group)
        place = puller.loop_index(open_steps(puller, threads), threads.count, vector)
        at = unflatten(place, sizes)
        values = [[puller.pull(each, (*at, constant(part))) for part in (0, 1)] for each in group.outputs]
        for each, parts in zip(group.outputs, values, strict=True):
            puller.store_pairs(each, place, parts)
        puller.builder.close()
        kernel = kernel_of(group, puller, threads.workgroup, threads.groups)
        quick = sizes[-1:] and (sizes[-1] % 4 == 0 or not _divisions(kernel))
        if quick and emitted_size(kernel) <= MAX_SIZE:
            break
    return kernel


def _by_rows(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """A thread takes whole rows of the last axis: what depends only on the row is computed once."""
    shape = graph.sigs[group.outputs[0]].shape
    rows, columns = math.prod(shape[:-1]), shape[-1]
    vector = columns % 4 == 0
    steps = columns // 4 if vector else columns
    threads = deal(profile, rows, steps)
    puller = _puller(graph, group)
    row_index = puller.loop_index(open_steps(puller, threads), rows, vector=False)
    build = puller.builder
    loop = build.open_loop(build.constant(0), build.size(steps), build.constant(1))
    place = row_index * columns + puller.loop_index(loop, steps, vector)
    _store_all(puller, group, place, place)
    build.close()
    build.close()
    return kernel_of(group, puller, threads.workgroup, threads.groups)


# Rows


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a group: their sizes, and the number and length of steps."""

    sizes: list[int]
    rows: int
    steps: int  # rows, or groups of four of them
    work: int  # elements of a row: folded ones and written ones
    long: bool  # whether a workgroup may share a row: its folds go along the last axis in memory
    length: int
    by_lanes: bool


def _rows_of(graph: Snapshot, group: Group) -> _Rows:
    sig = graph.sigs[group.outputs[0]]
    sizes = [sig.shape[axis] for axis in group.row_axes[0]]
    rows, spread = math.prod(sizes), 0
    for output, axes in zip(group.outputs, group.row_axes, strict=True):
        spread += math.prod(graph.sigs[output].shape[axis] for axis in _free(graph, output, axes))
    along, length = folded_along(graph, group)
    # Lanes are rows where rows are adjacent in memory; four lanes of a packed result must be one word.
    across = not along and bool(sizes) and sizes[-1] % 4 == 0
    by_lanes = not _free(graph, group.outputs[0], group.row_axes[0]) if sig.dtype.is_packed else across
    steps = -(-rows // 4) if by_lanes else rows
    return _Rows(sizes, rows, steps, length + spread, along and not by_lanes, length, by_lanes)


def _free(graph: Snapshot, output: int, row_axes: tuple[int, ...]) -> list[int]:
    """The axes of an output along which a row runs."""
    shape = graph.sigs[output].shape
    return [axis for axis, size in enumerate(shape) if size != 1 and axis not in row_axes]


def row_choices(graph: Snapshot, group: Group, profile: DeviceProfile) -> tuple[Choice, ...]:
    """Ways to assign rows: `threads` of a workgroup share one, or a thread takes `rows` of them."""
    if _is_written_out(graph, group):
        return ()
    shape = _rows_of(graph, group)
    default = _deal_rows(profile, shape)
    if profile.kind == "software":
        (_, _), (_, chunk) = default
        dealt = [chunk, 4 * chunk, chunk // 4, -(-shape.steps // 64)]
        shared = [8] if shape.rows <= FEW_ROWS else []
    else:
        dealt = [1] if shape.length <= LONGEST_ALONE else []
        shared = [256, 128, 64]
    offered = [default, *((("threads", 1), ("rows", each)) for each in dealt if 0 < each <= shape.steps)]
    offered += [
        (("threads", each), ("rows", 1))
        for each in shared
        if shape.long and shape.length >= each and each <= profile.max_invocations
    ]
    return tuple(dict.fromkeys(offered))


def _is_written_out(graph: Snapshot, group: Group) -> bool:
    """Whether all its folds are over small windows: then it is a map whose folds have no loops."""
    folds = {each for each in group.inside if graph.sigs[each].kind == "reduce"}
    return window_folds(graph, group.inside) == folds


def _deal_rows(profile: DeviceProfile, shape: _Rows) -> Choice:
    """The default: on GPUs a workgroup shares a long row, else a thread takes as many rows as pay."""
    if shape.long and profile.kind != "software" and shape.length // 4 >= WIDE_ROW:
        return (("threads", min(256, profile.max_invocations)), ("rows", 1))
    threads = deal(profile, shape.steps, max(1, shape.work // 4))
    return (("threads", 1), ("rows", threads.chunk))


def lower_rows(graph: Snapshot, group: Group, profile: DeviceProfile, choice: Choice | None = None) -> Kernel:
    """Folds, with maps before, between and after them: one row at a time."""
    if _is_written_out(graph, group):
        return _lower_map(graph, group, profile)
    shape = _rows_of(graph, group)
    dealt = dict(choice or _deal_rows(profile, shape))
    puller = _puller(graph, group)
    build = puller.builder
    if dealt["threads"] > 1:
        workgroup, groups = dealt["threads"], shape.rows
        puller.threads = workgroup
        # Beyond the last row it is computed again: barriers need every thread.
        row = build.arithmetic("min", build.emit("thread", U32, (), "group"), build.size(shape.rows - 1))
    else:
        looped = profile.kind == "software"
        threads = Threads(shape.steps, dealt["rows"], 8 if looped else 64, looped)
        row = open_steps(puller, threads)
        workgroup, groups = threads.workgroup, threads.groups
        puller.row_depth = 1
    row_index = puller.loop_index(row, shape.steps, shape.by_lanes)
    clamped = row_index.limited(shape.rows) if shape.by_lanes and shape.rows % 4 else row_index
    for output, axes in zip(group.outputs, group.row_axes, strict=True):
        _store_row(puller, output, axes, row_index, clamped, shape.sizes)
    if puller.row_depth:
        build.close()
    return kernel_of(group, puller, workgroup, groups)


def _store_row(
    puller: Puller, output: int, row_axes: tuple[int, ...], row: Index, clamped: Index, sizes: list[int]
) -> None:
    shape, build = puller.graph.sigs[output].shape, puller.builder
    free = _free(puller.graph, output, row_axes)
    at = dict(zip(row_axes, unflatten(clamped, sizes), strict=True))
    if not free:
        indices = tuple(at.get(axis, ZERO) for axis in range(len(shape)))
        value = puller.pull(output, indices)
        if puller.threads > 1:
            local = build.emit("thread", U32, (), "local")
            build.open_if(build.compare("<", local, build.constant(1)))
            puller.store(output, row, value)
            build.close()
        else:
            puller.store(output, row, value)
        return
    spreads = [shape[axis] for axis in free]
    spread = math.prod(spreads)
    lanes = build.has_lanes(row)
    last = [axis for axis, size in enumerate(shape) if size != 1][-1]
    vector = not lanes and last in free and shape[last] % 4 == 0
    steps = spread // 4 if vector else spread
    start, step = build.constant(0), build.constant(1)
    if puller.threads > 1:
        start, step = build.emit("thread", U32, (), "local"), build.constant(puller.threads)
    loop = build.open_loop(start, build.size(steps), step)
    at |= dict(zip(free, unflatten(puller.loop_index(loop, steps, vector), spreads), strict=True))
    indices = tuple(at.get(axis, ZERO) for axis in range(len(shape)))
    puller.store(output, flatten(indices, shape), puller.pull(output, indices))
    build.close()
