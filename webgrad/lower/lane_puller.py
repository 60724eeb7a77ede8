"""Pulling for a target that widens loops itself: every value has one lane, and the loop to widen is marked.

In: a group. Out: instructions in a `Builder`, and then a `Work`: a kernel over the units begin..end, how many
units there are, and what one costs. What is outside of a padded value is not loaded: loads have guards, which
the target makes masks of. A fold is one instruction, so that the target may fold lanes together after the
loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from ..schedule.axes import runs_of
from ..schedule.plan import Group
from .index import ZERO, Index, constant, flatten, unflatten
from .ir import U32, Instruction, Kernel, Type, Work
from .passes import drop_unused, fold_constants, share_values
from .pull import Indices, Puller
from .threads import name_of
from .unroll import window_folds

BLOCK = 64  # terms added in one go, and sums of them, and so on; where lanes go along, over all lanes:
BLOCK_OF_LANES = 1024
SHORT = 8  # turns of a loop from which it may be the one that is widened
MOST_WRITTEN = 12  # elements of an axis
ELEMENT = 8  # what an element costs, in multiplications


@dataclass(slots=True)
class KeptRow:
    """A row of an output that holds a value's elements from the fold that computes them on: `row` has the
    indices of the row, `place` is where the walk that writes the row is.
    """

    output: int
    node: int
    row: Mapping[int, Index]
    place: Index | None = None
    is_stored: bool = False


class LanePuller(Puller):
    """Values at indices, one lane each; adjacent axes are folded as one unless they are kept `apart`."""

    def __init__(self, graph: Snapshot, group: Group, *, apart: bool = False) -> None:
        super().__init__(graph, group.outputs, group.reads)
        self.unrolled = window_folds(graph, group.inside)
        self.guard: Instruction | None = None  # under which loads are made
        self.strides: list[int] = []  # of loads, along the widened loop
        self.lane: Index = ZERO
        self.kept: KeptRow | None = None
        self.apart = apart

    def _key(self, number: int, indices: Indices) -> tuple[Any, ...]:
        return ("pull", id(self.guard), number, indices)

    # Loops

    def open(
        self, start: Instruction, stop: Instruction, size: int, *, lanes: bool = False, tiles: bool = False
    ) -> Index:
        """Begin a loop over an index below `size`."""
        loop = self.builder.open_loop(start, stop, self.builder.constant(1))
        loop.data = "lanes" if lanes else "tile" if tiles else None
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

    # Kept rows

    def _keep(self, number: int, at: Indices, value: Instruction) -> None:
        """Store an element of the value that a row keeps."""
        kept = self.kept
        if kept is None or number != kept.node or self.guard is not None:
            return
        if all(at[axis] == index for axis, index in kept.row.items()):
            self.store(kept.output, flatten(at, self.graph.sigs[number].shape), value)
            kept.is_stored = True

    def _is_kept(self, number: int, indices: Indices) -> bool:
        kept = self.kept
        if kept is None or number != kept.node or not kept.is_stored:
            return False
        return flatten(indices, self.graph.sigs[number].shape) == kept.place

    def _sources(self, number: int, indices: Indices) -> list[tuple[int, Indices]]:
        return [] if self._is_kept(number, indices) else super()._sources(number, indices)

    def _pull(self, number: int, indices: Indices) -> Instruction:
        if self.kept is None or not self._is_kept(number, indices):
            return super()._pull(number, indices)
        sig = self.graph.sigs[number]
        place = self.builder.index(flatten(indices, sig.shape))
        return self.builder.here("load", Type(sig.dtype.compute), (place,), self.numbers[self.kept.output])

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
        spread = self._written_axis(axes, shape)
        last = [axis for axis, size in enumerate(shape) if size != 1][-1:]
        lanes = not self._in_lanes() and bool(last) and last[0] in axes
        type, fold = Type(sig.dtype.compute), TABLE[str(sig.op.wgsl)]
        identity = build.constant(sig.op.identity(sig.dtype), type)  # type: ignore[misc]
        register = build.here("register", type, (identity,))
        sums, folded, opened = [register], dict.fromkeys(sig.attributes[0], ZERO), 0
        inside = list[int]()  # how many loops are around each sum of a block
        along = [axis for axis in axes if axis != spread]
        runs = [[axis] for axis in along] if self.apart and along else runs_of(along)
        for run in runs:
            sizes = [shape[axis] for axis in run]
            length, innermost = math.prod(sizes), run is runs[-1]
            start, stop = build.constant(0), build.size(length)
            block, inner = 0, math.prod(shape[axis] for axis in axes if axis > run[-1] and axis != spread)
            if sig.dtype.kind == "f" and sig.op.wgsl == "add":
                block = (BLOCK_OF_LANES if lanes else BLOCK) // max(inner, 1)
            for size in _nested(block, length):
                start = build.open_loop(start, stop, build.constant(size))
                opened += 1
                sums.append(build.here("register", type, (identity,)))
                inside.append(opened)
                stop = build.arithmetic("min", build.arithmetic("+", start, build.constant(size)), stop)
            place = self.open(start, stop, length, lanes=lanes and innermost)
            opened += 1
            folded |= dict(zip(run, unflatten(place, sizes), strict=True))
        for each in range(shape[spread] if spread is not None else 1):
            if spread is not None:
                folded[spread] = constant(each)
            kept = iter(indices)
            at = tuple(folded[axis] if axis in folded else next(kept) for axis in range(len(shape)))
            value = self.pull(source, at)
            build.here("fold", None, (sums[-1], value), fold)
            self._keep(source, at, value)
        while len(sums) > 1:
            self.close(opened - inside[-1])
            opened, block_sum = inside.pop(), build.here("read", type, (sums.pop(),))
            build.here("fold", None, (sums[-1], block_sum), fold)
        self.close(opened)
        total = build.here("read", type, (register,))
        build.blocks += suspended
        return self._wrapped(total, sig.dtype)

    def _written_axis(self, axes: list[int], shape: Sequence[int]) -> int | None:
        """A short axis whose elements are folded one after another in the code, as those of windows are: what
        they need of the lanes' index is then computed once.
        """
        return axes[-1] if len(axes) > 1 and self._in_lanes() and shape[axes[-1]] <= MOST_WRITTEN else None


def _nested(block: int, length: int) -> list[int]:
    """The sizes of nested blocks of a long sum, the largest first."""
    sizes: list[int] = []
    while block and block < length:
        sizes.insert(0, block)
        block *= BLOCK
    return sizes


def made_work(
    graph: Snapshot, group: Group, puller: LanePuller, units: int, cost: int, rows: int = 0
) -> Work:
    """The kernel that a puller has written, as work."""
    scalars = tuple((number, graph.sigs[number].dtype) for number in puller.scalars)
    kernel = Kernel(name_of(graph, group), tuple(puller.buffers), scalars, puller.builder.body(), 1, units)
    for each in (fold_constants, share_values, drop_unused):
        kernel = each(kernel)
    return Work(kernel, units, cost, rows)
