"""Matrix products for a target that widens loops itself: operands in memory, or holes that fill panels.

In: a group around a contraction. Out: a `Product`: its sizes, and for each operand where it lies (an address
and strides), or a hole: a function that computes elements of it; the same for the result. A convolution is
a product whose second operand is such a hole: its windows are never written down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..dtypes import DType
from ..graph.snapshot import Snapshot
from ..schedule.plan import Group
from .builder import Builder
from .index import ZERO, Index, broadcast, unflatten, variable
from .ir import BLOCK, PANEL, U32, Buffer, Hole, Instruction, Kernel, Type
from .lanes import LanePuller
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


class LoadPuller(LanePuller):
    """A puller that notes the last load, and where."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        super().__init__(graph, group)
        self.place: Index = ZERO
        self.loaded: list[Instruction] = []

    def load(self, buffer: int, place: Index) -> Instruction:
        """The element at a flat index."""
        self.place = place
        self.loaded = [super().load(buffer, place)]
        return self.loaded[0]


class Lowering:
    """A product while it is lowered: its sizes, and where its operands lie."""

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
        self.at_a, self.at_b = self._strided("load_a"), self._strided("load_b")

    # Elements

    def left(self, batch: Index, row: Index, k: Index) -> Instruction:
        """An element of A."""
        at = (*unflatten(batch, self.batches), *unflatten(row, self.lines))
        return self.puller.pull(self.a, (*broadcast(at, self.graph.sigs[self.a].shape[:-1]), k))

    def right(self, batch: Index, column: Index, k: Index) -> Instruction:
        """An element of B."""
        shape = self.graph.sigs[self.b].shape
        at = unflatten(batch, self.batches) if self.batches else (ZERO,) * (len(shape) - 2)
        return self.puller.pull(self.b, (*broadcast(at, shape[:-2]), k, column))

    # Operands

    def _strided(self, name: str) -> Strided | None:
        """Where an operand lies, if it is a part of a value: its index is a sum of multiples."""
        puller, pull = self.puller, self.left if name == "load_a" else self.right
        sizes = {"batch": self.batch, "row": self.m if name == "load_a" else self.n, "k": self.k}
        puller.builder = build = Builder()
        given = []
        for each, size in sizes.items():
            build.values[each] = build.emit("argument", U32, (), each)
            given.append(variable(each, size))
        puller.loaded = []
        value = pull(*given)
        if [value] != puller.loaded or len(value.args) > 1:
            return None
        dtype = puller.buffers[value.data].dtype
        if dtype.wide is not self.sums or dtype.itemsize == 1 or (dtype.is_packed and not dtype.is_half):
            return None
        factors = {atom.name: factor for atom, factor in puller.place.terms.items()}
        if not factors.keys() <= sizes.keys():
            return None
        strides = (factors.get("batch", 0), factors.get("row", 0), factors.get("k", 0))
        return Strided(value.data, dtype, puller.place.constant, strides)

    def _hole(self, name: str, height: int, *, along_k: bool) -> Hole:
        """A function that fills a panel with some rows of A, or columns of B, for some k. Along k they are
        written row by row, else k by k, `height` apart.
        """
        puller, pull = self.puller, self.left if name == "load_a" else self.right
        puller.builder = build = Builder()
        batch, row, k, rows, ks = (
            build.emit("argument", U32, (), each) for each in ("batch", "row", "k", "rows", "ks")
        )
        build.values["batch"] = batch
        at_batch = variable("batch", self.batch)
        last_row, last_k = build.arithmetic("+", row, rows), build.arithmetic("+", k, ks)
        size = self.m if name == "load_a" else self.n
        puller.strides = []
        if along_k:
            at_row = puller.open(row, last_row, size)
            at_k = puller.open(k, last_k, self.k, lanes=True)
        else:
            at_row = puller.open(row, last_row, size, lanes=True)
            at_k = puller.open(k, last_k, self.k)
        inner_row = build.arithmetic("-", build.index(at_row), row)
        inner_k = build.arithmetic("-", build.index(at_k), k)
        value = pull(at_batch, at_row, at_k)
        if along_k:
            place = build.arithmetic("+", build.arithmetic("*", inner_row, ks), inner_k)
        else:
            place = build.arithmetic("+", build.arithmetic("*", inner_k, build.constant(height)), inner_row)
        build.here("store", None, (place, value), puller.numbers[PANEL])
        puller.close(2)
        return Hole(name, (), build.body(), None)

    def _goes_along_k(self, name: str) -> bool:
        """Whether an operand's elements lie side by side along k, rather than along its rows."""
        found = []
        for along_k in (False, True):
            self._hole(name, 1, along_k=along_k)
            found.append(max(self.puller.strides, default=0) or 1 << 30)
        return found[True] < found[False]

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
        flat = (variable("batch", self.batch) * self.m + at_row) * self.n + at_column
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
        if source != self.group.center or self.graph.sigs[output].dtype is not self.sums:
            return None
        return Strided(self.puller.numbers[output], self.sums, 0, (self.m * self.n, self.n, 1))

    def _bind(self, number: int, *, written: bool) -> None:
        """A buffer of a hole's own."""
        self.puller.numbers[number] = len(self.puller.buffers)
        self.puller.buffers.append(Buffer(number, self.sums, self.m * self.n * self.k or 1, written))

    def product(self, heights: tuple[int, int]) -> Product:
        """The product, for panels of so many rows of A and columns of B."""
        holes, along = [], []
        for name, place, height in zip(("load_a", "load_b"), (self.at_a, self.at_b), heights, strict=True):
            along.append(place is None and (height == 1 or self._goes_along_k(name)))
            if place is None:
                holes.append(self._hole(name, height, along_k=along[-1]))
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
        return Product(kernel, *sizes, self.sums, self.at_a, self.at_b, at_c, (along[0], along[1]))
