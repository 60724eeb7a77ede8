"""Matrix products by BLAS: floats as they are, integers in float64 where that is exact.

In: (…, m, k) and (…, k, n) of one dtype, float32, float64 or integers. Out: (…, m, n); integers wrap.
Batches, and thin products with a large matrix, are shared out to our own threads: NumPy has one for them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ..arrays import Array, np
from ..runtime.threads import cores, share
from .blas import is_controlled, single_threaded

__all__ = ["matmul", "multiply"]

WORTH_IT = 1 << 15  # multiplications from which integers are looked at before they are multiplied
EXACT = 1 << 53  # float64 holds every integer up to here
SHARED = 1 << 25  # multiplications of a batch from which waking a thread pays
LARGE = 1 << 22  # elements of a matrix from which it does for thin products
UNIT = 16  # rows or columns of which a part is a multiple; fewer are thin
Part = tuple[Array, Array, Array]


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """The product over the last two axes, the others broadcast; `out` is contiguous."""
    if a.dtype.kind != "f":
        result = _integers(a, b)
        if out is None:
            return result
        np.copyto(out, result)
        return out
    a, b = _ready(a), _ready(b)
    if a.ndim > 2 and math.prod(b.shape[:-2]) == 1 and a.ndim >= b.ndim and a.flags.c_contiguous:
        # One product for all of the batch
        b = b.reshape(b.shape[-2:])
        rows = math.prod(a.shape[:-1])
        result = np.empty((*a.shape[:-1], b.shape[1]), a.dtype) if out is None else out
        multiply(a.reshape(rows, a.shape[-1]), b, result.reshape(rows, b.shape[1]))
        return result
    if out is None:  # else the batch's axes would lie as the inputs' do
        sides = itertools.zip_longest(a.shape[-3::-1], b.shape[-3::-1], fillvalue=1)
        batch = [one if other == 1 else other for one, other in sides]
        out = np.empty((*reversed(batch), a.shape[-2], b.shape[-1]), a.dtype)
    multiply(a, b, out)
    return out


def multiply(a: Array, b: Array, out: Array) -> None:
    """One product, or a batch of them, into an array of any layout, in as many threads as pay."""
    batch = out.ndim > 2
    large = batch and out.size * a.shape[-1] >= SHARED
    large |= min(out.shape[-2:]) < UNIT and max(a.size, b.size) >= LARGE
    if (large or batch) and is_controlled() and cores() > 1:
        parts = _parts(a, b, out) if large else [(a, b, out)]
        with single_threaded():
            share(_work, parts)
    else:
        np.matmul(a, b, out=out)


def _work(parts: Iterator[Part]) -> None:
    for a, b, out in parts:
        np.matmul(a, b, out=out)


def _parts(a: Array, b: Array, out: Array) -> list[Part]:
    """A part for every core: of the first axis of a batch, else of the longer side of the result."""
    rows, columns = out.shape[-2:]
    if out.ndim > 2 and out.shape[0] >= cores():
        batched = [each.ndim == out.ndim and each.shape[0] > 1 for each in (a, b)]
        return [
            (a[at] if batched[0] else a, b[at] if batched[1] else b, out[at])
            for at in (slice(*each) for each in _ranges(out.shape[0], 1))
        ]
    if columns > rows:
        return [(a, b[..., start:stop], out[..., start:stop]) for start, stop in _ranges(columns, UNIT)]
    return [(a[..., start:stop, :], b, out[..., start:stop, :]) for start, stop in _ranges(rows, UNIT)]


def _ranges(side: int, unit: int) -> list[tuple[int, int]]:
    step = -(-side // (cores() * unit)) * unit
    return [(start, min(start + step, side)) for start in range(0, side, step)]


def _ready(x: Array) -> Array:
    """x, copied if BLAS could not read it as a matrix or a transposed one."""
    row, column = x.strides[-2:]
    rows, columns = x.shape[-2:]
    item = x.itemsize
    plain = (column == item or columns == 1) and (row >= item * columns or rows == 1) and row % item == 0
    turned = (row == item or rows == 1) and (column >= item * rows or columns == 1) and column % item == 0
    return x if plain or turned else np.ascontiguousarray(x)


def _integers(a: Array, b: Array) -> Array:
    """By BLAS in float64 where nothing is rounded: NumPy alone is many times slower with integers."""
    if a.size * b.shape[-1] < WORTH_IT or not b.size or _largest(a) * _largest(b) * a.shape[-1] >= EXACT:
        return np.asarray(np.matmul(a, b))
    exact = matmul(a.astype(np.float64), b.astype(np.float64))
    wrapped: Array = exact.astype(np.int64).astype(a.dtype)
    return wrapped


def _largest(x: Array) -> int:
    return max(int(x.max()), -int(x.min()))
