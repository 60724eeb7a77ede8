"""Quantised blocks for a target that widens loops itself: products with them, and their weights.

In: a group around a `matmul_blocks`, or of a `decode`. Out: a `Product` whose second operand is the words of
blocks, with (n, k) weights; or the kernel whose hole names the rows to unpack. What comes before the first
operand and after the sums is fused, as with other products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..dtypes import float32, uint32
from ..graph.snapshot import Snapshot
from ..schedule.plan import Group
from .builder import Builder
from .index import unflatten
from .ir import BLOCK, PANEL, U32, Buffer, Hole, Kernel
from .lane_products import LoadPuller, Lowering, Strided
from .lane_puller import LanePuller
from .passes import drop_unused, fold_constants, share_values
from .threads import name_of


class BlockLowering(Lowering):
    """A product with blocks while it is lowered."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        self.graph, self.group = graph, group
        self.a, self.b = graph.inputs[group.center]
        self.format, (self.n, self.k) = graph.sigs[group.center].attributes
        self.batches, self.lines = (), graph.sigs[self.a].shape[:-1]
        self.batch, self.m = 1, math.prod(self.lines)
        self.puller = LoadPuller(graph, group)
        self.sums = float32
        self.swapped, self.stretches = False, 0
        self._probes = {}
        self._bind(PANEL, written=True)
        self._bind(BLOCK, written=False)
        self.at_a = self._strided("load_a")
        self.at_b = Strided(self.puller.numbers[self.b], uint32, 0, (0, 0, 0))


@dataclass(frozen=True, slots=True)
class Weights:
    """Rows of weights: (n, k) blocks of a format, all of them or `rows` of an index, which is the hole."""

    kernel: Kernel
    format: str
    rows: int
    n: int
    k: int
    words: int  # the buffer
    result: int


def lower_weights(graph: Snapshot, group: Group) -> Weights:
    """The weights of a `decode`."""
    words, *index = graph.inputs[group.center]
    name, shape = graph.sigs[group.center].attributes
    n = math.prod(shape[:-1])
    puller = LanePuller(graph, group)
    puller.numbers[PANEL] = len(puller.buffers)
    rows = math.prod(graph.sigs[index[0]].shape) if index else n
    puller.buffers.append(Buffer(PANEL, uint32, rows, True))
    holes = (_index_hole(graph, puller, index[0], n),) if index else ()
    scalars = tuple((number, graph.sigs[number].dtype) for number in puller.scalars)
    kernel = Kernel(name_of(graph, group), tuple(puller.buffers), scalars, (), 1, 1, None, holes)
    for each in (fold_constants, share_values, drop_unused):
        kernel = each(kernel)
    numbers = puller.numbers[words], puller.numbers[group.outputs[0]]
    return Weights(kernel, name, rows, n, shape[-1], *numbers)


def _index_hole(graph: Snapshot, puller: LanePuller, index: int, n: int) -> Hole:
    """A function that fills a panel with some of the indices, each one of `n` rows."""
    puller.builder = build = Builder()
    sig = graph.sigs[index]
    row, rows = (build.emit("argument", U32, (), each) for each in ("row", "rows"))
    at = puller.open(row, build.arithmetic("+", row, rows), sig.size, lanes=True)
    value = puller.pull(index, unflatten(at, sig.shape))
    place = build.arithmetic("-", build.index(at), row)
    build.here("store", None, (place, puller._place(value, sig.dtype, n)), puller.numbers[PANEL])
    puller.close(1)
    return Hole("fill_index", (), build.body(), None)
