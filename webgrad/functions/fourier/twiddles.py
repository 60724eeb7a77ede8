"""Numbers that Fourier transforms on GPUs multiply with, made on the host in float64 and kept on the device.

In: a length, a dtype of floats and a device. Out: leaves that hold complex numbers. Angles are integers
over an integer, reduced before they are rounded. The invariant: the tables have at most LIMIT
bytes together; the least recently used are dropped first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...arrays import Array, has_numpy, np
from ...dtypes import DType, as_dtype
from ...graph.node import Node, leaf
from ...values import Values
from . import lists

LIMIT = 64 << 20  # bytes


def _roots_of_unity(parts: Array, whole: int, inverse: bool) -> Array:
    """exp(∓2πi · parts / whole), parts between 0 and whole."""
    angle = 2 * np.pi * (np.where(2 * parts > whole, parts - whole, parts) / whole)
    return np.asarray(np.exp(1j * angle if inverse else -1j * angle))


def twiddle_factors(length: int, count: int, inverse: bool) -> Array:
    """Twiddle factors: exp(∓2πik/length) for k below `count`."""
    return _roots_of_unity(np.arange(count, dtype=np.int64), length, inverse)


def chirp(length: int, inverse: bool) -> Array:
    """exp(∓πik²/length) for k below the length."""
    k = np.arange(length, dtype=np.int64)
    return _roots_of_unity(k * k % (2 * length), 2 * length, inverse)


def chirp_transform(length: int, padded: int, inverse: bool) -> Array:
    """The transform, `padded` long, of the conjugate chirp, which is also mirrored at the end."""
    wave = chirp(length, not inverse)
    line = np.zeros(padded, np.complex128)
    line[:length] = wave
    line[padded - length + 1 :] = wave[:0:-1]
    return np.asarray(np.fft.fft(line))


def matrix(length: int, inverse: bool, scale: float) -> Array:
    """The matrix that a row of pairs is multiplied with: (2 length, 2 length) real numbers."""
    k = np.arange(length, dtype=np.int64)
    wave = _roots_of_unity(np.outer(k, k) % length, length, inverse) * scale
    cells = np.empty((length, 2, length, 2))
    cells[:, 0, :, 0] = cells[:, 1, :, 1] = wave.real
    cells[:, 0, :, 1] = wave.imag
    cells[:, 1, :, 0] = -wave.imag
    return cells.reshape(2 * length, 2 * length)


class Tables:
    """Tables on devices, by function, arguments, dtype and device; `clear` drops all of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._nodes: OrderedDict[Any, Node] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def get(self, make: Callable[..., Array], arguments: tuple[Any, ...], dtype: DType, device: Any) -> Node:
        """What a function of this module gives for its arguments, in a dtype on a GPU."""
        key = (make, arguments, dtype, device)
        with self._lock:
            found = self._nodes.get(key)
            if found is not None:
                self._nodes.move_to_end(key)
                return found
        if not has_numpy():
            make = getattr(lists, make.__name__)
        made = _leaf(make(*arguments), dtype, device)
        with self._lock:
            if key not in self._nodes:
                self._nbytes += made.sig.nbytes
            self._nodes[key] = made
            while self._nbytes > self.limit:
                _, oldest = self._nodes.popitem(last=False)
                self._nbytes -= oldest.sig.nbytes
        return made

    @property
    def nbytes(self) -> int:
        """The size of all tables in bytes."""
        return self._nbytes

    def clear(self) -> None:
        """Drop all tables."""
        with self._lock:
            self._nodes.clear()
            self._nbytes = 0


def _leaf(table: Any, dtype: DType, device: Any) -> Node:
    """A leaf that the host can restore after the device was lost."""
    if isinstance(table, Values):
        values = table.astype(dtype)
        return leaf(device.upload(values, "fft table", keep=True), values.shape, dtype, device)
    rounded = np.ascontiguousarray(table.astype(dtype.numpy))
    rounded.flags.writeable = False
    return leaf(device.upload(rounded, "fft table", keep=True), rounded.shape, as_dtype(dtype), device)


tables = Tables(LIMIT)
