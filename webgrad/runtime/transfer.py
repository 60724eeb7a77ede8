"""Bytes between host and device: host memory made fit for upload, read-back buffers, and waiting for the GPU.

Uploads are plain copies of what NumPy lays out, padded to whole words. A read-back buffer is lent, mapped,
copied out of, unmapped and given back; the invariant is that a mapped buffer is never part of a submit.
"""

from __future__ import annotations

import builtins
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..arrays import has_numpy, np
from ..errors import BufferError, DeviceLostError, DTypeError
from ..observing import stage
from ..values import Values, flat_bytes
from .layer import READBACK, Answers, DeviceLayer, Handle
from .shield import shield

if TYPE_CHECKING:
    Bytes = np.ndarray[Any, np.dtype[np.uint8]]  # where there is no NumPy, a flat memoryview of format "B"
else:
    Bytes = Any

_KEPT = 128 << 20  # bytes of read-back buffers kept for the next read
_SUCCESS = [1]
EAGER = 200e-6  # seconds of waiting without a pause


def as_bytes(data: Any, most: int = sys.maxsize) -> Any:
    """Host memory as flat bytes, `most` or fewer, without a copy where it is contiguous.

    Takes NumPy arrays (read-only ones too), `Values`, and anything with the buffer protocol.
    """
    if isinstance(data, Values):
        return _fitting(data.data, most)
    try:
        if not has_numpy():
            return _fitting(flat_bytes(data), most)
        array = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, builtins.BufferError) as error:
        raise DTypeError(
            f"cannot upload a {type(data).__name__}: give a NumPy array or an object with the buffer "
            f"protocol ({error})"
        ) from None
    if array.dtype.hasobject:
        raise DTypeError(f"cannot upload an array of dtype {array.dtype}: its elements are Python objects")
    if not array.dtype.isnative:
        raise DTypeError(
            f"cannot upload an array of dtype {array.dtype.str} (foreign byte order): GPUs read this "
            "machine's; convert it with array.astype(array.dtype.newbyteorder('='))"
        )
    _fitting(array, most)  # found out before a copy is made of it
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _fitting(data: Any, most: int) -> Any:
    if data.nbytes > most:
        raise BufferError(
            f"an array of {data.nbytes:,} bytes cannot be uploaded: this device's buffers have at most "
            f"{most:,}; split the tensor"
        )
    return data


def read_bytes(memory: Any) -> Bytes:
    """A copy of memory that is about to go."""
    copy: Any = np.frombuffer(memory, np.uint8).copy() if has_numpy() else memoryview(bytearray(memory))
    found: Bytes = copy
    return found


def constant(data: Any) -> Any:
    """Bytes that nobody can change: these, or a copy."""
    if isinstance(data, memoryview):
        return data if isinstance(data.obj, bytes) else memoryview(bytes(data))
    return data if is_constant(data) else data.copy()


def freeze(data: Any) -> Any:
    """The same bytes, not to be written to."""
    if isinstance(data, memoryview):
        return data.toreadonly()
    data.flags.writeable = False
    return data


