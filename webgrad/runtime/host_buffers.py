"""Memory for arrays: aligned for the widest vectors, and large blocks used again.

In: a shape and a dtype. Out: an array of any contents. A large array's memory comes back when nothing refers
to the array any more, and goes to the next one of about its size: a block fresh from the system costs a page
fault for every 4 KiB, which is as much as computing with it. The invariant: memory is never lent twice, never
more than LIMIT bytes wait to be used, and none of them for longer than IDLE plans run.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import mmap
import os
import threading
import time
from collections import deque
from functools import cache
from pickle import PickleBuffer
from queue import Empty, SimpleQueue
from typing import Any

from ..arrays import Array, np
from .addresses import address_of
from .references import Tagged, tagged
from .shield import shield
from .stats import host_memory

__all__ = ["aligned", "clear", "empty", "is_own", "owner", "rewrapped", "tick"]

ALIGNMENT = 64  # bytes; where rows start elsewhere, additions and products take up to twice as long
SMALL = 1 << 15  # bytes up to which NumPy's own memory is as good
LARGE = 1 << 20  # bytes from which memory is used again
LIMIT = 1 << 28  # bytes that wait to be used, at most
IDLE = 256  # plans that run before a block that waits goes back to the system
HUGE = 1 << 22  # bytes from which large pages are asked for, as NumPy does
WASTE = 1.25  # a block is at most so much larger than what is asked for


class _Block:
    """Memory from the system, aligned."""

    __slots__ = ("memory", "nbytes", "since")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.memory = _mapped(nbytes)
        self.since = 0  # when it came back: how many plans had run by then


def _mapped(nbytes: int) -> Array:
    """Pages of their own: out of malloc's heap, what is let go would stay a part of the process."""
    try:
        pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (AttributeError, OSError):  # a system without such pages, or that has no more of them
        return aligned((nbytes,), np.dtype(np.uint8))
    if nbytes >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)


@cache
def _lease_type() -> Any:
    """Made when it is first used: this module is imported where there is no NumPy, too."""

    class Lease(np.ndarray[Any, Any]):
        """The bytes of a block that is in use; the block is free when this is deleted."""

        block: _Block | None = None

    return Lease


_free: deque[_Block] = deque()  # the last one given back at the right end; its methods are single steps
_lent: dict[int, Tagged[Array]] = {}  # the leases, by the number of their block
_ended: SimpleQueue[Tagged[Array]] = SimpleQueue()  # those that were deleted, until somebody looks
_keepers: set[int] = set()  # the processes that have a thread which looks
_plans = itertools.count(1)  # that have run
_now = 0


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of any contents."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < SMALL:
        return np.empty(shape, dtype)
    if nbytes < LARGE:
        return aligned(shape, dtype)
    block = _take(nbytes)
    lease = np.ndarray.__new__(_lease_type(), (nbytes,), np.uint8, block.memory.data)
    lease.block = block
    _lent[id(block)] = tagged(lease, block, _ended.put)
    host_memory.lend(block, block.nbytes)
    if host_memory.live > LIMIT and os.getpid() not in _keepers:
        _keepers.add(os.getpid())
        threading.Thread(target=_keep, name="webgrad-memory", daemon=True).start()
    return _wrapped(lease, shape, dtype)


def _wrapped(memory: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Of an array, or a memoryview of one, NumPy would keep only the array that owns the memory."""
    wrapped: Any = PickleBuffer(memory)  # type: ignore[arg-type]
    return np.ndarray(shape, dtype, wrapped)


def rewrapped(x: Array) -> Array:
    """A contiguous view as an array that is a view of none: a copy, if it is only a part of one.

    Done again and again to what comes of it, this adds no layers.
    """
    whole: Any = x.base
    if not isinstance(whole, np.ndarray):
        return x
    if x.nbytes != whole.nbytes or not x.size:
        return x.copy()
    if whole.shape == x.shape and whole.dtype == x.dtype and whole.flags.c_contiguous:
        return whole
    memory: Any = whole.base
    if isinstance(memory, PickleBuffer):
        wrapped: Any = memory
        return np.ndarray(x.shape, x.dtype, wrapped)
    return _wrapped(x.reshape(-1).view(np.uint8), x.shape, x.dtype)


def is_own(x: Array) -> bool:
    """Whether nobody but those who hold this array can reach its memory, and it may be written to."""
    return x.flags.c_contiguous and x.flags.writeable and not isinstance(x.base, np.ndarray)


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array that starts at a multiple of ALIGNMENT."""
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -address_of(raw) % ALIGNMENT
    return _wrapped(raw[start : start + nbytes], shape, dtype)


def owner(x: Array) -> tuple[Any, int, bool]:
    """What keeps an array's memory, all of its bytes, and whether these are a mapped file's."""
    whole: Any = x
    nbytes = x.nbytes
    below: Any
    while True:
        if isinstance(whole, _lease_type()) and whole.block is not None:
            return whole.block, whole.block.nbytes, False
        if isinstance(whole, np.ndarray):
            nbytes = whole.nbytes
            below = whole.base
        elif isinstance(whole, memoryview | PickleBuffer):
            below = memoryview(whole).obj
        else:
            return whole, nbytes, isinstance(whole, mmap.mmap)
        if below is None:
            return whole, nbytes, False
        whole = below


def tick() -> None:
    """A plan runs: let go of what has waited for long."""
    global _now
    if not _ended.empty():
        _settle()
    _now = next(_plans)
    while _free:
        try:
            block = _free.popleft()
        except IndexError:  # another thread was quicker
            break
        if _now - block.since <= IDLE:
            _free.appendleft(block)
            break
        host_memory.wait(sum(each.nbytes for each in _free.copy()))


def clear() -> None:
    """Give what waits back to the system."""
    _settle()
    _free.clear()
    host_memory.wait(0)


def _settle() -> None:
    """Take back what was deleted."""
    while not _ended.empty():
        with shield:
            try:
                _give_back(_ended.get_nowait().tag)
            except Empty:  # another thread was quicker
                return


def _keep() -> None:
    """Look now and then, while so much is lent that more than LIMIT may come back at once."""
    while host_memory.live > LIMIT:
        time.sleep(1)
    _keepers.discard(os.getpid())


def _take(nbytes: int) -> _Block:
    _settle()
    for block in reversed(_free.copy()):
        if nbytes <= block.nbytes <= nbytes * WASTE:
            try:
                _free.remove(block)
            except ValueError:  # another thread was quicker
                continue
            host_memory.wait(sum(each.nbytes for each in _free.copy()))
            return block
    try:
        return _Block(nbytes)
    except MemoryError:
        clear()
        return _Block(nbytes)


def _give_back(block: _Block) -> None:
    """Called by several threads, without a lock."""
    _lent.pop(id(block), None)
    host_memory.give_back(block)
    block.since = _now
    _free.append(block)
    waiting = sum(each.nbytes for each in _free.copy())
    while waiting > LIMIT:
        try:
            waiting -= _free.popleft().nbytes
        except IndexError:
            break
    host_memory.wait(waiting)


host_memory.settle = _settle
