"""How many threads BLAS uses: one, while our own threads are calling it.

In: nothing. Out: `single_threaded`, a context in which NumPy's OpenBLAS works in the thread that calls it. A
product that is small, or shared out in blocks, would otherwise wait for OpenBLAS's own threads, which spin on
the same cores. With any other BLAS, or where its library is not found, the context does nothing.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

__all__ = ["is_controlled", "single_threaded"]

_lock = threading.Lock()
_inside = 0  # contexts that are open, in all threads: the setting is the process's
_before = 1


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What gets and sets the number of threads, of the library that came with NumPy."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
                name = f"{prefix}openblas_{{}}_num_threads{suffix}"
                if hasattr(library, name.format("get")) and hasattr(library, name.format("set")):
                    return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


def is_controlled() -> bool:
    """Whether `single_threaded` does anything."""
    return _functions() is not None


@contextmanager
def single_threaded() -> Iterator[None]:
    """BLAS in the calling thread alone, until the last of these contexts ends."""
    global _inside, _before
    functions = _functions()
    if functions is None:
        yield
        return
    get, set_to = functions
    with _lock:
        if not _inside:
            _before = get()
            set_to(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                set_to(_before)