def is_constant(array: np.ndarray[Any, Any]) -> bool:
    """Whether nobody can change what an array shows: it is read-only, and so is what it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    if base is None:
        return True
    try:
        return memoryview(base).readonly
    except TypeError:
        return False


def write_bytes(write: Callable[[int, Any], None], data: Bytes, start: int = 0) -> None:
    """Call `write(offset, words)` for the whole words, and for a tail padded to a word.

    Offsets count from `start`. Copies must be of whole words, and a host array need not be.
    """
    whole = data.nbytes & ~3
    if whole:
        write(start, data[:whole])
    if whole < data.nbytes:
        write(start + whole, bytes(data[whole:]).ljust(4, b"\0"))


def wait_until(done: Callable[[], bool], native: DeviceLayer, timeout: float | None = None) -> bool:
    """Poll on this thread until `done()`, the device is lost, or `timeout` seconds have passed.

    The answer may also come by another thread's poll. Signals are heard between two polls, which come
    without a pause at first and then at a twentieth of the time waited: the wait is hardly longer for it.
    """
    began = time.monotonic()
    with stage("wait"):
        while True:
            native.poll()
            if done():
                return True
            waited = time.monotonic() - began
            if native.lost or (timeout is not None and waited >= timeout):
                return done()
            native.pause(0 if waited < EAGER else min(waited / 20, 1e-3))


class Staging:
    """Read-back buffers of one open device, kept by size (powers of two)."""

    def __init__(self, native: DeviceLayer, make_buffer: Callable[[int, int], Handle]) -> None:
        self.native = native
        self.bytes_kept = 0
        self._most = _KEPT
        self._make_buffer = make_buffer
        self._free: dict[int, list[Handle]] = {}
        self._abandoned: list[ReadBack] = []
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> tuple[int, Handle]:
        """Lend a buffer of at least so many bytes: (its size, handle)."""
        size = (
            max(1 << (nbytes - 1).bit_length(), 4096) if nbytes < 1 << 24 else (nbytes + 0xFFFFF) & ~0xFFFFF
        )
        if self._abandoned:
            self._take_back()
        with self._lock:
            kept = self._free.get(size)
            if kept:
                self.bytes_kept -= size
                return size, kept.pop()
        return size, self._make_buffer(size, READBACK)

    def give(self, size: int, handle: Handle) -> None:
        """Take an unmapped buffer back."""
        with self._lock:
            if self.bytes_kept + size <= self._most:
                self.bytes_kept += size
                self._free.setdefault(size, []).append(handle)
                return
        self.native.release_buffer(handle)

    def abandon(self, reading: ReadBack) -> None:
        """Nobody wants these bytes any more: the buffer comes back once the driver is done with it."""
        with self._lock:
            self._abandoned.append(reading)

    def _take_back(self, *, closing: bool = False) -> None:
        with self._lock:
            abandoned, self._abandoned = self._abandoned, []
        for each in abandoned:
            if each.answered or closing:
                each.put_back()
            else:
                self.abandon(each)

    def clear(self) -> None:
        """Let every kept buffer go."""
        with self._lock:
            kept, self._free, self.bytes_kept = self._free, {}, 0
        for handles in kept.values():
            for handle in handles:
                self.native.release_buffer(handle)

    def close(self) -> None:
        """Keep no buffer from now on: the device is going."""
        self._most = 0
        self._take_back(closing=True)
        self.clear()


class ReadBack:
    """A read that was submitted: wait for it, then take its bytes once."""

    def __init__(self, staging: Staging, size: int, handle: Handle, nbytes: int) -> None:
        self.staging = staging
        self._native = staging.native
        self._size = size
        self._handle = handle
        self._nbytes = nbytes
        self._answers: Answers = []
        self._settled = False
        self._native.map_read(handle, (nbytes + 3) & ~3, self._answers)

    @property
    def answered(self) -> bool:
        """Whether the driver has mapped the buffer, or has failed to."""
        return bool(self._answers)

    def wait(self) -> Bytes:
        """Block until the bytes are here."""
        try:
            wait_until(lambda: self.answered, self._native)
            with stage("transfer"), shield:
                return self._collect()
        except BaseException:
            self._abandon()
            raise

    async def wait_async(self) -> Bytes:
        """The same, letting other tasks run meanwhile."""
        pause = 0.0
        try:
            while True:
                self._native.poll()
                if self.answered or self._native.lost:
                    with shield:
                        return self._collect()
                await self._native.pause_async(pause)
                pause = min(pause + 20e-6, 1e-3)
        except BaseException:  # cancelled or closed
            self._abandon()
            raise

    def _collect(self) -> Bytes:
        if self._answers[:1] != _SUCCESS:
            if not self._native.alive():
                raise DeviceLostError("the GPU device was lost while a buffer was read back")
            raise BufferError(f"a buffer could not be read back: the driver answered {self._answers}")
        result: Bytes = as_bytes(self._native.copy_mapped(self._handle, (self._nbytes + 3) & ~3))
        self._settled = True
        self.staging.give(self._size, self._handle)
        return result[: self._nbytes]

    def _abandon(self) -> None:
        with shield:
            if not self._settled:
                self._settled = True
                if self.answered:
                    self.put_back()
                else:
                    self.staging.abandon(self)

    def put_back(self) -> None:
        """Let the buffer go, unread."""
        if self._answers[:1] == _SUCCESS and self._native.alive():
            self._native.unmap(self._handle)
            self.staging.give(self._size, self._handle)
        else:
            self._native.release_buffer(self._handle)
