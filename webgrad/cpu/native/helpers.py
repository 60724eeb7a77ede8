"""Threads that help native code: they watch a slot, without the interpreter, while work keeps coming.

In: how much work there is. Out: the address of the slot to share it through, or 0. One thread at a time has
the slot; others compute alone meanwhile. Helpers are woken by the pool of `threads.py` and go by themselves.
The invariant: a slot outlives its helpers, and no process uses its parent's.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from types import TracebackType

import numpy as np

from ..memory import aligned
from ..threads import background, cores
from .compiler import compiled
from .jobs import SLOT_BYTES, YIELD, watch_module

__all__ = ["Helpers"]

WAKING = 1 << 19  # multiplications from which it pays to wake helpers
PATIENCE = 1e-3  # seconds without work after which a helper goes
_TRIED = 1 << 10  # pauses that are measured


class _Slot:
    """The place where this process's threads find work to help with."""

    def __init__(self) -> None:
        self.memory = aligned((SLOT_BYTES,), np.dtype(np.uint8))
        self.memory[:] = 0
        self.memory[YIELD : YIELD + 8].view(np.uint64)[0] = _system_yield()
        self.address = self.memory.ctypes.data
        self.lock = threading.Lock()  # held by the thread whose work is in it
        self.helpers = cores() - 1
        self.watching: list[None] = []  # an entry for each helper
        self.spins = self._measured() if self.helpers else 0

    def wake(self) -> None:
        while len(self.watching) < self.helpers:
            self.watching.append(None)
            if not background(self._watch):
                self.watching.pop()
                return

    def _watch(self) -> None:
        try:
            self._watch_for(self.spins)
        finally:
            self.watching.pop()

    def _watch_for(self, spins: int) -> None:
        arguments = (ctypes.c_int64 * 2)(self.address, spins)
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


def _system_yield() -> int:
    """The address of the C library's function that lets other threads run, 0 where there is none."""
    if sys.platform == "win32":
        return 0
    return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0


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
        if slot.helpers < 1 or not slot.lock.acquire(False):  # another thread's work is in it
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
