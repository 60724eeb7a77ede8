"""Quantised blocks on the cpu: few rows are multiplied straight with them, more by BLAS with unpacked rows.

In: words of blocks with their format and shape. Out: float32 weights, or products with them. Weights are
unpacked by native code where there is some, else by NumPy, in panels (`panels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..arrays import Array, np
from ..native.calls import decoder, multiplier
from ..ops.packed import decoded_rows
from ..runtime.threads import share
from .panels import multiply_panels, panel_rows

__all__ = ["decode", "matmul_blocks", "product_of"]

Shape = tuple[int, ...]
Unpack = Callable[[Array, int, Array], None]
PLAIN_PIECE = 1 << 16  # weights that NumPy unpacks at a time: it goes over them often


def decode(words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """All weights."""
    result = np.empty(shape, np.float32) if out is None else out
    if result.size:
        unpack, step = _unpacker(name, shape), panel_rows(shape[-1])
        rows = result.reshape(-1, shape[-1])

        def work(starts: Iterator[int]) -> None:
            for first in starts:
                unpack(words, first, rows[first : first + step])

        share(work, range(0, len(rows), step))
    return result


def _unpacker(name: str, shape: Shape) -> Unpack:
    """The function that unpacks rows from `first` on, as many as the result has, in the calling thread."""
    native = decoder(name, shape)
    step = max(1, PLAIN_PIECE // shape[-1])

    def unpack(words: Array, first: int, result: Array) -> None:
        if native(words, first, result):
            return
        with np.errstate(all="ignore"):
            for start in range(0, len(result), step):
                stop = min(start + step, len(result))
                result[start:stop] = decoded_rows(words, name, shape, slice(first + start, first + stop))

    return unpack


def product_of(name: str, shape: Shape) -> Callable[..., Array]:
    """The function that multiplies (…, k) by the transpose of (n, k) blocks."""
    n, k = shape
    native, unpack = multiplier(name, shape), _unpacker(name, shape)

    def multiply(a: Array, words: Array, out: Array | None = None) -> Array:
        result = np.empty((*a.shape[:-1], n), np.float32) if out is None else out
        left, right = np.ascontiguousarray(a).reshape(-1, k), result.reshape(-1, n)
        if native(left, words, right):
            return result
        multiply_panels(left, lambda first, panel: unpack(words, first, panel), right)
        return result

    return multiply


def matmul_blocks(a: Array, words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """(…, k) by the transpose of (n, k) blocks."""
    return product_of(name, shape)(a, words, out)
