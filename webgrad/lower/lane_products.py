"""Matrix products for a target that widens loops itself: operands in memory, or holes that fill panels.

In: a group around a contraction. Out: a `Product`: its sizes, and for each operand where it lies (an address
and strides), or a hole: a function that computes elements of it; the same for the result. A convolution is
a product whose second operand is such a hole: its windows are never written down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..dtypes import DType
from ..graph.snapshot import Snapshot
from ..schedule.plan import Group
from .builder import Builder
from .index import ZERO, Index, broadcast, unflatten, variable
from .ir import BLOCK, PANEL, U32, Buffer, Hole, Instruction, Kernel, Type
from .lane_puller import SHORT, LanePuller
from .passes import drop_unused, fold_constants, share_values
from .threads import name_of


@dataclass(frozen=True, slots=True)
class Strided:
    """A matrix in memory: elements of a buffer, `start` from its first, so far apart for a next batch, a next
    row (of B: column), a next k (of C: column).
    """

    buffer: int
    dtype: DType
    start: int
    strides: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Product:
    """A product C[b] = A[b] @ B[b]. An operand that does not lie in memory is a hole of the kernel, `load_a`
    or `load_b`; `along_k` says of each hole whether its elements lie side by side along k.
    """

    kernel: Kernel
    batch: int
    m: int
    n: int
    k: int
    sums: DType
    a: Strided | None
    b: Strided | None
    c: Strided | None
    along_k: tuple[bool, bool]
    shares_a: bool  # one A for all batches


class LoadPuller(LanePuller):
    """A puller that notes the loads, and where they are from."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        super().__init__(graph, group)
        self.loaded: list[Instruction] = []
        self.places: list[Index] = []

    @property
    def place(self) -> Index:
        """Of the last load."""
        return self.places[-1]

    def load(self, buffer: int, place: Index) -> Instruction:
        """The element at a flat index."""
        self.loaded.append(super().load(buffer, place))
        self.places.append(place)
        return self.loaded[-1]


class Probe(NamedTuple):
    """An element of an operand at variables: its value, what it loads and from where, and whether it has
    another one in each batch.
    """

    value: Instruction
    loaded: tuple[Instruction, ...]
    places: tuple[Index, ...]
    reads_batch: bool


class _Runs:
    """A part of an axis as two loops: over runs, and inside of a run. `in_turn`, runs are not one after
    another: the first elements of all runs come before the second ones.
    """

    def __init__(
        self,
        puller: LanePuller,
        start: Instruction,
        count: Instruction,
        size: int,
        length: int,
        *,
        in_turn: bool = False,
    ) -> None:
        self.puller, self.start, self.size, self.length, self.in_turn = puller, start, size, length, in_turn
        self.stop = puller.builder.arithmetic("+", start, count)
        self.run = ZERO

    def open_outer(self) -> None:
        """Begin the loop over runs."""
        build, count = self.puller.builder, self.size // max(self.length, 1)
        if self.in_turn:
            self.run = self.puller.open_all(count)
        elif count > 1:
            length = build.size(self.length)
            last = build.arithmetic("-", build.arithmetic("+", self.stop, length), build.constant(1))
            first, last = (build.arithmetic("/", each, length) for each in (self.start, last))
            self.run = self.puller.open(first, last, count)

    def open_inner(self, *, lanes: bool = False) -> Index:
        """Begin the loop inside of a run, and give the index along the axis."""
        build, count = self.puller.builder, self.size // max(self.length, 1)
        if count == self.size:
            return self.run
        if self.in_turn:
            before = build.arithmetic("-", build.constant(count - 1), build.index(self.run))
            start, stop = (
                build.arithmetic("/", build.arithmetic("+", each, before), build.size(count))
                for each in (self.start, self.stop)
            )
            return self.puller.open(start, stop, self.length, lanes=lanes) * count + self.run
        base = build.index(self.run * self.length)
        start = build.arithmetic("-", self.start, build.arithmetic("min", self.start, base))
        left = build.arithmetic("-", self.stop, base)
        stop = build.arithmetic("min", left, build.size(self.length))
        return self.run * self.length + self.puller.open(start, stop, self.length, lanes=lanes)


