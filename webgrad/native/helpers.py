"""Threads that help native code: they watch a slot, without the interpreter, while work keeps coming.

In: how much work there is. Out: the address of the slot to share it through, or 0. One thread at a time has
the slot; others compute alone meanwhile. Helpers are woken by the pool of `threads.py` and go by themselves,
but not soon: to come and to go they need the interpreter, which the others then wait for. Beside busy
neighbours they rest (`jobs.py`). The invariant: a slot outlives its helpers, and no process uses its
parent's.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

from ..arrays import np
from ..runtime.host_buffers import aligned
from ..runtime.threads import background, cores
from .compiler import compiled
from .jobs import REST, SLOT_BYTES, SYSTEM, watch_module

__all__ = ["Helpers"]

WAKING = 1 << 19  # multiplications from which it pays to wake helpers
PATIENCE = 1e-3  # seconds without work after which a helper sleeps
NAPS = 1000  # short ones, before it goes
PARTS = 8  # pieces of work for each core: few, since long runs of memory are read sooner
_TRIED = 1 << 10  # pauses that are measured


class _Slot:
    """The place where this process's threads find work to help with."""

    def __init__(self) -> None:
        self.memory = aligned((SLOT_BYTES,), np.dtype(np.uint8))
        self.memory[:] = 0
        self.address = self.memory.ctypes.data
        self.lock = threading.Lock()  # held by the thread whose work is in it
        self.helpers = cores() - 1
        system = (*_system_functions(), *_clock(), PARTS * cores())
        self.memory[SYSTEM : SYSTEM + 8 * len(system)].view(np.uint64)[:] = system
        self.words = memoryview(self.memory.data).cast("q")
        self.watching: list[None] = []  # an entry for each helper
        self.spins = self._measured() if self.helpers else 0

    def is_resting(self) -> bool:
        """Whether helpers came too late not long ago."""
        until = self.words[REST // 8]
        return until > 0 and time.clock_gettime_ns(time.CLOCK_MONOTONIC) < until

    def wake(self) -> None:
        while len(self.watching) < self.helpers:
            self.watching.append(None)
            if not background(self._watch):
                self.watching.pop()
                return

    def _watch(self) -> None:
        try:
            self._watch_for(self.spins, NAPS)
        finally:
            self.watching.pop()

    def _watch_for(self, spins: int, naps: int = 0) -> None:
        arguments = (ctypes.c_int64 * 3)(self.address, spins, naps)
        compiled(watch_module)[1](ctypes.addressof(arguments))

    def _measured(self) -> int:
        """How many pauses make up PATIENCE: a pause takes from 1 to 60 ns, by processor."""
        self._watch_for(1)  # compiled before the clock starts
        times = []
        for _ in range(3):
            start = time.perf_counter()
            self._watch_for(_TRIED)
            times.append(time.perf_counter() - start)
        return int(_TRIED * PATIENCE / max(min(times), 1e-7))


def _system_functions() -> tuple[int, int, int]:
    """The addresses of what lets other threads run (0 where there is none) and of what sleeps, and for how
    long: 100 microseconds, or what Windows calls a millisecond.
    """
    if sys.platform == "win32":
        return 0, _address(ctypes.WinDLL("kernel32").Sleep), 1
    library = ctypes.CDLL(None)
    return _address(library.sched_yield), _address(library.usleep), 100


def _clock() -> tuple[int, int]:
    """The address of a function that tells the time, and which clock's; 0 where it has another form."""
    if sys.platform == "win32" or ctypes.sizeof(ctypes.c_long) < 8:
        return 0, 0
    return _address(ctypes.CDLL(None).clock_gettime), time.CLOCK_MONOTONIC


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_slots: list[_Slot] = []  # one, or none yet


def _forget() -> None:
    """A forked child has none of its parent's threads: whoever was in the slot would never leave it."""
    _slots.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Helpers:
    """While it is entered, work of so many multiplications may be shared through the slot it gives."""

    __slots__ = ("_cost", "_slot")

    def __init__(self, cost: int) -> None:
        self._cost = cost
        self._slot: _Slot | None = None

    def __enter__(self) -> int:
        if not _slots:
            _slots.append(_Slot())
        slot = _slots[0]
        if slot.helpers < 1 or slot.is_resting():
            return 0
        if not slot.lock.acquire(False):  # another thread's work is in it
            return 0
        self._slot = slot
        if self._cost >= WAKING and len(slot.watching) < slot.helpers:
            slot.wake()
        return slot.address

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._slot is not None:
            self._slot.lock.release()
