"""Lowering for a target that widens loops itself: rows and scans, and the table of all kinds.

In: a group. Out: a `Work`. Lanes go along a row, or each lane has a row of its own: as elements that are
needed together lie side by side in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..graph.snapshot import Snapshot
from ..schedule.plan import Group, folded_along
from .index import ZERO, Index, flatten, unflatten
from .ir import Instruction, Type, Work
from .lane_maps import divisions, lower_map
from .lane_puller import ELEMENT, SHORT, KeptRow, LanePuller, made_work
from .lane_scatters import lower_scatter
from .pull import Indices
from .scan import Scan
from .unroll import window_folds

RUN = 64  # terms of a running sum that begins at 0
WINDOW = 1 << 8  # elements of a window, at most, for which lanes are results
LEAST_APART = 16  # elements of an axis that is folded by itself
MIN_KEPT_COST = 8  # of an op, from which a store and a load take less
STRETCH = 128  # rows of a unit where lanes are rows of a flat range


# Rows


def lower_rows(graph: Snapshot, group: Group) -> Work:
    """Folds, with maps before, between and after them: one row at a time, or a row to a lane."""
    folds = {each for each in group.inside if graph.sigs[each].kind == "reduce"}
    if window_folds(graph, group.inside) == folds:
        return lower_map(graph, group)
    shape = graph.sigs[group.outputs[0]].shape
    sizes = [shape[axis] for axis in group.row_axes[0]]
    along, length = folded_along(graph, group)
    windows = any(graph.sigs[each].op.name == "window" for each in group.inside)  # whose axes are short
    by_lanes = (not along or (windows and length <= WINDOW)) and bool(sizes) and sizes[-1] >= SHORT
    made = _rows(graph, group, length, by_lanes)
    if not by_lanes and _folds_long_axes(graph, folds):
        return min(
            made, _rows(graph, group, length, by_lanes, apart=True), key=lambda one: divisions(one.kernel)
        )
    return made


def _folds_long_axes(graph: Snapshot, folds: set[int]) -> bool:
    """Whether each fold over several axes has vectors along the last of them."""
    several = False
    for each in folds:
        shape = graph.sigs[graph.inputs[each][0]].shape
        axes = [axis for axis in sorted(graph.sigs[each].attributes[0]) if shape[axis] != 1]
        if len(axes) > 1:
            several = True
            if shape[axes[-1]] < LEAST_APART:
                return False
    return several


def _rows(graph: Snapshot, group: Group, length: int, by_lanes: bool, *, apart: bool = False) -> Work:
    """Rows whose longest fold has so many terms."""
    shape = graph.sigs[group.outputs[0]].shape
    sizes = [shape[axis] for axis in group.row_axes[0]]
    rows = math.prod(sizes)
    puller = LanePuller(graph, group, apart=apart)
    build, (begin, end) = puller.builder, puller.units()
    pairs = list(zip(group.outputs, group.row_axes, strict=True))
    spread = sum(math.prod(_free_sizes(graph, *each)) for each in pairs)
    units, cost, loops = rows, ELEMENT * (length + spread), 1
    if by_lanes and rows > sizes[-1]:
        units, cost, loops = rows // sizes[-1], cost * sizes[-1], 2
        outer = puller.open(begin, end, units)
        at = (*unflatten(outer, sizes[:-1]), puller.open_all(sizes[-1], lanes=True))
    else:
        if by_lanes and rows >= 2 * STRETCH:  # units are whole vectors
            stretch = build.constant(STRETCH)
            begin, end = (build.arithmetic("*", each, stretch) for each in (begin, end))
            end = build.arithmetic("min", end, build.size(rows))
            units, cost = -(-rows // STRETCH), cost * STRETCH
        at = unflatten(puller.open(begin, end, rows, lanes=by_lanes), sizes)
    for output, axes in pairs:
        _store_row(puller, group, output, axes, dict(zip(axes, at, strict=True)), by_lanes)
    puller.close(loops)
    return made_work(graph, group, puller, units, cost, (sizes[-1] if loops == 2 else rows) * by_lanes)


def _store_row(
    puller: LanePuller,
    group: Group,
    output: int,
    row_axes: tuple[int, ...],
    at: dict[int, Index],
    by_lanes: bool,
) -> None:
    shape = puller.graph.sigs[output].shape
    free = _free(puller.graph, output, row_axes)
    fold = _keeping_fold(puller.graph, group, output, free)
    if fold is not None:
        (node,) = puller.graph.inputs[fold]
        axes = puller.graph.sigs[fold].attributes[0]
        puller.kept = KeptRow(output, node, dict(at))
        puller.pull(fold, tuple(at.get(axis, ZERO) for axis in range(len(shape)) if axis not in axes))
    if free:
        sizes = [shape[axis] for axis in free]
        lanes = not by_lanes and [axis for axis, size in enumerate(shape) if size != 1][-1] in free
        place = puller.open_all(math.prod(sizes), lanes=lanes)
        at |= dict(zip(free, unflatten(place, sizes), strict=True))
    indices = tuple(at.get(axis, ZERO) for axis in range(len(shape)))
    if puller.kept is not None:
        puller.kept.place = flatten(indices, shape)
    puller.store(output, flatten(indices, shape), puller.pull(output, indices))
    puller.kept = None
    puller.close(bool(free))


def _keeping_fold(graph: Snapshot, group: Group, output: int, free: list[int]) -> int | None:
    """A fold over whole rows whose costly terms the output needs once more: they wait in its memory."""
    found, waiting = set[int](), [output]
    while waiting:
        number = waiting.pop()
        if number in group.inside and number not in found and graph.sigs[number].kind in ("map", "move"):
            found.add(number)
            waiting += graph.inputs[number]
    result = graph.sigs[output]
    for number in reversed(group.inside):
        sig = graph.sigs[number]
        if sig.kind != "reduce" or (source := graph.inputs[number][0]) not in found - set(group.outputs):
            continue
        term, shape = graph.sigs[source], graph.sigs[source].shape
        if term.kind != "map" or term.op.cost < MIN_KEPT_COST or term.dtype.is_packed:
            continue
        along = [axis for axis in sorted(sig.attributes[0]) if shape[axis] != 1]
        if along == free and (shape, term.dtype) == (result.shape, result.dtype):
            return number
    return None


def _free(graph: Snapshot, output: int, row_axes: tuple[int, ...]) -> list[int]:
    """The axes of an output along which a row runs."""
    shape = graph.sigs[output].shape
    return [axis for axis, size in enumerate(shape) if size != 1 and axis not in row_axes]


def _free_sizes(graph: Snapshot, output: int, row_axes: tuple[int, ...]) -> list[int]:
    return [graph.sigs[output].shape[axis] for axis in _free(graph, output, row_axes)]


# Scans


def lower_scan(graph: Snapshot, group: Group) -> Work:
    """Running totals along an axis; rows that lie side by side are lanes."""
    scan = Scan(graph, group)
    sizes, rows = scan.sizes, math.prod(scan.sizes)
    by_lanes = scan.axis != len(scan.sig.shape) - 1 and sizes[-1] >= SHORT
    puller = LanePuller(graph, group)
    begin, end = puller.units()
    units, cost, loops = rows, ELEMENT * scan.chunk, 1
    if by_lanes and rows > sizes[-1]:
        units, cost, loops = rows // sizes[-1], cost * sizes[-1], 2
        outer = puller.open(begin, end, units)
        at = (*unflatten(outer, sizes[:-1]), puller.open_all(sizes[-1], lanes=True))
    else:
        at = unflatten(puller.open(begin, end, rows, lanes=by_lanes), sizes)
    _scan_row(scan, puller, at)
    puller.close(loops)
    return made_work(graph, group, puller, units, cost, (sizes[-1] if loops == 2 else rows) * by_lanes)


def _scan_row(scan: Scan, puller: LanePuller, at: Indices) -> None:
    """A row, or a chunk of one: sums of floats are runs, each from 0, added to the total before them."""
    build, type = puller.builder, Type(scan.sig.dtype.compute)
    identity = build.constant(scan.sig.op.identity(scan.sig.dtype), type)  # type: ignore[misc]
    first, stop, start = build.constant(0), build.size(scan.length), identity
    if scan.totals >= 0:
        chunk = build.size(scan.chunk)
        first = build.arithmetic("*", build.index(at[scan.axis]), chunk)
        stop = build.arithmetic("min", build.arithmetic("+", first, chunk), stop)
        before = at[scan.axis].shifted(-1)
        inside = puller.within(before, scan.sizes[scan.axis] - 1)
        given = puller._guarded(inside, scan.totals, _with(at, scan.axis, before))
        start = build.select(inside, given, identity)
    total = build.here("register", type, (start,))
    if scan.sig.dtype.kind != "f" or scan.sig.op.wgsl != "add":
        _scan_step(scan, puller, at, puller.open(first, stop, scan.length), total, None)
        build.close()
        return
    outer = build.open_loop(first, stop, build.constant(RUN))
    before_run = build.here("read", type, (total,))
    run = build.here("register", type, (build.constant(0, type),))
    last = build.arithmetic("min", build.arithmetic("+", outer, build.constant(RUN)), stop)
    _scan_step(scan, puller, at, puller.open(outer, last, scan.length), run, before_run)
    build.close()
    build.here("fold", None, (total, build.here("read", type, (run,))), scan.fold)
    build.close()


def _scan_step(
    scan: Scan, puller: LanePuller, at: Indices, place: Index, run: Instruction, before: Instruction | None
) -> None:
    build, type = puller.builder, Type(scan.sig.dtype.compute)
    indices = _with(at, scan.axis, place)
    build.here("fold", None, (run, puller.pull(scan.source, indices)), scan.fold)
    result = build.here("read", type, (run,))
    if before is not None:
        result = build.here("apply", type, (before, result), scan.fold)
    puller.store(scan.output, flatten(indices, scan.sig.shape), result)


def _with(at: Indices, axis: int, place: Index) -> Indices:
    return (*at[:axis], place, *at[axis + 1 :])


LOWER: dict[str, Callable[[Snapshot, Group], Work]] = {
    "map": lower_map,
    "rows": lower_rows,
    "scan": lower_scan,
    "scatter": lower_scatter,
}
