"""Lowering for a target that widens loops itself: every value has one lane, and the loop to widen is marked.

In: a map, rows or scan group. Out: a `Work`: a kernel over the units begin..end, how many units there are,
and what one costs. What is outside of a padded value is not loaded: loads have guards, which the target makes
masks of. A fold is one instruction, so that the target may fold lanes together after the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from ..schedule.axes import runs_of
from ..schedule.plan import Group, folded_along, joins_pairs
from .index import ZERO, Index, constant, flatten, unflatten
from .ir import U32, Instruction, Kernel, Type, Work
from .passes import drop_unused, fold_constants, share_values
from .pull import Indices, Puller
from .scan import Scan
from .threads import name_of
from .unroll import window_folds

BLOCK = (
    64  # terms that are added in one go, and sums of them, and so on; where lanes go along, over all lanes
)
BLOCK_OF_LANES = 1024
RUN = 64  # terms of a running sum that begins at 0
SHORT = 8  # turns of a loop from which it may be the one that is widened
WINDOW = 1 << 8  # elements of a window, at most, for which lanes are results
STRETCH = 128  # rows of a unit where lanes are rows of a flat range
TILE = 32  # rows of a tile, where lanes are far apart in what is read
FAR = 4  # elements from lane to lane from which they are far apart
ELEMENT = 8  # what an element costs, in multiplications


class LanePuller(Puller):
    """Values at indices, one lane each."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        super().__init__(graph, group.outputs, group.reads)
        self.unrolled = window_folds(graph, group.inside)
        self.guard: Instruction | None = None  # under which loads are made
        self.strides: list[int] = []  # of loads, along the widened loop
        self.lane: Index = ZERO

    def _key(self, number: int, indices: Indices) -> tuple[Any, ...]:
        return ("pull", id(self.guard), number, indices)

    # Loops

    def open(self, start: Instruction, stop: Instruction, size: int, *, lanes: bool = False) -> Index:
        """Begin a loop over an index below `size`."""
        loop = self.builder.open_loop(start, stop, self.builder.constant(1))
        loop.data = "lanes" if lanes else None
        index = self.loop_index(loop, size, vector=False)
        if lanes:
            self.lane = index
        return index

    def open_all(self, size: int, *, lanes: bool = False) -> Index:
        """Begin a loop over all indices below `size`."""
        return self.open(self.builder.constant(0), self.builder.size(size), size, lanes=lanes)

    def close(self, count: int) -> None:
        """End the innermost loops."""
        for _ in range(count):
            self.builder.close()

    def units(self) -> tuple[Instruction, Instruction]:
        """The range of units that a call does."""
        first, last = (self.builder.emit("thread", U32, (), each) for each in ("begin", "end"))
        return first, last

    def _in_lanes(self) -> bool:
        return any(block.opener is not None and block.opener.data == "lanes" for block in self.builder.blocks)

    # Guards

    def _guarded(self, inside: Instruction, number: int, at: Indices) -> Instruction:
        """A value that is only loaded where a condition holds."""
        outer = self.guard
        self.guard = self.both(outer, inside)
        value = self.pull(number, at)
        self.guard = outer
        return value

    def _pad(self, number: int, indices: Indices) -> Instruction:
        source, filler = self.graph.inputs[number]
        inside: Instruction | None = None
        places: list[Index] = []
        sizes, widths = self.graph.sigs[source].shape, self.graph.sigs[number].attributes[0]
        for index, size, (before, _) in zip(indices, sizes, widths, strict=True):
            place = index.shifted(-before)
            if place.high < 0 or place.low >= size or not size:
                return self.pull(filler, ())
            if place.low < 0 or place.high >= size:
                inside = self.both(inside, self.within(place, size))
            places.append(place)
        if inside is None:
            return self.pull(source, tuple(places))
        value = self._guarded(inside, source, tuple(places))
        return self.builder.select(inside, value, self.pull(filler, ()))

    def _concat(self, number: int, indices: Indices) -> Instruction:
        sig, start = self.graph.sigs[number], 0
        (axis,) = sig.attributes
        value: Instruction | None = None
        for each in self.graph.inputs[number]:
            size = self.graph.sigs[each].shape[axis]
            if size and indices[axis].high >= start and indices[axis].low < start + size:
                place = indices[axis].shifted(-start)
                at = (*indices[:axis], place, *indices[axis + 1 :])
                if place.low >= 0 and place.high < size:
                    return self.pull(each, at)
                inside = self.within(place, size)
                part = self._guarded(inside, each, at)
                value = part if value is None else self.builder.select(inside, part, value)
            start += size
        return self._never_read(sig.dtype.compute) if value is None else value

    # Memory

    def load(self, buffer: int, place: Index) -> Instruction:
        """The element at a flat index."""
        build, type = self.builder, self.buffers[buffer].dtype.compute
        if not self.buffers[buffer].size:
            return self._never_read(type)
        self.strides += [abs(place.terms[atom]) for atom in self.lane.terms if atom in place.terms]
        args = (build.index(place),) if self.guard is None else (build.index(place), self.guard)
        return build.emit("load", Type(type), args, buffer)

    def store(self, number: int, place: Index, *values: Instruction) -> None:
        """Write an element, or two side by side."""
        self.builder.here("store", None, (self.builder.index(place), *values), self.numbers[number])

    # Folds

    def _reduce(self, number: int, indices: Indices) -> Instruction:
        """A loop over the folded axes, in the block where the kept indices and the guard are known."""
        if number in self.unrolled:
            return self._written_out(number, indices)
        sig, build = self.graph.sigs[number], self.builder
        (source,) = self.graph.inputs[number]
        shape = self.graph.sigs[source].shape
        depth = max((build.depth_of(index) for index in indices), default=0)
        if self.guard is not None:
            depth = max(depth, build.depths[id(self.guard)])
        suspended = build.outside(depth)
        axes = [axis for axis in sig.attributes[0] if shape[axis] != 1]
        last = [axis for axis, size in enumerate(shape) if size != 1][-1:]
        lanes = not self._in_lanes() and bool(last) and last[0] in axes
        type, fold = Type(sig.dtype.compute), TABLE[str(sig.op.wgsl)]
        identity = build.constant(sig.op.identity(sig.dtype), type)  # type: ignore[misc]
        register = build.here("register", type, (identity,))
        sums, folded, opened = [register], dict.fromkeys(sig.attributes[0], ZERO), 0
        runs = runs_of(axes)
        for run in runs:
            sizes = [shape[axis] for axis in run]
            length, innermost = math.prod(sizes), run is runs[-1]
            start, stop = build.constant(0), build.size(length)
            block = 0
            if innermost and sig.dtype.kind == "f" and sig.op.wgsl == "add":
                block = BLOCK_OF_LANES if lanes else BLOCK
            for size in _nested(block, length):
                start = build.open_loop(start, stop, build.constant(size))
                opened += 1
                sums.append(build.here("register", type, (identity,)))
                stop = build.arithmetic("min", build.arithmetic("+", start, build.constant(size)), stop)
            place = self.open(start, stop, length, lanes=lanes and innermost)
            opened += 1
            folded |= dict(zip(run, unflatten(place, sizes), strict=True))
        kept = iter(indices)
        at = tuple(folded[axis] if axis in folded else next(kept) for axis in range(len(shape)))
        build.here("fold", None, (sums[-1], self.pull(source, at)), fold)
        while len(sums) > 1:
            build.close()
            opened -= 1
            inner = sums.pop()
            build.here("fold", None, (sums[-1], build.here("read", type, (inner,))), fold)
        self.close(opened)
        total = build.here("read", type, (register,))
        build.blocks += suspended
        return self._wrapped(total, sig.dtype)


