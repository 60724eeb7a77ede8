"""Convolutions by BLAS without copying all patches: one product for each element of the kernel, summed.

In: weights (groups…, m, k), and windows as a view (samples, groups…, kernel…, channels, places…) of any
strides. Out: (samples, groups…, m, places). What an element of the kernel (a *tap*) meets is the array itself
from another start. Where places lie side by side BLAS reads it there, rows and what lies between them, and
the columns in between are cut off; otherwise windows are copied along all axes of the kernel but the first.
The invariant: a column of a product comes from one column of what is read, so nothing else gets into it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays import Array, np
from ..runtime.threads import Scratch, cores, share
from .blas import Gemm, Matrix, gemm, single_threaded
from .patches import PatchProduct, pieces

__all__ = ["TapProduct", "window_product"]

Shape = tuple[int, ...]
Span = tuple[int, int]
Index = tuple[Any, ...]

BLOCK = 1 << 19  # elements that a block reads and writes
COLUMNS = 256  # columns of a block, at least where there are as many
MEMORY = 1 << 23  # elements of its own that a block may need, at most
LARGEST = 1 << 31  # what BLAS may be told
# Nanoseconds on one core, to choose between the ways: for a multiplication, for an element of a sum that is
# read and written again, for one of an operand that BLAS packs, and for one that is copied.
MULTIPLIED, SUMMED, PACKED, COPIED = 0.0125, 0.06, 0.1, 0.4
BEGUN, CALLED = 12_000.0, 3_000.0  # for a block, and for a call of BLAS
_scratch = Scratch()


def window_product(view: Shape, result: Shape) -> TapProduct | PatchProduct:
    """What computes the product for a shape of the view and of the result, (samples, groups…, m, n)."""
    patches = PatchProduct(view, result)
    axes, odd = divmod(len(view) - len(result) + 1, 2)
    if odd or axes < 1 or math.prod(view[-axes:]) != result[-1] or not math.prod(view) * math.prod(result):
        return patches
    return TapProduct(_Sizes(view, axes, result[-2]), patches)


class _Sizes:
    """The lengths of a convolution. `depth` and `places` are products of them."""

    def __init__(self, view: Shape, axes: int, outputs: int) -> None:
        self.axes = axes
        self.batch = view[: -2 * axes - 1]
        self.kernel = view[-2 * axes - 1 : -axes - 1]
        self.channels = view[-axes - 1]
        self.sides = view[-axes:]
        self.outputs = outputs
        self.depth = self.channels * math.prod(self.kernel)
        self.places = math.prod(self.sides)

    def blocks(self, columns: int) -> list[_Block]:
        """Parts of about so many columns of one sample, along the first side; no fewer than cores."""
        columns = min(max(columns, COLUMNS), max(1, -(-self.places * math.prod(self.batch) // cores())))
        spans = pieces(self.sides[0], max(1, columns // math.prod(self.sides[1:])))
        return [_Block(place, span) for place in itertools.product(*map(range, self.batch)) for span in spans]

    def cost(self, taps: int, columns: int) -> float:
        """What so many columns of a product cost, with its sum over taps."""
        packed = PACKED * self.depth * (columns + self.outputs)
        added = BEGUN + taps * (CALLED + SUMMED * self.outputs * columns)
        return packed + added + MULTIPLIED * self.depth * self.outputs * columns


@dataclass(frozen=True, slots=True)
class _Block:
    """The place among samples and groups, and the part of the first side."""

    place: Shape
    span: Span


class TapProduct:
    """The product for one shape of the view and of the result, both with elements in them."""

    def __init__(self, sizes: _Sizes, patches: PatchProduct) -> None:
        self._sizes = sizes
        self._patches = patches
        self._found: tuple[object, _InPlace | _Copied | None] = (None, None)

    def __call__(self, weights: Array, view: Array, out: Array | None = None) -> Array:
        multiply = gemm(weights.dtype)
        way = self._way(view, weights.dtype)
        if multiply is None or way is None:
            return self._patches(weights, view, out)
        sizes = self._sizes
        shape = (*sizes.batch, sizes.outputs, *sizes.sides)
        flat = (*sizes.batch, sizes.outputs, sizes.places)
        result = np.empty(flat, weights.dtype) if out is None else out
        target = result.reshape(shape)
        rows = np.ascontiguousarray(weights)

        def work(blocks: Iterator[_Block]) -> None:
            for block in blocks:
                group = rows[block.place[1:]]
                way.compute(multiply, block, group, view, target)

        with single_threaded():
            share(work, way.blocks)
        return result

    def _way(self, view: Array, dtype: np.dtype[Any]) -> _InPlace | _Copied | None:
        """The quickest way for this arrangement of memory, none if that is to copy patches."""
        key = (view.strides, view.dtype, view.flags.aligned, dtype)
        found = self._found  # an arrangement stays as it is from run to run
        if found[0] != key:
            found = self._found = (key, self._choose(view, dtype))
        return found[1]

    def _ways(self, view: Array, dtype: np.dtype[Any]) -> list[_InPlace | _Copied]:
        """All that can be done with this arrangement."""
        if min(view.strides) < 0 or max(*view.shape, *view.strides, self._sizes.outputs) >= LARGEST:
            return []
        ways: list[_InPlace | _Copied] = [_Copied(self._sizes, view)]
        if _can_read(self._sizes, view, dtype):
            ways.insert(0, _InPlace(self._sizes, view))
        return [each for each in ways if each.memory <= MEMORY]

    def _choose(self, view: Array, dtype: np.dtype[Any]) -> _InPlace | _Copied | None:
        best = min(self._ways(view, dtype), key=lambda way: way.cost, default=None)
        # Copied patches of several samples are one product, for which the weights are packed once.
        sizes = self._sizes
        together = self._patches.together
        columns = together * sizes.places
        patches = COPIED * sizes.depth * columns + sizes.cost(1, columns)
        return best if best is not None and best.cost * together < patches else None


def _can_read(sizes: _Sizes, view: Array, dtype: np.dtype[Any]) -> bool:
    """Whether channels are rows of a matrix, in which places lie side by side."""
    item = view.itemsize
    if view.dtype != dtype or not view.flags.aligned or any(each % item for each in view.strides):
        return False
    pitches = [each // item for each in view.strides[-sizes.axes :]]
    return pitches[-1] == 1 and view.strides[-sizes.axes - 1] // item >= _columns(sizes.sides, pitches)


def _columns(lengths: Sequence[int], pitches: Sequence[int]) -> int:
    """How many columns a matrix has that reaches from the first place to the last one."""
    return 1 + sum((each - 1) * pitch for each, pitch in zip(lengths, pitches, strict=True))


class _InPlace:
    """Every element of the kernel is a tap, and nothing is copied."""

    def __init__(self, sizes: _Sizes, view: Array) -> None:
        axes, item = sizes.axes, view.itemsize
        self._sizes = sizes
        self._pitches = tuple(each // item for each in view.strides[-axes:])
        steps = view.strides[-2 * axes - 1 : -axes - 1]
        self._starts = [  # in bytes
            sum(at * step for at, step in zip(tap, steps, strict=True))
            for tap in itertools.product(*map(range, sizes.kernel))
        ]
        columns = _columns(sizes.sides, self._pitches)
        dense = (math.prod(sizes.sides[axis + 1 :]) for axis in range(axes))
        pitched = zip(self._pitches, dense, sizes.sides, strict=True)
        self._gaps = any(pitch != step for pitch, step, side in pitched if side > 1)
        self.cost = (
            sizes.cost(len(self._starts), columns) + self._gaps * COPIED * sizes.outputs * sizes.places
        )
        widest = BLOCK // (sizes.channels + sizes.outputs)
        self.blocks = sizes.blocks(widest * sizes.places // columns)
        largest = (self.blocks[0].span[1], *sizes.sides[1:])
        self.memory = self._gaps * sizes.outputs * _columns(largest, self._pitches)

    def compute(self, multiply: Gemm, block: _Block, weights: Array, view: Array, result: Array) -> None:
        sizes, part = self._sizes, slice(*block.span)
        first: Index = (*block.place, *[0] * sizes.axes, slice(None), part)
        place: Index = (*block.place, slice(None), part)
        source, target = view[first], result[place]
        columns, item = _columns(source.shape[1:], self._pitches), source.itemsize
        into = target
        if self._gaps:
            size = sizes.outputs * columns
            into = _scratch.array(0, (sizes.outputs, columns), target.dtype, size * item)
        address, between = source.ctypes.data, source.strides[0] // item
        reads = [(address + each, between) for each in self._starts]
        _sum_up(multiply, weights, sizes.channels, columns, reads, into)
        if self._gaps:
            strides = (columns * item, *[each * item for each in self._pitches])
            np.copyto(target, np.lib.stride_tricks.as_strided(into, target.shape, strides))


class _Copied:
    """The taps are those along the kernel's first axis; windows are copied along the others.

    Taps whose starts are a multiple of the stride apart read the same *plane* from other rows on.
    """

    def __init__(self, sizes: _Sizes, view: Array) -> None:
        step = view.strides[-2 * sizes.axes - 1]
        stride = view.strides[-sizes.axes] or LARGEST  # none between rows: they are one row
        self._sizes = sizes
        self._width = math.prod(sizes.sides[1:])
        firsts: dict[int, int] = {}  # the first tap by what is left over of its start
        self._taps: list[tuple[int, int]] = []  # the first tap of its plane, and rows from there
        for tap in range(sizes.kernel[0]):
            first = firsts.setdefault(tap * step % stride, tap)
            self._taps.append((first, (tap - first) * step // stride))
        self._reach = dict(sorted(self._taps))  # of every plane, the rows beyond those of its first tap
        self._merged = sizes.depth // sizes.kernel[0]
        planes = len(self._reach)
        copied = self._merged * self._width * (sizes.sides[0] * planes + sum(self._reach.values()))
        self.cost = COPIED * copied + sizes.cost(len(self._taps), sizes.places)
        self.blocks = sizes.blocks(BLOCK // (self._merged * planes + sizes.outputs))
        rows = self.blocks[0].span[1] * planes + sum(self._reach.values())
        self.memory = self._merged * self._width * rows

    def compute(self, multiply: Gemm, block: _Block, weights: Array, view: Array, result: Array) -> None:
        length, item = block.span[1] - block.span[0], weights.itemsize
        rows = {tap: length + reach for tap, reach in self._reach.items()}
        size = self._merged * self._width * sum(rows.values())
        memory = _scratch.array(1, (size,), weights.dtype, size * item)
        planes: dict[int, Matrix] = {}
        start = 0
        for tap, count in rows.items():
            source = self._plane(view, block, tap, count)
            copy = memory[start : start + source.size].reshape(source.shape)
            np.copyto(copy, source, casting="unsafe")
            planes[tap] = (copy.ctypes.data, count * self._width)
            start += source.size
        reads = [(planes[first][0] + row * self._width * item, planes[first][1]) for first, row in self._taps]
        place: Index = (*block.place, slice(None), slice(*block.span))
        target = result[place]
        _sum_up(multiply, weights, self._merged, length * self._width, reads, target)

    def _plane(self, view: Array, block: _Block, tap: int, rows: int) -> Array:
        """(rest of the kernel…, channels, rows, …) as the tap sees it, with the rows of those after it."""
        sizes = self._sizes
        inner = [slice(None)] * sizes.axes  # the rest of the kernel, and channels
        place: Index = (*block.place, tap, *inner, slice(*block.span))
        source = view[place]
        shape = (*source.shape[: sizes.axes], rows, *source.shape[sizes.axes + 1 :])
        return np.lib.stride_tricks.as_strided(source, shape, source.strides)


def _sum_up(
    multiply: Gemm, weights: Array, depth: int, columns: int, reads: list[Matrix], into: Array
) -> None:
    """The sum over taps of weights (m, depth) @ what is read (depth, columns)."""
    item = into.itemsize
    sizes = (into.shape[0], columns, depth)
    address, between = weights.ctypes.data, weights.shape[1]
    target = (into.ctypes.data, max(into.strides[0] // item, columns))
    for tap, read in enumerate(reads):
        multiply(sizes, (address + tap * depth * item, between), read, target, 1.0 if tap else 0.0)
