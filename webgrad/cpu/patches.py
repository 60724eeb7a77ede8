"""Convolutions by BLAS: products with patches that are windows of an array, never all copied at once.

In: weights (…, m, k), and patches as a view (samples, …, axes of k, axes of n), of any strides. Out:
(samples, …, m, n). Blocks of patches are copied into memory that stays in the cache and multiplied there, in
as many threads as there are cores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..arrays import Array, np
from ..runtime.threads import Scratch, cores, share
from .blas import single_threaded

__all__ = ["PatchProduct", "pieces"]

Shape = tuple[int, ...]
Span = tuple[int, int]

BLOCK = 1 << 17  # elements of a block of patches
COLUMNS = 192  # columns of a block, at least where there are as many: fewer make a slow product
_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class _Block:
    """Samples, a place among the groups, and for each axis of n the part of it."""

    samples: Span
    group: Shape
    spans: tuple[Span, ...]


class PatchProduct:
    """The product for one shape of the view and of the result, (samples, groups…, m, n)."""

    def __init__(self, view: Shape, result: Shape) -> None:
        groups = len(result) - 3
        places = len(view)
        while math.prod(view[places:]) != result[-1]:
            places -= 1
        self._result = result
        self._groups = view[1 : 1 + groups]
        self._inner = view[1 + groups : places]
        self._sides = view[places:]
        self.together = 1  # samples in a block
        self._blocks = self._make_blocks(result[0])

    def _make_blocks(self, samples: int) -> list[_Block]:
        """Blocks of many samples where the images are small, else of rows of one."""
        depth, count = math.prod(self._inner), math.prod(self._sides)
        if not samples * count:
            return []
        products = samples * math.prod(self._groups)
        columns = max(BLOCK // depth, COLUMNS)
        columns = min(columns, max(-(-count * products // cores()), 1))
        self.together = max(1, min(columns // count, samples))
        spans = [pieces(samples, self.together)]
        for axis in range(len(self._sides)):
            behind = math.prod(self._sides[axis + 1 :])
            spans.append(pieces(self._sides[axis], max(1, columns // behind)))
        groups = itertools.product(*map(range, self._groups))
        return [
            _Block(several, group, tuple(parts))
            for group in groups
            for several, *parts in itertools.product(*spans)
        ]

    def __call__(self, weights: Array, view: Array, out: Array | None = None) -> Array:
        dtype = weights.dtype
        result = np.empty(self._result, dtype) if out is None else out

        def work(blocks: Iterator[_Block]) -> None:
            for block in blocks:
                self._compute(block, weights, view, result)

        with single_threaded():
            share(work, self._blocks)
        return result

    def _compute(self, block: _Block, weights: Array, view: Array, result: Array) -> None:
        first, last = block.samples
        spans = tuple(slice(*each) for each in block.spans)
        place: tuple[Any, ...] = (slice(first, last), *block.group)
        source = view[(*place, *[slice(None)] * len(self._inner), *spans)]
        lengths = [stop - start for start, stop in block.spans]
        columns = math.prod(lengths)
        depth, samples = math.prod(self._inner), last - first
        dtype = weights.dtype
        size = depth * samples * columns * dtype.itemsize
        copy = _scratch.array(0, (*self._inner, samples, *lengths), dtype, size)
        np.copyto(copy, np.moveaxis(source, 0, len(self._inner)), casting="unsafe")
        patches = copy.reshape(depth, samples * columns)
        rows = weights[block.group] if weights.ndim > 2 else weights
        target = result.reshape(*result.shape[:-1], *self._sides)[(*place, slice(None), *spans)]
        flat = _joined(target, columns) if samples == 1 else None
        if flat is not None:
            np.matmul(rows, patches, out=flat)
            return
        product = np.matmul(rows, patches).reshape(rows.shape[0], samples, *lengths)
        np.copyto(target, np.moveaxis(product, 1, 0))


def _joined(target: Array, columns: int) -> Array | None:
    """One sample's part of the result as a matrix, where its columns lie side by side."""
    matrix = target[0]
    step = matrix.itemsize
    for side, stride in zip(reversed(matrix.shape[1:]), reversed(matrix.strides[1:]), strict=True):
        if side != 1 and stride != step:
            return None
        step *= side
    rows = matrix.shape[0]
    return np.lib.stride_tricks.as_strided(matrix, (rows, columns), (matrix.strides[0], matrix.itemsize))


def pieces(side: int, length: int) -> list[Span]:
    """Parts of about one length, not more than `length`."""
    step = -(-side // -(-side // length))
    return [(start, min(start + step, side)) for start in range(0, side, step)]
