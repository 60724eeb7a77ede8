"""Quantised blocks by NumPy: rows are unpacked in the cache, in several threads, and multiplied by BLAS.

In: words of blocks with their format and shape. Out: float32 weights, or products with them. The invariant:
a product never holds more of the weights unpacked than `CHUNK`, or one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ops.packed import decoded_rows
from .threads import share

__all__ = ["decode", "matmul_blocks"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
CHUNK = 1 << 22  # weights that are unpacked before BLAS has them
PIECE = 1 << 16  # weights that a thread unpacks at a time


def decode(words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """All weights."""
    result = np.empty(shape, np.float32) if out is None else out
    if result.size:
        rows = math.prod(shape[:-1])
        _unpack(words, name, shape, 0, result.reshape(rows, shape[-1]))
    return result


def _unpack(words: Array, name: str, shape: Shape, first: int, result: Array) -> None:
    """As many rows as the result has, from `first` on."""
    count = max(1, PIECE // shape[-1])
    starts = range(0, len(result), count)

    def work(left: Iterator[int]) -> None:
        with np.errstate(all="ignore"):
            for start in left:
                stop = min(start + count, len(result))
                rows = slice(first + start, first + stop)
                result[start:stop] = decoded_rows(words, name, shape, rows)

    share(work, starts)


def matmul_blocks(a: Array, words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """(…, k) by the transpose of (n, k) blocks."""
    n, k = shape
    result = np.empty((*a.shape[:-1], n), np.float32) if out is None else out
    left, right = np.ascontiguousarray(a).reshape(-1, k), result.reshape(-1, n)
    chunk = np.empty((min(n, max(1, CHUNK // k)), k), np.float32)
    for first in range(0, n, len(chunk)):
        part = chunk[: n - first]
        _unpack(words, name, shape, first, part)
        np.matmul(left, part.T, out=right[:, first : first + len(part)])
    return result
