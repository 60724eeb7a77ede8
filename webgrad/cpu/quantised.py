"""Quantised blocks on the cpu: few rows are multiplied straight with them, more by BLAS with unpacked rows.

In: words of blocks with their format and shape. Out: float32 weights, or products with them. Native code
reads blocks where there is some; else NumPy unpacks them, in several threads. The invariant: a product never
holds more of the weights unpacked than `CHUNK`, or one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..ops.packed import decoded_rows
from .native.calls import decoder, multiplier
from .threads import share

__all__ = ["decode", "matmul_blocks", "product_of"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
CHUNK = 1 << 22  # weights that are unpacked before BLAS has them
PIECE = 1 << 16  # weights that a thread unpacks at a time, by NumPy


def decode(words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """All weights."""
    result = np.empty(shape, np.float32) if out is None else out
    if result.size:
        rows = math.prod(shape[:-1])
        _unpacker(name, shape)(words, 0, result.reshape(rows, shape[-1]))
    return result


def _unpacker(name: str, shape: Shape) -> Callable[[Array, int, Array], None]:
    """The function that unpacks rows from `first` on, as many as the result has."""
    native = decoder(name, shape)

    def unpack(words: Array, first: int, result: Array) -> None:
        if not native(words, first, result):
            _unpack(words, name, shape, first, result)

    return unpack


def _unpack(words: Array, name: str, shape: Shape, first: int, result: Array) -> None:
    count = max(1, PIECE // shape[-1])
    starts = range(0, len(result), count)

    def work(left: Iterator[int]) -> None:
        with np.errstate(all="ignore"):
            for start in left:
                stop = min(start + count, len(result))
                rows = slice(first + start, first + stop)
                result[start:stop] = decoded_rows(words, name, shape, rows)

    share(work, starts)


def product_of(name: str, shape: Shape) -> Callable[..., Array]:
    """The function that multiplies (…, k) by the transpose of (n, k) blocks."""
    n, k = shape
    native, unpack = multiplier(name, shape), _unpacker(name, shape)

    def multiply(a: Array, words: Array, out: Array | None = None) -> Array:
        result = np.empty((*a.shape[:-1], n), np.float32) if out is None else out
        left, right = np.ascontiguousarray(a).reshape(-1, k), result.reshape(-1, n)
        if native(left, words, right):
            return result
        chunk = np.empty((min(n, max(1, CHUNK // k)), k), np.float32)
        for first in range(0, n, len(chunk)):
            part = chunk[: n - first]
            unpack(words, first, part)
            np.matmul(left, part.T, out=right[:, first : first + len(part)])
        return result

    return multiply


def matmul_blocks(a: Array, words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """(…, k) by the transpose of (n, k) blocks."""
    return product_of(name, shape)(a, words, out)
