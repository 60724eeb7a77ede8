"""Attention for a target that widens loops itself: operands in memory, or holes that fill rows of them.

In: a group around an attend node. Out: an `Attention`: its sizes, where its operands lie, and a kernel of
holes: `load_q`, `load_k`, `load_v` and `load_m` fill rows of queries, keys, values and of the mask, each but
for those that lie in memory; `numbers` gives the scale and the number of keys; `finish` takes rows of the
result to where they belong, through what is fused after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import DType, int32
from ..graph.snapshot import Snapshot
from ..schedule.plan import Group
from .attention import forward
from .builder import Builder
from .index import Index, broadcast, unflatten, variable
from .ir import BLOCK, COUNT, PANEL, U32, Buffer, Hole, Instruction, Kernel, Type
from .lane_products import LoadPuller
from .passes import drop_unused, fold_constants, share_values
from .threads import name_of

NAMES = ("load_q", "load_k", "load_v")
_AXES = ("batch", "head", "row", "column")


@dataclass(frozen=True, slots=True)
class Rows:
    """An operand in memory: elements of a buffer, `start` from its first, so far apart for a next batch,
    head, row and column.
    """

    buffer: int
    dtype: DType
    start: int
    strides: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of queries (batches, heads, queries, columns) over keys; `sums` is what it computes in. `q`,
    `k` and `v` say where these lie; where one is None, it is a hole of the kernel.
    """

    kernel: Kernel
    batches: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    columns: int
    values: int
    causal: bool
    window: int  # 0: there is none
    from_end: bool
    masked: bool
    sums: DType
    q: Rows | None
    k: Rows | None
    v: Rows | None


def lower_attention(graph: Snapshot, group: Group) -> Attention:
    """An attend node with everything that is fused around it."""
    lowering = _Lowering(graph, group)
    places = [lowering.rows(number) for number in range(3)]
    holes = [lowering.hole(name, number) for number, name in enumerate(NAMES) if places[number] is None]
    masked = len(lowering.inputs) > 5
    if masked:
        holes.append(lowering.hole("load_m", 5))
    holes += [lowering.numbers(), lowering.finish()]
    puller = lowering.puller
    scalars = tuple((number, graph.sigs[number].dtype) for number in puller.scalars)
    kernel = Kernel(name_of(graph, group), tuple(puller.buffers), scalars, (), 1, 1, None, tuple(holes))
    for each in (fold_constants, share_values, drop_unused):
        kernel = each(kernel)
    (batches, heads, queries, columns), (_, key_heads, keys, _), (*_, values) = (
        graph.sigs[each].shape for each in lowering.inputs[:3]
    )
    causal, window, from_end, chunks = graph.sigs[group.center].attributes
    assert not chunks, "keys are split inside of the kernel"
    sizes = batches, heads, key_heads, queries, keys, columns, values
    return Attention(kernel, *sizes, causal, window, from_end, masked, lowering.sums, *places)


