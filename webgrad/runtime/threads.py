"""Work over the host's cores: pools of threads for the process, and memory that each thread uses again.

In: a list of items and a function that takes an iterator of them. Every thread, the caller's among them,
calls it with the same iterator, so they empty it together. The invariant: when `share` returns, no thread is
still at work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ..arrays import Array, np
from .host_buffers import aligned

__all__ = ["Scratch", "background", "cores", "each_of", "pool", "share"]

Item = TypeVar("Item")
# By process, since a forked child has none of its parent's threads, and by name. They stay for the process's
# life: in the callback with which Python's executors go, the exception of a signal handler would be lost.
_pools: dict[tuple[int, str], ThreadPoolExecutor] = {}


def cores() -> int:
    """How many threads can run at once in this process."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def pool(name: str, workers: int) -> ThreadPoolExecutor:
    """The process's threads of a name, `workers` of them at most."""
    key = os.getpid(), name
    found = _pools.get(key)
    if found is None:  # threads start at the first task, so one made too many costs nothing
        found = _pools.setdefault(key, ThreadPoolExecutor(workers, f"webgrad-{name}"))
    return found


def _pool() -> ThreadPoolExecutor:
    return pool("cpu", cores())


def share(work: Callable[[Iterator[Item]], None], items: Sequence[Item]) -> None:
    """Call `work` in several threads with one iterator over `items`."""
    left = iter(items)  # of a list: taking the next item is one step of the interpreter
    helpers: list[Future[None]] = []
    try:
        if len(items) > 1:
            helpers = _start(work, left, min(cores(), len(items)) - 1)
        work(left)
    except BaseException:
        for _ in left:  # nobody needs the rest any more
            pass
        raise
    finally:
        for each in helpers:
            if not each.cancel():
                each.result()


def background(work: Callable[[], None]) -> bool:
    """Let a thread of the pool do something beside; False where no thread can be had."""
    try:
        _pool().submit(work)
    except RuntimeError:  # the interpreter is closing
        return False
    return True


def each_of(function: Callable[[Item], Any], items: Sequence[Item]) -> list[Any]:
    """What a function gives for each item, computed in several threads."""
    if len(items) == 1:
        with np.errstate(all="ignore"):
            return [function(items[0])]
    found: list[Any] = [None] * len(items)

    def work(left: Iterator[int]) -> None:
        with np.errstate(all="ignore"):
            for at in left:
                found[at] = function(items[at])

    share(work, range(len(items)))
    return found


def _start(work: Callable[[Iterator[Item]], None], left: Iterator[Item], count: int) -> list[Future[None]]:
    try:
        return [_pool().submit(work, left) for _ in range(count)]
    except RuntimeError:  # the interpreter is closing and starts no more threads: the caller does all of it
        return []


class Scratch(threading.local):
    """Memory of a thread by number, kept from one use to the next."""

    def __init__(self) -> None:
        self._buffers: list[Array] = []

    def array(self, number: int, shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> Array:
        """An array of any contents on buffer `number`, which has at least `nbytes`."""
        buffers = self._buffers
        while len(buffers) <= number:
            buffers.append(np.empty(0, np.uint8))
        if buffers[number].nbytes < nbytes:
            buffers[number] = aligned((nbytes,), np.dtype(np.uint8))
        return np.ndarray(shape, dtype, buffers[number].data)
