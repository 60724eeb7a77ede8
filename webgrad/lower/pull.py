"""Pulling: the element of a node at these indices, as instructions.

Movement only rewrites indices, maps become values, a fold opens a loop in the block where its indices are
known, and a stored node is a load. In: a group's nodes. Out: instructions in a `Builder`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DType, int32, uint32
from ..graph.snapshot import Snapshot
from ..ops.blocks import FORMATS
from ..ops.table import TABLE
from .builder import LANE, Builder
from .index import Index, broadcast, constant, flatten, unflatten, variable
from .ir import U32, Buffer, Instruction, Size, Type
from .movement import moved

Indices = tuple[Index, ...]
BLOCK = 64  # terms added in one go: sums of sums keep the rounding error small


class Puller:
    """Values of nodes at indices, for one kernel. `threads` > 1: they share the folds at the rows' depth."""

    def __init__(self, graph: Snapshot, outputs: Sequence[int], reads: Sequence[int]) -> None:
        self.graph = graph
        self.builder = Builder()
        self.outputs = tuple(outputs)
        self.buffers: list[Buffer] = []
        self.numbers: dict[int, int] = {}  # value → index of its buffer
        self.scalars: dict[int, int] = {}
        self.given: dict[
            int, Callable[[Indices], Instruction]
        ] = {}  # value → function that gives it, for a contraction's result
        self.threads = 1
        self.row_depth = 0
        self.unrolled: frozenset[int] = frozenset()  # folds that are written out
        self._loops = 0
        for each in reads:
            self._bind(each, written=False)
        for each in outputs:
            self._bind(each, written=True)

    def _bind(self, value: int, written: bool) -> None:
        sig = self.graph.sigs[value]
        self.numbers[value] = len(self.buffers)
        self.buffers.append(Buffer(value, sig.dtype, sig.size, written))

    # Values

    def pull(self, number: int, indices: Indices) -> Instruction:
        """The value of a node at indices; what was pulled before in an open block is not computed again.

        Maps and movements are followed without recursion: a group may be a long chain of them.
        """
        waiting = [(number, indices)]
        while True:
            wanted = waiting[-1]
            value = self._known(*wanted)
            if value is None:
                missing = [each for each in self._sources(*wanted) if self._known(*each) is None]
                if missing:
                    waiting += reversed(missing)
                    continue
                value = self._pull(*wanted)
                self.builder.blocks[self.builder.depths[id(value)]].made[self._key(*wanted)] = value
            waiting.pop()
            if not waiting:
                return value

    def _key(self, number: int, indices: Indices) -> tuple[Any, ...]:
        """Under which a block remembers what was pulled."""
        return ("pull", number, indices)

    def _known(self, number: int, indices: Indices) -> Instruction | None:
        key = self._key(number, indices)
        for block in reversed(self.builder.blocks):
            found = block.made.get(key)
            if found is not None:
                return found
        return None

    def _sources(self, number: int, indices: Indices) -> list[tuple[int, Indices]]:
        """The inputs of a map, a cast or a movement, and their indices; empty for any other op."""
        sig, inputs = self.graph.sigs[number], self.graph.inputs[number]
        buffer = self.numbers.get(number)
        if number in self.given or (buffer is not None and not self.buffers[buffer].written):
            return []
        if sig.kind == "map":
            return [(each, broadcast(indices, self.graph.sigs[each].shape)) for each in inputs]
        if sig.kind == "cast":
            return [(inputs[0], indices)]
        if sig.kind == "move" and sig.op.name != "pad":
            return [(inputs[0], moved(sig, self.graph.sigs[inputs[0]].shape, indices))]
        return []

    def _pull(self, number: int, indices: Indices) -> Instruction:
        sig = self.graph.sigs[number]
        if number in self.given:
            return self.given[number](indices)
        if sig.kind == "scalar":
            if sig.attributes:  # a pass put it there
                return self.builder.constant(sig.attributes[0], Type(sig.dtype.compute))
            at = self.scalars.setdefault(number, len(self.scalars))
            return self.builder.emit("scalar", Type(sig.dtype.compute), (), at)
        buffer = self.numbers.get(number)
        if buffer is not None and not self.buffers[buffer].written:
            return self.load(buffer, flatten(indices, sig.shape))
        pull: Callable[[int, Indices], Instruction] = getattr(self, f"_{sig.kind}")
        return pull(number, indices)

    def _map(self, number: int, indices: Indices) -> Instruction:
        sig = self.graph.sigs[number]
        args = [self.pull(*each) for each in self._sources(number, indices)]
        value = self.builder.apply(sig.op, sig.dtype.compute, *args)
        return self._wrapped(value, sig.dtype)

    def _wrapped(self, value: Instruction, dtype: DType) -> Instruction:
        """An integer computed in 32 bits, wrapped to its dtype."""
        packed = dtype.is_packed and dtype.kind in "iu"
        return self.builder.cast(value, dtype.wide, dtype) if packed else value

    def _cast(self, number: int, indices: Indices) -> Instruction:
        sig = self.graph.sigs[number]
        (source,) = self.graph.inputs[number]
        value = self.pull(source, indices)
        return self.builder.cast(
            value, self.graph.sigs[source].dtype, sig.dtype, by_bits=sig.op.name == "bitcast"
        )

    def _iota(self, number: int, indices: Indices) -> Instruction:
        value = self.builder.index_lanes(indices[0])
        return self.builder.cast(value, uint32, self.graph.sigs[number].dtype)

    # Movement

    def _move(self, number: int, indices: Indices) -> Instruction:
        if self.graph.sigs[number].op.name == "pad":
            return self._pad(number, indices)
        return self.pull(*self._sources(number, indices)[0])

    def _pad(self, number: int, indices: Indices) -> Instruction:
        source, filler = self.graph.inputs[number]
        sig = self.graph.sigs[number]
        inside: Instruction | None = None
        places: list[Index] = []
        for index, size, (before, _) in zip(
            indices, self.graph.sigs[source].shape, sig.attributes[0], strict=True
        ):
            place = index.shifted(-before)
            if place.high < 0 or place.low >= size or not size:
                return self.pull(filler, ())
            if place.low < 0 or place.high >= size:
                inside = self.both(inside, self.within(place, size))
                place = place.limited(size)
            places.append(place)
        value = self.pull(source, tuple(places))
        if inside is None:
            return value
        return self.builder.select(inside, value, self.pull(filler, ()))

    def within(self, place: Index, size: int) -> Instruction:
        """Whether an index that may be negative (and then wraps) is below a size."""
        build = self.builder
        stop = build.size(size)
        if not build.has_lanes(place):
            return build.compare("<", build.index(place), stop)
        parts = [build.compare("<", build.index(build.in_lane(place, lane)), stop) for lane in range(4)]
        return build.lanes(parts)

    def both(self, a: Instruction | None, b: Instruction) -> Instruction:
        return b if a is None else self.builder.apply(TABLE["logical_and"], "bool", a, b)

    def _concat(self, number: int, indices: Indices) -> Instruction:
        """The input in which an index is; where lanes agree, only that one is loaded."""
        sig, build = self.graph.sigs[number], self.builder
        (axis,) = sig.attributes
        pieces = []
        start = 0
        for each in self.graph.inputs[number]:
            size = self.graph.sigs[each].shape[axis]
            if size and indices[axis].high >= start and indices[axis].low < start + size:
                pieces.append((each, start, size))
            start += size
        if not pieces:
            return self._never_read(sig.dtype.compute)
        if len(pieces) == 1:
            each, start, size = pieces[0]
            return self._piece(each, indices, axis, start, size)
        if not build.has_lanes(indices[axis]):
            return self._concat_branches(sig, indices, axis, pieces)
        value: Instruction | None = None
        for each, start, size in pieces:
            part = self._piece(each, indices, axis, start, size)
            if value is None:
                value = part
            else:
                value = build.select(self.within(indices[axis].shifted(-start), size), part, value)
        assert value is not None
        return value

    def _piece(self, number: int, indices: Indices, axis: int, start: int, size: int) -> Instruction:
        place = indices[axis].shifted(-start).limited(size)
        return self.pull(number, (*indices[:axis], place, *indices[axis + 1 :]))

    def _concat_branches(
        self, sig: Any, indices: Indices, axis: int, pieces: list[tuple[int, int, int]]
    ) -> Instruction:
        build = self.builder
        depth = max(build.depth_of(index) for index in indices)
        width = 4 if any(build.has_lanes(index) for index in indices) else 1
        type = Type(sig.dtype.compute, width)
        suspended = build.outside(max(depth, self._pinned_depth()))
        zero = build.widened(build.constant(0, Type(sig.dtype.compute)), width)
        register = build.here("register", type, (zero,))
        for each, start, size in pieces:
            build.open_if(self.within(indices[axis].shifted(-start), size))
            part = self._piece(each, indices, axis, start, size)
            build.here("write", None, (register, build.widened(part, width)))
            build.close()
        value = build.here("read", type, (register,))
        build.blocks += suspended
        return value

    def _pinned_depth(self) -> int:
        return max((at for at, block in enumerate(self.builder.blocks) if block.pinned), default=0)

    # Computed indices

    def _gather(self, number: int, indices: Indices) -> Instruction:
        sig = self.graph.sigs[number]
        source, index = self.graph.inputs[number]
        (axis,) = sig.attributes
        rank = len(self.graph.sigs[index].shape)
        if sig.op.name == "take":
            at = indices[axis : axis + rank]
            before, after = indices[:axis], indices[axis + rank :]
        else:
            at = broadcast(indices, self.graph.sigs[index].shape)
            whole = broadcast(indices, self.graph.sigs[source].shape)
            before, after = whole[:axis], whole[axis + 1 :]
        size = self.graph.sigs[source].shape[axis]
        place = self._place(self.pull(index, at), self.graph.sigs[index].dtype, size)
        return self.pull(source, (*before, self.builder.dynamic(place, size), *after))

    def _place(self, value: Instruction, dtype: Any, size: int) -> Instruction:
        """A computed index, clamped to 0 and size - 1."""
        build = self.builder
        if dtype is not uint32:
            value = build.cast(value, dtype, int32)
            value = build.cast(value, int32, uint32, by_bits=True)
        assert value.type is not None
        parts = []
        for lane in range(value.type.width):
            part = build.lane(value, lane)
            low = build.arithmetic("min", part, build.size(max(size - 1, 0)))
            if dtype.kind == "i":
                negative = build.compare(">=", part, build.constant(1 << 31))
                low = build.select(negative, build.constant(0), low)
            parts.append(low)
        return parts[0] if len(parts) == 1 else build.lanes(parts)

    def _decode(self, number: int, indices: Indices) -> Instruction:
        """Weights of quantised blocks: of all rows, or of the rows of an index."""
        words, *index = self.graph.inputs[number]
        name, shape = self.graph.sigs[number].attributes
        if index:
            sig = self.graph.sigs[index[0]]
            at, after = indices[: len(sig.shape)], indices[len(sig.shape) :]
            row = self._place(self.pull(index[0], at), sig.dtype, shape[0])
            indices = (self.builder.dynamic(row, shape[0]), *after)
        build, place = self.builder, flatten(indices, shape)
        data = (self.numbers[words], name)
        blocks = build.size(math.prod(shape) // FORMATS[name].weights, "blocks")
        group = self.group_of(place)
        if group is not None:
            return build.emit("decode", Type("f32", 4), (build.index(group), blocks), data)
        lanes = range(4) if build.has_lanes(place) else range(1)
        parts = [build.index(build.in_lane(place, lane)) for lane in lanes]
        return build.lanes([build.emit("decode", Type("f32"), (part, blocks), data) for part in parts])

    # Folds

    def _reduce(self, number: int, indices: Indices) -> Instruction:
        """A loop over the folded axes, in the block where the kept indices are known."""
        if number in self.unrolled:
            return self._written_out(number, indices)
        sig, build = self.graph.sigs[number], self.builder
        (source,) = self.graph.inputs[number]
        shape = self.graph.sigs[source].shape
        # Not outside of a condition: there its loads may be out of bounds.
        depth = max((build.depth_of(index) for index in indices), default=0)
        depth = max(depth, self._pinned_depth(), self.row_depth if self.threads > 1 else 0)
        suspended = build.outside(depth)
        lanes = any(build.has_lanes(index) for index in indices)
        axes = sig.attributes[0]
        sizes = [shape[axis] for axis in axes]
        length = math.prod(sizes)
        trailing = [axis for axis, size in enumerate(shape) if size != 1][-1:]
        vector = not lanes and bool(trailing) and trailing[0] in axes and shape[trailing[0]] % 4 == 0
        shared = self.threads if depth == self.row_depth else 1
        total = self._fold_loop(
            number, indices, axes, sizes, length // 4 if vector else length, vector, lanes, shared
        )
        build.blocks += suspended
        return total

    def _written_out(self, number: int, indices: Indices) -> Instruction:
        """A fold of a few elements, one after another."""
        sig, build = self.graph.sigs[number], self.builder
        (source,) = self.graph.inputs[number]
        shape, axes = self.graph.sigs[source].shape, sig.attributes[0]
        total: Instruction | None = None
        for place in itertools.product(*(range(shape[axis]) for axis in axes)):
            folded, kept = dict(zip(axes, map(constant, place), strict=True)), iter(indices)
            at = tuple(folded[axis] if axis in folded else next(kept) for axis in range(len(shape)))
            value = self.pull(source, at)
            fold = TABLE[str(sig.op.wgsl)]
            total = value if total is None else build.apply(fold, sig.dtype.compute, total, value)
        assert total is not None
        return self._wrapped(total, sig.dtype)

    def _fold_loop(
        self,
        number: int,
        indices: Indices,
        axes: tuple[int, ...],
        sizes: list[int],
        steps: int,
        vector: bool,
        lanes: bool,
        shared: int,
    ) -> Instruction:
        sig, build = self.graph.sigs[number], self.builder
        (source,) = self.graph.inputs[number]
        fold = TABLE[str(sig.op.wgsl)]
        compute = Type(sig.dtype.compute, 4 if vector or lanes else 1)
        start_value = sig.op.identity(sig.dtype)  # type: ignore[misc]
        identity = build.widened(build.constant(start_value, Type(compute.scalar)), compute.width)
        register = build.here("register", compute, (identity,))
        zero, stop = build.constant(0), build.size(steps)
        blocked = sig.dtype.kind == "f" and sig.op.wgsl == "add"
        inner = register
        first = build.emit("thread", U32, (), "local") if shared > 1 else zero
        stride = build.constant(shared)
        if blocked:
            stretch = build.constant(BLOCK * shared)
            outer = build.open_loop(zero, stop, stretch)
            inner = build.here("register", compute, (identity,))
            end = build.arithmetic("min", build.arithmetic("+", outer, stretch), stop)
            loop = build.open_loop(build.arithmetic("+", outer, first) if shared > 1 else outer, end, stride)
        else:
            loop = build.open_loop(first, stop, stride)
        place = self.loop_index(loop, steps, vector)
        folded = dict(zip(axes, unflatten(place, sizes), strict=True))
        kept = iter(indices)
        rank = len(self.graph.sigs[source].shape)
        at = tuple(folded[axis] if axis in folded else next(kept) for axis in range(rank))
        value = build.widened(self.pull(source, at), compute.width)
        self._accumulate(fold, compute, inner, value)
        build.close()
        if blocked:
            self._accumulate(fold, compute, register, build.here("read", compute, (inner,)))
            build.close()
        total = build.here("read", compute, (register,))
        if vector:
            parts = [build.lane(total, lane) for lane in range(4)]
            low = build.apply(fold, compute.scalar, parts[0], parts[1])
            total = build.apply(
                fold, compute.scalar, low, build.apply(fold, compute.scalar, parts[2], parts[3])
            )
        if shared > 1:
            total = build.here("combine", total.type, (total,), fold)
        return self._wrapped(total, sig.dtype)

    def _accumulate(self, fold: Any, type: Type, register: Instruction, value: Instruction) -> None:
        build = self.builder
        before = build.here("read", type, (register,))
        build.here("write", None, (register, build.here("apply", type, (before, value), fold)))

    def loop_index(self, loop: Instruction, steps: int, vector: bool) -> Index:
        """A loop's variable as an index: the step itself, or the four elements of a step."""
        self._loops += 1
        name = f"loop{self._loops}"
        self.builder.values[name] = loop
        index = variable(name, steps)
        return index * 4 + self.new_lane() if vector else index

    def new_lane(self) -> Index:
        """The variable that counts the lanes of a vector."""
        return variable(f"lane{self._loops}", 4, LANE)

    # Memory

    def load(self, buffer: int, place: Index) -> Instruction:
        """The element at a flat index, or four: in one load where they are contiguous, else one by one."""
        build = self.builder
        type = self.buffers[buffer].dtype.compute
        if not self.buffers[buffer].size:
            return self._never_read(type)
        if not build.has_lanes(place):
            return build.emit("load", Type(type), (build.index(place),), buffer)
        group = self.group_of(place)
        if group is not None:
            return build.emit("load", Type(type, 4), (build.index(group),), buffer)
        pairs = self._pairs_of(place)
        if pairs is not None:
            first, part = pairs
            fours = [build.emit("load", Type(type, 4), (build.index(each),), buffer) for each in first]
            return build.lanes([build.lane(four, part + at) for four in fours for at in (0, 2)])
        parts = [build.index(build.in_lane(place, lane)) for lane in range(4)]
        return build.lanes([build.emit("load", Type(type), (part,), buffer) for part in parts])

    def _never_read(self, compute: str) -> Instruction:
        """An element of an empty value, in a loop that never runs: a parameter, since compilers fold a 0."""
        return self.builder.constant(Size(0), Type(compute))

    def _pairs_of(self, place: Index) -> tuple[tuple[Index, Index], int] | None:
        """The two groups of four in which the lanes are the same parts of pairs, and which parts."""
        part = place.constant % 2
        lane = [atom for atom in place.terms if atom.kind == LANE]
        if len(lane) != 1 or place.terms[lane[0]] != 2:
            return None
        step = Index({lane[0]: 1}, 0)
        groups = [self.group_of((place + step * -1).shifted(after - part)) for after in (0, 4)]
        return None if groups[0] is None or groups[1] is None else ((groups[0], groups[1]), part)

    def group_of(self, place: Index) -> Index | None:
        """The index of the group of four that the lanes form, where they do."""
        lane = [atom for atom in place.terms if atom.kind == LANE]
        if len(lane) != 1 or place.terms[lane[0]] != 1 or place.constant % 4:
            return None
        rest = {atom: factor for atom, factor in place.terms.items() if atom is not lane[0]}
        if any(factor % 4 for factor in rest.values()):
            return None
        base = Index({atom: factor // 4 for atom, factor in rest.items()}, place.constant // 4)
        return None if self.builder.has_lanes(base) else base

    def store(self, number: int, place: Index, value: Instruction) -> None:
        """Write a value to an output."""
        build, buffer = self.builder, self.numbers[number]
        if not build.has_lanes(place):
            build.here("store", None, (build.index(place), value), buffer)
            return
        group = self.group_of(place)
        if group is not None:
            build.here("store", None, (build.index(group), build.widened(value, 4)), buffer)
            return
        for lane in range(4):
            at = build.index(build.in_lane(place, lane))
            build.here("store", None, (at, build.lane(value, lane)), buffer)

    def store_pairs(self, number: int, place: Index, values: Sequence[Instruction]) -> None:
        """Write both parts of the pair at an index, or of four adjacent pairs."""
        build, buffer = self.builder, self.numbers[number]
        first = build.in_lane(place, 0) * 2
        if not build.has_lanes(place):
            for part, value in enumerate(values):
                build.here("store", None, (build.index(first.shifted(part)), value), buffer)
            return
        for half in (0, 1):
            four = [build.lane(value, 2 * half + at) for at in (0, 1) for value in values]
            group = self.group_of(first.shifted(4 * half) + self.new_lane())
            assert group is not None
            build.here("store", None, (build.index(group), build.widened(build.lanes(four), 4)), buffer)
