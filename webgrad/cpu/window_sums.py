"""Weights' gradients of convolutions by BLAS: products summed over samples and places, by blocks of these.

In: a (groups…, m, samples, places…), and windows (groups…, samples, places…, columns…), views of any strides.
Out: (groups…, m, n), n being all columns. Blocks of both are copied into memory that stays in the cache,
places side by side, and multiplied there. The invariant: which blocks are added to which, and in what order,
depends on the shapes alone, so that results are the same however many threads there are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from ..arrays import Array, np
from ..runtime.threads import Scratch, share
from .blas import single_threaded
from .patches import pieces

__all__ = ["WindowSum"]

Shape = tuple[int, ...]
Spans = tuple[slice, ...]
Lot = tuple[Shape, int, list[Spans]]  # the group, the number of its total, and parts of samples and rows

BLOCK = 1 << 17  # elements of a block of windows
PLACES = 256  # of a block, at least where there are as many: fewer make a slow product
LOTS = 16  # totals of their own, which threads share
TOTALS = 1 << 22  # elements of all totals, unless few lots have more
_scratch = Scratch()


class WindowSum:
    """The product for one shape of the windows and of the result; the first `axes` of the former are k."""

    def __init__(self, windows: Shape, result: Shape, axes: int) -> None:
        groups = len(result) - 2
        self._shape = result
        self._rows = (*result[:-1], *windows[groups : groups + axes])
        self._axes = axes
        sides = windows[groups : groups + axes]
        places = max(BLOCK // max(1, result[-1]), PLACES)
        each = math.prod(sides[1:])
        spans = [pieces(sides[0], max(1, places // max(1, each)))] if math.prod(sides) else []
        if axes > 1 and spans:
            spans.append(pieces(sides[1], max(1, places // math.prod(sides[2:]))))
        parts = [tuple(slice(*span) for span in part) for part in itertools.product(*spans)] if spans else []
        count = math.prod(result[:groups])
        wanted = max(4, min(LOTS, TOTALS // max(1, math.prod(result)))) // max(1, count)
        runs = pieces(len(parts), -(-len(parts) // max(1, wanted))) if parts else []
        self._totals = len(runs)
        self._lots: list[Lot] = [
            (group, number, parts[start:stop])
            for group in itertools.product(*map(range, result[:groups]))
            for number, (start, stop) in enumerate(runs)
        ]

    def __call__(self, a: Array, windows: Array, out: Array) -> Array:
        if not self._lots:
            out[...] = 0
            return out
        a = a.reshape(self._rows)
        groups = len(self._shape) - 2
        shape = (*self._shape[:groups], self._totals, *self._shape[groups:])
        totals = out.reshape(shape) if self._totals == 1 else np.empty(shape, out.dtype)

        def work(lots: Iterator[Lot]) -> None:
            for group, number, parts in lots:
                self._add_up(a[group], windows[group], parts, totals[(*group, number)])

        with single_threaded():
            share(work, self._lots)
        if self._totals > 1:
            np.add.reduce(totals, axis=groups, out=out)
        return out

    def _add_up(self, a: Array, windows: Array, parts: list[Spans], total: Array) -> None:
        """The sum over some parts of samples and places."""
        rows, columns = total.shape
        for at, part in enumerate(parts):
            left = a[(slice(None), *part)]
            right = windows[part]
            length = math.prod(left.shape[1:])
            left = _packed(0, left, (rows, length), total.dtype)
            last = right.ndim - self._axes
            turned = np.moveaxis(right, range(-last, 0), range(last))
            right = _packed(1, turned, (columns, length), total.dtype)
            if not at:
                np.matmul(left, right.T, out=total)
                continue
            product = _scratch.array(2, total.shape, total.dtype, total.nbytes)
            np.matmul(left, right.T, out=product)
            np.add(total, product, out=total)


def _packed(number: int, x: Array, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """A copy in a thread's own memory, as a matrix."""
    copy = _scratch.array(number, x.shape, dtype, x.size * dtype.itemsize)
    np.copyto(copy, x, casting="unsafe")
    return copy.reshape(shape)
