"""Making values ahead of use: a thread runs an iterator, a few values before the one who takes them.

In: an iterator. Out: its values, in order; an error of its comes out where the value would have. The
invariant: the thread ends when the loop is left, however that happens, and at most `limit` values wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["ahead"]

Value = TypeVar("Value")
_END = object()


class _Shelf:
    """Where the thread puts values, and the loop takes them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: deque[Any] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, value: Any) -> bool:
        """Wait for room; False where nobody wants more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._values) < self._limit)
            if not self._closed:
                self._values.append(value)
                self._changed.notify_all()
            return not self._closed

    def take(self) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: self._values)
            value = self._values.popleft()
            self._changed.notify_all()
            return value

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._values.clear()
            self._changed.notify_all()


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _work(shelf: _Shelf, values: Iterator[Any]) -> None:
    try:
        for value in values:
            if not shelf.put(value):
                return
            del value  # not held while the next one is made
        shelf.put(_END)
    except BaseException as error:
        shelf.put(_Raised(error))


def ahead(make: Callable[[], Iterator[Value]], limit: int) -> Iterator[Value]:
    """The values of an iterator, made on a thread; with a limit of 0, or without threads, when asked for."""
    if limit == 0:
        yield from make()
        return
    shelf, values = _Shelf(limit), make()
    # Not waited for when the interpreter ends: what it makes is not wanted then.
    thread = threading.Thread(target=_work, args=(shelf, values), name="webgrad-data", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # there are no threads, as in a browser
        yield from values
        return
    try:
        while (value := shelf.take()) is not _END:
            if isinstance(value, _Raised):
                raise value.error
            yield value
            del value
    finally:  # at the end, at an error, and when the loop is left and this generator with it
        shelf.close()
        if (
            thread is not threading.current_thread()
        ):  # where the collector drops a loop, that may be any thread
            thread.join()
