"""Workers: threads that make batches ahead of the loop that takes them.

In: tasks (the numbers of a batch) and how to do them. Out: batches by the tasks' numbers, and errors with
their traceback. The invariant: all threads end when the pool is closed, at the latest after the batch that
each is at; a loop that waits for one that does not answer ends by its timeout.

Threads and not processes: a forked child can neither use a GPU nor count on locks that another thread held,
and a spawned one would import the program again. What programs rely on is there: each worker has a shallow
copy of the dataset, `get_worker_info()`, and random numbers of its own.
"""

from __future__ import annotations

import atexit
import copy
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....random import Generator, own_stream
from .fetch import Exhausted, Fetch

__all__ = ["END", "Pool", "WorkerInfo", "get_worker_info"]

END: Any = object()  # a task's result where the dataset has no more samples
_CLOSING = 5.0  # seconds that a pool waits for its threads when it is closed
_here = threading.local()


@dataclass(slots=True)
class WorkerInfo:
    """Which worker this is, of how many, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


def get_worker_info() -> WorkerInfo | None:
    """What a worker knows of itself; None in the loop's own thread.

    >>> import webgrad.torch as torch
    >>> torch.utils.data.get_worker_info() is None
    True
    """
    return getattr(_here, "info", None)


class Pool:
    """Some worker threads, their tasks and their results."""

    def __init__(
        self,
        dataset: Any,
        count: int,
        seed: int,
        make: Callable[[Any], Fetch],
        init: Callable[[int], Any] | None,
    ) -> None:
        self._make, self._init = make, init
        self._tasks: list[deque[tuple[int, int, Any]]] = [deque() for _ in range(count)]
        self._results: dict[int, Any] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._epoch = 0
        infos = [WorkerInfo(at, count, seed + at, _copied(dataset)) for at in range(count)]
        self._threads = [
            threading.Thread(target=self._work, args=(each,), name=f"webgrad-worker-{each.id}", daemon=True)
            for each in infos
        ]
        _open.add(self)
        for each in self._threads:
            each.start()

    def begin(self) -> None:
        """A new epoch: what was asked for before is not wanted, and iterators begin anew."""
        with self._changed:
            self._epoch += 1
            for each in self._tasks:
                each.clear()
            self._results.clear()

    def ask(self, worker: int, number: int, indices: Any) -> None:
        """Give a worker a task."""
        with self._changed:
            self._tasks[worker].append((self._epoch, number, indices))
            self._changed.notify_all()

    def result(self, number: int, timeout: float) -> Any:
        """Wait for a task's result; 0 waits for as long as it takes."""
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._results, timeout or None):
                raise RuntimeError(f"DataLoader timed out after {timeout:g} seconds")
            found = self._results.pop(number)
        if isinstance(found, _Raised):
            raise found.error
        return found

    def close(self) -> None:
        """End the threads, and wait a little for them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        last = time.monotonic() + _CLOSING
        for each in self._threads:
            if each is not threading.current_thread():  # the collector may drop a loop in any thread
                each.join(max(0.0, last - time.monotonic()))
        self._results.clear()

    def _work(self, info: WorkerInfo) -> None:
        _here.info = info
        with own_stream(Generator().manual_seed(info.seed)):
            failed = self._prepared(info)
            fetch, begun = None, -1
            while (task := self._next(info.id)) is not None:
                epoch, number, indices = task
                try:
                    if failed is not None:
                        raise failed
                    if fetch is None or epoch != begun:
                        fetch, begun = self._make(info.dataset), epoch
                    value = fetch(indices)
                except Exhausted:
                    value = END
                except BaseException as error:  # raised again in the loop
                    error.add_note(f"(in worker {info.id} of a DataLoader)")
                    value = _Raised(error)
                self._give(epoch, number, value)
                del task, indices, value  # not held while the next is waited for

    def _prepared(self, info: WorkerInfo) -> BaseException | None:
        try:
            if self._init is not None:
                self._init(info.id)
        except BaseException as error:
            return error
        return None

    def _next(self, worker: int) -> tuple[int, int, Any] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._tasks[worker])
            return None if self._closed else self._tasks[worker].popleft()

    def _give(self, epoch: int, number: int, value: Any) -> None:
        with self._changed:
            if epoch == self._epoch and not self._closed:
                self._results[number] = value
                self._changed.notify_all()


def _copied(dataset: Any) -> Any:
    """A shallow copy, so that what a worker sets on its dataset is its own."""
    try:
        return copy.copy(dataset)
    except Exception:  # of a type that cannot be copied: the workers share it
        return dataset


_open: weakref.WeakSet[Pool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for each in list(_open):
        each.close()
