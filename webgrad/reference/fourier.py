"""Fourier transforms by NumPy's, over rows shared out to threads.

In: arrays of floats, complex numbers as pairs. Out: new arrays. NumPy's public functions compute in float64
where nothing is scaled, whatever the type; the functions under them keep single precision if the scale has
it, in a quarter of the time. One long row is cut in two: as a matrix its columns are transformed, turned, and
then its rows, each piece in a core's cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from ..arrays import Array, np
from ..runtime.host_buffers import empty
from ..runtime.threads import cores, each_of

__all__ = ["half_of_real", "real_from_half", "transformed"]

Rows = Callable[[Array, Array], None]  # fills the second with the transforms of the first's rows

BLOCK = 1 << 15  # elements: as many rows as have about so many are one task
LONG = 1 << 17  # numbers of a row that is cut in two
STRIP = 32  # columns that are turned at a time


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.complex64 if dtype == np.float32 else np.complex128)


def _numbers(x: Array) -> Array:
    """Pairs as complex numbers, rows of them."""
    found: Array = np.ascontiguousarray(x).view(_complex(x.dtype))
    return found.reshape(-1, x.shape[-2])


@cache
def _under(name: str) -> Any:
    """The function under NumPy's public ones; None in NumPy 1."""
    return getattr(getattr(np.fft, "_pocketfft_umath", None), name, None)


def _named(name: str, public: Callable[..., Array], scale: float, dtype: np.dtype[Any]) -> Rows:
    """NumPy's function by its name under the public ones, or the public one, which gives doubles."""
    function = _under(name)
    factor = dtype.type(scale)
    if function is not None:

        def quick(x: Array, out: Array) -> None:
            function(x, factor, out=out)

        return quick

    def plain(x: Array, out: Array) -> None:
        np.multiply(public(x), scale, out=out, casting="unsafe")

    return plain


def _fill(rows: Rows, x: Array, out: Array) -> None:
    """Each row of x into one of out, some at a time."""
    step = max(1, BLOCK // max(x.shape[1], out.shape[1]))
    parts = [slice(start, start + step) for start in range(0, len(x), step)]
    each_of(lambda part: rows(x[part], out[part]), parts)


def _fill_across(rows: Rows, x: Array, out: Array) -> None:
    """(outer, length, inner) along the length: rows that lie across memory, as many as share cache lines."""
    outer, length, inner = x.shape
    step = min(inner, max(16, BLOCK // length))
    several = max(1, BLOCK // (length * inner))
    parts = [
        (slice(at, at + several), slice(None), slice(start, start + step))
        for at in range(0, outer, several)
        for start in range(0, inner, step)
    ]
    each_of(lambda part: rows(x[part].swapaxes(1, 2), out[part].swapaxes(1, 2)), parts)


def transformed(x: Array, inverse: bool, scale: float, axis: int) -> Array:
    """The transforms of pairs along an axis; the last one holds their parts."""
    result = empty(x.shape, x.dtype)
    if not x.size:
        return result
    public = (lambda rows: np.fft.ifft(rows, norm="forward")) if inverse else np.fft.fft
    name = "ifft" if inverse else "fft"
    length = x.shape[axis]
    if axis != x.ndim - 2:
        shape = (-1, length, math.prod(x.shape[axis + 1 : -1]))
        source, target = (
            each.view(_complex(x.dtype)).reshape(shape) for each in (np.ascontiguousarray(x), result)
        )
        _fill_across(_named(name, public, scale, x.dtype), source, target)
        return result
    source, target = _numbers(x), result.view(_complex(x.dtype)).reshape(-1, length)
    first = _divisor(length) if length >= LONG and len(source) < cores() else 1
    if first == 1:
        _fill(_named(name, public, scale, x.dtype), source, target)
        return result
    plain, scaled = (_named(name, public, each, x.dtype) for each in (1.0, scale))
    for row, line in zip(source, target, strict=True):
        _in_two(row.reshape(first, -1), line.reshape(-1, first), inverse, plain, scaled)
    return result


def _divisor(length: int) -> int:
    """The largest divisor up to the root, if that is not far from it: else 1."""
    root = math.isqrt(length)
    return next((each for each in range(root, root // 8, -1) if length % each == 0), 1)


@lru_cache(maxsize=4)
def _turns(first: int, second: int, inverse: bool, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """exp(∓2πi·jk/n) for all k below `first`, n = first * second, for j below STRIP and its multiples."""
    k = np.arange(first, dtype=np.int64)
    sign = 2j if inverse else -2j
    length = first * second
    fine = np.arange(min(STRIP, second), dtype=np.int64)[:, None] * k
    coarse = np.arange(0, second, STRIP, dtype=np.int64)[:, None] * k % length
    both = (np.exp(sign * np.pi / length * each).astype(dtype) for each in (fine, coarse))
    return next(both), next(both)


def _in_two(x: Array, out: Array, inverse: bool, plain: Rows, scaled: Rows) -> None:
    """A row as the matrix (first, second): columns, then what they are turned by, then rows. The result is
    (second, first).
    """
    first, second = x.shape
    fine, coarse = _turns(first, second, inverse, x.dtype)
    between = empty((first, second), x.dtype)

    def columns(start: int) -> None:
        strip = np.ascontiguousarray(x[:, start : start + STRIP].T)
        sums = np.empty_like(strip)
        plain(strip, sums)
        sums *= fine[: len(strip)] * coarse[start // STRIP]
        between[:, start : start + STRIP] = sums.T

    def rows(start: int) -> None:
        strip = between[start : start + STRIP]
        sums = np.empty_like(strip)
        scaled(strip, sums)
        out[:, start : start + STRIP] = sums.T

    each_of(columns, range(0, second, STRIP))
    each_of(rows, range(0, first, STRIP))


def half_of_real(x: Array, scale: float) -> Array:
    """The first n // 2 + 1 pairs of the transforms of (…, n)."""
    length = x.shape[-1]
    result = empty((*x.shape[:-1], length // 2 + 1, 2), x.dtype)
    if x.size:
        name = "rfft_n_odd" if length % 2 else "rfft_n_even"
        source = np.ascontiguousarray(x).reshape(-1, length)
        target = result.view(_complex(x.dtype)).reshape(len(source), -1)
        _fill(_named(name, np.fft.rfft, scale, x.dtype), source, target)
    return result


def real_from_half(x: Array, length: int, scale: float) -> Array:
    """Real numbers (…, length) from the first half of their transforms, as pairs."""
    result = empty((*x.shape[:-2], length), x.dtype)
    if result.size:

        def public(rows: Array) -> Array:
            return np.fft.irfft(rows, length, norm="forward")

        _fill(_named("irfft", public, scale, x.dtype), _numbers(x), result.reshape(-1, length))
    return result