class _Lowering:
    """Attention while it is lowered."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        self.graph, self.group = graph, group
        self.inputs = graph.inputs[group.center]
        self.puller = LoadPuller(graph, group)
        self.sums = graph.sigs[group.center].dtype.wide
        self.sizes = (*graph.sigs[self.inputs[0]].shape[:3], graph.sigs[self.inputs[1]].shape[2])
        for number, dtype, written in (
            (PANEL, self.sums, True),
            (BLOCK, self.sums, False),
            (COUNT, int32, True),
        ):
            self.puller.numbers[number] = len(self.puller.buffers)
            self.puller.buffers.append(Buffer(number, dtype, 1 << 31, written))

    def _begin(self, *names: str) -> tuple[Builder, list[Instruction]]:
        """A new function of arguments."""
        self.puller.builder = build = Builder()
        given = [build.emit("argument", U32, (), each) for each in names]
        build.values |= dict(zip(names, given, strict=True))
        return build, given

    def _wide(self, value: Instruction, dtype: DType) -> Instruction:
        """A value as what is computed with."""
        return value if dtype.wide is self.sums else self.puller.builder.cast(value, dtype.wide, self.sums)

    def rows(self, operand: int) -> Rows | None:
        """Where an operand lies, if it is a part of a value, perhaps of half floats that are made wide."""
        puller, number = self.puller, self.inputs[operand]
        self._begin(*_AXES)
        shape = self.graph.sigs[number].shape
        puller.loaded = []
        value = puller.pull(number, tuple([variable(*each) for each in zip(_AXES, shape, strict=True)]))
        while value.op == "cast" and value.data[0].is_half and value.data[1:] == (self.sums, False):
            (value,) = value.args
        if [value] != puller.loaded or len(value.args) > 1:
            return None
        dtype = puller.buffers[value.data].dtype
        factors = {atom.name: factor for atom, factor in puller.place.terms.items()}
        if dtype.wide is not self.sums or not factors.keys() <= set(_AXES):
            return None
        batch, head, row, column = (factors.get(each, 0) for each in _AXES)
        return Rows(value.data, dtype, puller.place.constant, (batch, head, row, column))

    def hole(self, name: str, operand: int) -> Hole:
        """A function that fills some rows of an operand, `pitch` elements apart: some of their columns."""
        puller, number = self.puller, self.inputs[operand]
        build, given = self._begin(*_AXES, "rows", "columns", "pitch")
        row, column, rows, columns, pitch = given[2:]
        sig = self.graph.sigs[number]
        sizes = self.sizes if name == "load_m" else sig.shape
        at_row = puller.open(row, build.arithmetic("+", row, rows), sizes[2])
        at_column = puller.open(column, build.arithmetic("+", column, columns), sizes[3], lanes=True)
        at = (variable("batch", sizes[0]), variable("head", sizes[1]), at_row, at_column)
        value = self._wide(puller.pull(number, broadcast(at, sig.shape)), sig.dtype)
        inner_row = build.arithmetic("-", build.index(at_row), row)
        inner_column = build.arithmetic("-", build.index(at_column), column)
        place = build.arithmetic("+", build.arithmetic("*", inner_row, pitch), inner_column)
        build.here("store", None, (place, value), puller.numbers[PANEL])
        puller.close(2)
        return Hole(name, (), build.body(), None)

    def numbers(self) -> Hole:
        """A function that stores the scale and the number of keys."""
        build, _ = self._begin()
        scale, count = self.inputs[3:5]
        first = build.constant(0)
        value = self._wide(self.puller.pull(scale, ()), self.graph.sigs[scale].dtype)
        build.here("store", None, (first, value), self.puller.numbers[PANEL])
        build.here("store", None, (first, self.puller.pull(count, ())), self.puller.numbers[COUNT])
        return Hole("numbers", (), build.body(), None)

    def finish(self) -> Hole:
        """A function that takes some rows of a head's result, and stores what becomes of them."""
        puller, (output,), center = self.puller, self.group.outputs, self.group.center
        build, (_, _, row, rows, stride) = self._begin("batch", "head", "row", "rows", "stride")
        sig = self.graph.sigs[center]
        at_row = puller.open(row, build.arithmetic("+", row, rows), sig.shape[2])
        at_column = puller.open_all(sig.shape[3], lanes=True)
        inner_row = build.arithmetic("-", build.index(at_row), row)
        place = build.arithmetic("+", build.arithmetic("*", inner_row, stride), build.index(at_column))
        total = build.emit("load", Type(sig.dtype.compute), (place,), puller.numbers[BLOCK])
        if sig.dtype.is_packed:
            total = build.cast(total, sig.dtype.wide, sig.dtype)
        puller.given[center] = lambda indices: total
        at: tuple[Index, ...] = (variable("batch", sig.shape[0]), variable("head", sig.shape[1]))
        flat = forward(self.graph, self.group, (*at, at_row, at_column))
        shape = self.graph.sigs[output].shape
        puller.store(output, flat, puller.pull(output, unflatten(flat, shape)))
        puller.close(2)
        return Hole("finish", (), build.body(), None)
