"""Where a process's main thread is: in the Python interpreter, in native code, or waiting. Linux only.

In: the id of a child process. Out: shares of samples. Every few milliseconds the thread is stopped for an
instant (ptrace) and the file that its instruction pointer lies in is looked up: Python's own executable or
library is *python*; a system call is *waiting* (for worker threads, the GPU's driver, the disk); everything
else (NumPy, BLAS, wgpu, the driver, compiled kernels, the C library) is *native*.
"""

from __future__ import annotations

import bisect
import ctypes
import os
import platform
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

__all__ = ["sample"]

_SEIZE, _INTERRUPT, _CONTINUE, _DETACH, _GET_REGISTERS = 0x4206, 0x4207, 7, 17, 0x4204
_GENERAL = 1  # NT_PRSTATUS
_ALL = 0x40000000  # __WALL
# machine → the place of the instruction pointer among the registers, the bytes of a system call
_MACHINES = {"x86_64": (16, b"\x0f\x05"), "aarch64": (32, b"\x01\x00\x00\xd4")}
_PAUSE = 0.003  # seconds between samples, on average


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def sample(process: int, is_over: Callable[[], bool]) -> dict[str, float]:
    """Shares of python, native and waiting of a child's main thread, from now until it is over."""
    place, call = _MACHINES[platform.machine()]
    random_pauses = random.Random(0)
    found: Counter[str] = Counter()
    _ptrace(_SEIZE, process)
    memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
    starts, names = _files(process)
    while not is_over():
        time.sleep(random_pauses.uniform(0, 2 * _PAUSE))  # not in step with what it watches
        _ptrace(_INTERRUPT, process)
        os.waitpid(process, _ALL)
        pointer = _registers(process)[place]
        before = os.pread(memory, len(call), pointer - len(call))
        at = bisect.bisect_right(starts, pointer) - 1
        found["waiting" if before == call else _kind(names[at])] += 1
        _ptrace(_CONTINUE, process)
    os.close(memory)
    _ptrace(_INTERRUPT, process)
    os.waitpid(process, _ALL)
    _ptrace(_DETACH, process)
    total = sum(found.values())
    return {kind: found[kind] / total for kind in ("python", "native", "waiting")} | {"samples": total}


def _kind(name: str) -> str:
    base = Path(name).name
    return "python" if base.startswith(("python", "libpython")) else "native"


def _files(process: int) -> tuple[list[int], list[str]]:
    """Where what is mapped begins, and the file it comes from."""
    rows = [line.split(maxsplit=5) for line in Path(f"/proc/{process}/maps").read_text().splitlines()]
    starts = [int(row[0].partition("-")[0], 16) for row in rows]
    return starts, [row[5] if len(row) > 5 else "" for row in rows]


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


def _ptrace(request: int, process: int, address: int = 0, data: object = None) -> None:
    if _libc.ptrace(request, process, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _registers(process: int) -> list[int]:
    values = (ctypes.c_uint64 * 64)()
    vector = _Vector(ctypes.addressof(values), ctypes.sizeof(values))
    _ptrace(_GET_REGISTERS, process, _GENERAL, ctypes.addressof(vector))
    return list(values)
