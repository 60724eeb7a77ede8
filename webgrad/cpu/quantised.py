"""Quantised blocks on the cpu: few rows are multiplied straight with them, more by BLAS with unpacked rows.

In: words of blocks with their format and shape. Out: float32 weights, or products with them. Threads take
pieces of the rows: each unpacks its piece into its cache, by native code where there is some, else by NumPy,
and multiplies it there. The invariant: a thread never holds more of the weights unpacked than `PIECE`, or one
row, and how rows are cut into pieces follows from the shape alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..arrays import Array, np
from ..ops.packed import decoded_rows
from .blas import is_controlled, single_threaded
from .native.calls import decoder, multiplier
from .threads import Scratch, share

__all__ = ["decode", "matmul_blocks", "product_of"]

Shape = tuple[int, ...]
Unpack = Callable[[Array, int, Array], None]
PIECE = 1 << 18  # weights that a thread unpacks before BLAS has them
PLAIN_PIECE = 1 << 16  # weights that NumPy unpacks at a time: it goes over them often
_FLOAT = np.dtype(np.float32)
_scratch = Scratch()


def decode(words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """All weights."""
    result = np.empty(shape, np.float32) if out is None else out
    if result.size:
        unpack, step = _unpacker(name, shape), _step(shape)
        rows = result.reshape(-1, shape[-1])

        def work(starts: Iterator[int]) -> None:
            for first in starts:
                unpack(words, first, rows[first : first + step])

        share(work, range(0, len(rows), step))
    return result


def _step(shape: Shape) -> int:
    """Rows of a piece."""
    return max(1, PIECE // shape[-1])


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
    native, unpack, step = multiplier(name, shape), _unpacker(name, shape), _step(shape)

    def multiply(a: Array, words: Array, out: Array | None = None) -> Array:
        result = np.empty((*a.shape[:-1], n), np.float32) if out is None else out
        left, right = np.ascontiguousarray(a).reshape(-1, k), result.reshape(-1, n)
        if native(left, words, right):
            return result

        def work(starts: Iterator[int]) -> None:
            for first in starts:
                rows = min(step, n - first)
                piece = _scratch.array(0, (rows, k), _FLOAT, 4 * step * k)
                unpack(words, first, piece)
                np.matmul(left, piece.T, out=right[:, first : first + rows])

        if is_controlled():
            with single_threaded():
                share(work, range(0, n, step))
        else:  # BLAS has threads of its own
            work(iter(range(0, n, step)))
        return result

    return multiply


def matmul_blocks(a: Array, words: Array, name: str, shape: Shape, out: Array | None = None) -> Array:
    """(…, k) by the transpose of (n, k) blocks."""
    return product_of(name, shape)(a, words, out)