def _run_of(places: Sequence[Index], name: str, size: int, least: int = 1) -> int:
    """How many elements of an axis, one after another, have indices that are not divided: that of the last
    of the axes that were merged into it; or all, if these are less than `least`.
    """
    found: set[int] = set()

    def look(place: Index) -> None:
        for atom in place.terms:
            if atom.expression is not None:
                inner = [each for each in atom.expression.terms if each.name == name]
                if inner and len(atom.expression.terms) == 1 and atom.kind != "limit":
                    found.add(atom.divisor)
                look(atom.expression)

    for each in places:
        look(each)
    length = min(found, default=size)
    return length if length and size % length == 0 and length >= least else size


class Lowering:
    """A product while it is lowered: its sizes, and where its operands lie."""

    _probes: dict[tuple[str, bool, int], Probe]  # by operand, whether swapped, and the order of k

    def __init__(self, graph: Snapshot, group: Group) -> None:
        self.graph, self.group = graph, group
        self.a, self.b = graph.inputs[group.center]
        a, b, c = (graph.sigs[each].shape for each in (self.a, self.b, group.center))
        self.k, self.n = a[-1], c[-1]
        self.batches, self.lines = c[:-2], c[-2:-1]
        if math.prod(b[:-2]) == 1:  # one B for all batches: they are more rows
            self.batches, self.lines = (), c[:-1]
        self.batch, self.m = math.prod(self.batches), math.prod(self.lines)
        self.puller = LoadPuller(graph, group)
        self.sums = graph.sigs[group.center].dtype.wide
        self._bind(PANEL, written=True)
        self._bind(BLOCK, written=False)
        self.swapped = False  # A is the second operand, transposed, and B the first one
        self._probes = {}
        self._place_operands()

    def swap(self) -> None:
        """Compute the transpose of C: the rows of A are then what were the columns of B."""
        self.swapped, self.m, self.n = not self.swapped, self.n, self.m
        self._place_operands()

    def _place_operands(self) -> None:
        self.stretches = 0  # of k, if elements of all stretches are taken in turn
        self.at_a, self.at_b = self._strided("load_a"), self._strided("load_b")
        if self.at_a is None and self.at_b is None:
            self._take_in_turn()

    def _take_in_turn(self) -> None:
        """Change the order of k if A, which is permuted, then lies in memory."""
        length = _run_of(self._probed("load_a").places, "k", self.k)
        if length < self.k:
            self.stretches = self.k // length
            self.at_a = self._strided("load_a")
            self.stretches *= self.at_a is not None

    # Elements

    def _in_order(self, k: Index) -> Index:
        """Which k is summed at a place."""
        if not self.stretches:
            return k
        return k % self.stretches * (self.k // self.stretches) + k // self.stretches

    def element(self, name: str, batch: Index, row: Index, k: Index) -> Instruction:
        """What `load_a` or `load_b` loads: an element of a row of A, or of a column of B."""
        return (self._left if (name == "load_a") != self.swapped else self._right)(batch, row, k)

    def _left(self, batch: Index, row: Index, k: Index) -> Instruction:
        """An element of the first operand."""
        at = (*unflatten(batch, self.batches), *unflatten(row, self.lines))
        return self.puller.pull(self.a, (*broadcast(at, self.graph.sigs[self.a].shape[:-1]), k))

    def _right(self, batch: Index, column: Index, k: Index) -> Instruction:
        """An element of the second operand."""
        shape = self.graph.sigs[self.b].shape
        at = unflatten(batch, self.batches) if self.batches else (ZERO,) * (len(shape) - 2)
        return self.puller.pull(self.b, (*broadcast(at, shape[:-2]), k, column))

    # Operands

    def _size(self, name: str) -> int:
        """How many rows A has, or columns B."""
        return self.m if name == "load_a" else self.n

    def _probed(self, name: str) -> Probe:
        """An element of an operand at variables `batch`, `row` and `k`."""
        key = name, self.swapped, self.stretches
        found = self._probes.get(key)
        if found is None:
            found = self._probes[key] = self._probe(name)
        return found

    def _probe(self, name: str) -> Probe:
        puller = self.puller
        puller.builder = build = Builder()
        given = []
        for each, size in (("batch", self.batch), ("row", self._size(name)), ("k", self.k)):
            build.values[each] = build.emit("argument", U32, (), each)
            given.append(variable(each, size))
        puller.loaded, puller.places = [], []
        batch, row, k = given
        value = self.element(name, batch, row, self._in_order(k))
        reads_batch = any(build.values["batch"] in each.args for each in build.body())
        return Probe(value, tuple(puller.loaded), tuple(puller.places), reads_batch)

    def _strided(self, name: str) -> Strided | None:
        """Where an operand lies, if it is a part of a value: its index is a sum of multiples."""
        value, loaded, places, _ = self._probed(name)
        if value.op == "cast" and value.data == (value.data[0], self.sums, False) and value.data[0].is_half:
            (value,) = value.args  # what reads it widens it
        if (value,) != loaded or len(value.args) > 1:
            return None
        dtype, place = self.puller.buffers[value.data].dtype, places[-1]
        if dtype.wide is not self.sums or dtype.itemsize == 1 or (dtype.is_packed and not dtype.is_half):
            return None
        factors = {atom.name: factor for atom, factor in place.terms.items()}
        if not factors.keys() <= {"batch", "row", "k"}:
            return None
        strides = (factors.get("batch", 0), factors.get("row", 0), factors.get("k", 0))
        return Strided(value.data, dtype, place.constant, strides)

    def _hole(self, name: str, height: int, *, along_k: bool) -> Hole:
        """A function that fills a panel with some rows of A, or columns of B, for some k. Along k they are
        written row by row, else k by k, `height` apart. Rows and k are loops over runs in which no index is
        divided, so that elements side by side in memory are loaded together.
        """
        puller = self.puller
        places = self._probed(name).places
        puller.builder = build = Builder()
        batch, row, k, rows, ks = (
            build.emit("argument", U32, (), each) for each in ("batch", "row", "k", "rows", "ks")
        )
        build.values["batch"] = batch
        at_batch = variable("batch", self.batch)
        puller.strides = []
        size = self._size(name)
        lines = _Runs(puller, row, rows, size, size if along_k else _run_of(places, "row", size, SHORT))
        stretches = self._stretches(places, k, ks, SHORT if along_k else 1)
        lines.open_outer()
        stretches.open_outer()
        if along_k:
            at_row = lines.open_inner()
            at_k = stretches.open_inner(lanes=True)
        else:
            at_row = lines.open_inner(lanes=True)
            at_k = stretches.open_inner()
        inner_row = build.arithmetic("-", build.index(at_row), row)
        inner_k = build.arithmetic("-", build.index(at_k), k)
        value = self.element(name, at_batch, at_row, self._in_order(at_k))
        if along_k:
            place = build.arithmetic("+", build.arithmetic("*", inner_row, ks), inner_k)
        else:
            place = build.arithmetic("+", build.arithmetic("*", inner_k, build.constant(height)), inner_row)
        build.here("store", None, (place, value), puller.numbers[PANEL])
        puller.close(len(build.blocks) - 1)
        return Hole(name, (), build.body(), None)

    def _stretches(self, places: Sequence[Index], k: Instruction, ks: Instruction, least: int) -> _Runs:
        if self.stretches:
            return _Runs(self.puller, k, ks, self.k, self.k // self.stretches, in_turn=True)
        return _Runs(self.puller, k, ks, self.k, _run_of(places, "k", self.k, least))

    def _best_hole(self, name: str, height: int) -> tuple[Hole, bool]:
        """The function that fills panels, and whether along k: where an operand's elements lie side by side
        along k, rather than along its rows. A panel of one row is the same both ways.
        """
        if height == 1:
            return self._hole(name, height, along_k=True), True
        holes, strides = [], []
        for along_k in (False, True):
            holes.append(self._hole(name, height, along_k=along_k))
            strides.append(max(self.puller.strides, default=0) or 1 << 30)
        is_along = strides[True] < strides[False]
        return holes[is_along], is_along

    # The result

    def _finish(self) -> Hole:
        """A function that takes a block of sums, and stores what becomes of them."""
        puller, (output,) = self.puller, self.group.outputs
        puller.builder = build = Builder()
        batch, row, column, rows, columns, stride = (
            build.emit("argument", U32, (), each)
            for each in ("batch", "row", "column", "rows", "columns", "stride")
        )
        build.values["batch"] = batch
        at_row = puller.open(row, build.arithmetic("+", row, rows), self.m)
        at_column = puller.open(column, build.arithmetic("+", column, columns), self.n, lanes=True)
        inner_row = build.arithmetic("-", build.index(at_row), row)
        inner_column = build.arithmetic("-", build.index(at_column), column)
        place = build.arithmetic("+", build.arithmetic("*", inner_row, stride), inner_column)
        dtype = self.graph.sigs[self.group.center].dtype
        total = build.emit("load", Type(dtype.compute), (place,), puller.numbers[BLOCK])
        if dtype.is_packed:  # rounded, or wrapped
            total = build.cast(total, dtype.wide, dtype)
        puller.given[self.group.center] = lambda indices: total
        first, second, width = at_row, at_column, self.n
        if self.swapped:
            first, second, width = at_column, at_row, self.m
        flat = variable("batch", self.batch) * (self.m * self.n) + first * width + second
        shape = self.graph.sigs[output].shape
        puller.store(output, flat, puller.pull(output, unflatten(flat, shape)))
        puller.close(2)
        return Hole("finish", (), build.body(), None)

    def _plain_result(self) -> Strided | None:
        """Where C goes, if it is the result itself, or that reshaped."""
        (output,) = self.group.outputs
        source = output
        while self.graph.sigs[source].op.name == "reshape":
            (source,) = self.graph.inputs[source]
        if self.swapped or source != self.group.center or self.graph.sigs[output].dtype is not self.sums:
            return None
        return Strided(self.puller.numbers[output], self.sums, 0, (self.m * self.n, self.n, 1))

    def _bind(self, number: int, *, written: bool) -> None:
        """A buffer of a hole's own."""
        self.puller.numbers[number] = len(self.puller.buffers)
        self.puller.buffers.append(Buffer(number, self.sums, self.m * self.n * self.k or 1, written))

    def product(self, heights: tuple[int, int]) -> Product:
        """The product, for panels of so many rows of A and columns of B."""
        holes, along = [], [False, False]
        for at, (name, place) in enumerate((("load_a", self.at_a), ("load_b", self.at_b))):
            if place is None:
                hole, along[at] = self._best_hole(name, heights[at])
                holes.append(hole)
        at_c = self._plain_result()
        if at_c is None:
            holes.append(self._finish())
        puller = self.puller
        scalars = tuple((number, self.graph.sigs[number].dtype) for number in puller.scalars)
        name = name_of(self.graph, self.group)
        kernel = Kernel(name, tuple(puller.buffers), scalars, (), 1, 1, None, tuple(holes))
        for each in (fold_constants, share_values, drop_unused):
            kernel = each(kernel)
        sizes = self.batch, self.m, self.n, self.k
        shares_a = not self._probed("load_a").reads_batch
        return Product(kernel, *sizes, self.sums, self.at_a, self.at_b, at_c, (along[0], along[1]), shares_a)
