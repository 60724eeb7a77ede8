"""Modules compiled beside the program: a thread takes one after the other while others compute.

In: what `compiler.functions` takes. Out: a `Request`, which can be asked without waiting. The invariants: an
error is raised where the addresses are asked for; a forked child has a thread of its own; and the end of the
program waits for the module at hand, never for the queue.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from .compiler import functions, load, lock

__all__ = ["Request"]

GIVE_WAY = 1e-4  # seconds between two modules, in which a thread that waits for LLVM gets it


class Request:
    """A module that is wanted: compiled in the background from when it is first asked whether it is ready."""

    __slots__ = ("_error", "_found", "_given", "_worker")

    def __init__(self, text: str, names: Sequence[str], label: str = "") -> None:
        self._given = text, tuple(names), label
        self._found: dict[str, int] | None = None
        self._error: BaseException | None = None
        self._worker: _Worker | None = None

    def ready(self) -> bool:
        """Whether `addresses` would not wait."""
        if self._found is None and self._error is None and self._worker is not _workers[0]:
            self._worker = _workers[0]  # the first time, or in a child of the process that asked first
            self._worker.add(self)
        return self._found is not None or self._error is not None

    def addresses(self) -> dict[str, int]:
        """Those of the functions, or the error; what is not there yet is compiled here and now."""
        self.finish(functions)
        if self._error is not None:
            raise self._error
        return self._found or {}

    def finish(self, compile_with: Callable[..., dict[str, int]] = load) -> None:
        """Compile, unless that was done. Two threads that do so at once get the same."""
        if self._found is None and self._error is None:
            try:
                self._found = compile_with(*self._given)
            except Exception as error:
                self._error = error


class _Worker:
    """The thread of a process, and what waits for it."""

    def __init__(self) -> None:
        self.waiting: deque[Request] = deque()
        self.changed = threading.Condition()
        self.thread: threading.Thread | None = None

    def add(self, request: Request) -> None:
        with self.changed:
            self.waiting.append(request)
            self.changed.notify()
            if self.thread is None:
                try:
                    thread = threading.Thread(target=self._work, name="webgrad-compiler", daemon=True)
                    thread.start()
                    self.thread = thread
                except RuntimeError:  # the interpreter is closing and starts no more threads
                    self.waiting.clear()
                    request.finish()

    def _work(self) -> None:
        while True:
            with self.changed:
                while not self.waiting:
                    self.changed.wait()
                request = self.waiting.popleft()
            request.finish()
            del request
            time.sleep(GIVE_WAY)


_workers = [_Worker()]


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    _workers[0] = _Worker()


def _end() -> None:
    """LLVM must not be at work when the process takes it apart."""
    _workers[0].waiting.clear()
    lock.acquire(timeout=10)  # for good: nothing is begun any more


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