def _nested(block: int, length: int) -> list[int]:
    """The sizes of nested blocks of a long sum, the largest first."""
    sizes: list[int] = []
    while block and block < length:
        sizes.insert(0, block)
        block *= BLOCK
    return sizes


def _work(
    graph: Snapshot, group: Group, puller: LanePuller, units: int, cost: int, *, wide: bool = False
) -> Work:
    scalars = tuple((number, graph.sigs[number].dtype) for number in puller.scalars)
    kernel = Kernel(name_of(graph, group), tuple(puller.buffers), scalars, puller.builder.body(), 1, units)
    for each in (fold_constants, share_values, drop_unused):
        kernel = each(kernel)
    return Work(kernel, units, cost, wide)


# Maps


def lower_map(graph: Snapshot, group: Group) -> Work:
    """Flat, or with leading axes as an outer loop so that no index is divided in the loop that is widened."""
    shape = graph.sigs[group.outputs[0]].shape
    if len(shape) > 1 and shape[-1] == 2 and any(joins_pairs(graph, each) for each in group.inside):
        return _by_pairs(graph, group)
    best = None
    for split in range(max(1, len(shape))):
        outer, inner = math.prod(shape[:split]), math.prod(shape[split:])
        if split and (outer == 1 or inner < SHORT):
            continue
        made, strides = _map_form(graph, group, outer, inner, 1)
        if outer >= SHORT and max(strides, default=0) > FAR:
            made, _ = _map_form(graph, group, outer, inner, min(TILE, outer))
        count = _divisions(made.kernel)
        if best is None or count < best[0]:
            best = (count, made)
        if not count:
            break
    assert best is not None
    return best[1]


