"""One process at a time: a lock on a file, which the system lets go when its holder ends, however it ends."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

_TICK = 0.1  # seconds between two tries
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a file, made where there is none; `waiting` is called once if another holds it."""
    with path.open("a+b") as file:
        is_told = False
        while not _take(file.fileno()):
            if not is_told:
                waiting()
            is_told = True
            time.sleep(_TICK)
        yield  # closing the file lets the lock go


def _take(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True