def _map_form(graph: Snapshot, group: Group, outer: int, inner: int, tile: int) -> tuple[Work, list[int]]:
    """`outer` rows of `inner` elements: flat if there is one, else row by row, or by tiles of rows."""
    puller = LanePuller(graph, group)
    build, (begin, end) = puller.builder, puller.units()
    if outer == 1:
        place = puller.open(begin, end, inner, lanes=True)
        loops, units, cost = 1, inner, ELEMENT
    elif tile == 1:
        row = puller.open(begin, end, outer)
        place = row * inner + puller.open_all(inner, lanes=True)
        loops, units, cost = 2, outer, ELEMENT * inner
    else:
        unit = build.index(puller.open(begin, end, -(-outer // tile)))
        first = build.arithmetic("*", unit, build.constant(tile))
        last = build.arithmetic("min", build.arithmetic("+", first, build.constant(tile)), build.size(outer))
        column = puller.open_all(inner, lanes=True)
        place = puller.open(first, last, outer) * inner + column
        loops, units, cost = 3, -(-outer // tile), ELEMENT * inner * tile
    values = [puller.pull(each, unflatten(place, graph.sigs[each].shape)) for each in group.outputs]
    for each, value in zip(group.outputs, values, strict=True):
        puller.store(each, place, value)
    puller.close(loops)
    return _work(graph, group, puller, units, cost), puller.strides


def _by_pairs(graph: Snapshot, group: Group) -> Work:
    """Complex numbers: a lane computes both parts of one."""
    *sizes, _ = graph.sigs[group.outputs[0]].shape
    count = math.prod(sizes)
    puller = LanePuller(graph, group)
    place = puller.open(*puller.units(), count, lanes=True)
    at = unflatten(place, sizes)
    values = [[puller.pull(each, (*at, constant(part))) for part in (0, 1)] for each in group.outputs]
    for each, parts in zip(group.outputs, values, strict=True):
        puller.store(each, place * 2, *parts)
    puller.close(1)
    return _work(graph, group, puller, count, 2 * ELEMENT)


def _divisions(kernel: Kernel) -> int:
    """Divisions for every element of the widened loop."""
    depth = count = 0
    for each in kernel.body:
        if each.op == "loop":
            depth += each.data == "lanes" or depth > 0
        elif each.op == "end_loop":
            depth -= depth > 0
        elif depth and each.op == "arithmetic" and each.data in "/%":
            count += 1
    return count


# Rows


def lower_rows(graph: Snapshot, group: Group) -> Work:
    """Folds, with maps before, between and after them: one row at a time, or a row to a lane."""
    folds = {each for each in group.inside if graph.sigs[each].kind == "reduce"}
    if window_folds(graph, group.inside) == folds:
        return lower_map(graph, group)
    shape = graph.sigs[group.outputs[0]].shape
    sizes = [shape[axis] for axis in group.row_axes[0]]
    rows = math.prod(sizes)
    along, length = folded_along(graph, group)
    windows = any(graph.sigs[each].op.name == "window" for each in group.inside)  # whose axes are short
    by_lanes = (not along or (windows and length <= WINDOW)) and bool(sizes) and sizes[-1] >= SHORT
    puller = LanePuller(graph, group)
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
        _store_row(puller, output, axes, dict(zip(axes, at, strict=True)), by_lanes)
    puller.close(loops)
    return _work(graph, group, puller, units, cost, wide=by_lanes)


def _store_row(
    puller: LanePuller, output: int, row_axes: tuple[int, ...], at: dict[int, Index], by_lanes: bool
) -> None:
    shape = puller.graph.sigs[output].shape
    free = _free(puller.graph, output, row_axes)
    if free:
        sizes = [shape[axis] for axis in free]
        lanes = not by_lanes and [axis for axis, size in enumerate(shape) if size != 1][-1] in free
        place = puller.open_all(math.prod(sizes), lanes=lanes)
        at |= dict(zip(free, unflatten(place, sizes), strict=True))
    indices = tuple(at.get(axis, ZERO) for axis in range(len(shape)))
    puller.store(output, flatten(indices, shape), puller.pull(output, indices))
    puller.close(bool(free))


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
    return _work(graph, group, puller, units, cost, wide=by_lanes)


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
}
