"""NumPy's own OpenBLAS, called directly: how many threads it uses, and products that are added up.

In: nothing. Out: `single_threaded`, a context in which OpenBLAS works in the thread that calls it. A product
that is small, or shared out in blocks, would otherwise wait for OpenBLAS's own threads, which spin on the
same cores. And `gemm`, a product that NumPy has no name for: it is added to what is there. With any other
BLAS, or where its library is not found, the context does nothing and there is no `gemm`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ..arrays import np
from ..runtime.shield import shield

__all__ = ["Gemm", "Matrix", "gemm", "is_controlled", "single_threaded"]

Matrix = tuple[int, int]  # the address, and how many elements rows are apart
Gemm = Callable[[tuple[int, int, int], Matrix, Matrix, Matrix, float], None]
ROWS, PLAIN = 101, 111  # CblasRowMajor, CblasNoTrans

_lock = threading.Lock()
_inside = 0  # contexts that are open, in all threads: the setting is the process's
_before = 1


@cache
def _library() -> tuple[ctypes.CDLL, str, str] | None:
    """The OpenBLAS that came with NumPy, and what its names begin and end with."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            with shield:  # an OSError of a signal's handler is not the system's
                try:
                    library = ctypes.CDLL(str(path))
                except OSError:
                    continue
            for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
                name = f"{prefix}openblas_{{}}_num_threads{suffix}"
                if hasattr(library, name.format("get")) and hasattr(library, name.format("set")):
                    return library, prefix, suffix
    return None


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What gets and sets the number of threads."""
    found = _library()
    if found is None:
        return None
    library, prefix, suffix = found
    name = f"{prefix}openblas_{{}}_num_threads{suffix}"
    return getattr(library, name.format("get")), getattr(library, name.format("set"))


def is_controlled() -> bool:
    """Whether `single_threaded` does anything."""
    return _functions() is not None


@cache
def gemm(dtype: np.dtype[Any]) -> Gemm | None:
    """C = A @ B + keep * C for matrices at addresses, or None where BLAS is not known or has no such type.

    The arguments are (m, n, k), and of A, B and C the address and how many elements rows are apart: at least
    as many as a row has, else OpenBLAS complains on stderr and computes nothing. All are below 2**31.
    """
    found = _library()
    kind = {"float32": ("s", ctypes.c_float), "float64": ("d", ctypes.c_double)}.get(dtype.name)
    if found is None or kind is None:
        return None
    library, prefix, suffix = found
    letter, number = kind
    function = getattr(library, f"{prefix}cblas_{letter}gemm{suffix}", None)
    if function is None:
        return None
    size = ctypes.c_int64 if suffix else ctypes.c_int
    matrix = [ctypes.c_void_p, size]
    function.argtypes = [*[ctypes.c_int] * 3, *[size] * 3, number, *matrix, *matrix, number, *matrix]
    function.restype = None

    def multiply(sizes: tuple[int, int, int], a: Matrix, b: Matrix, c: Matrix, keep: float) -> None:
        function(ROWS, PLAIN, PLAIN, *sizes, 1.0, *a, *b, keep, *c)

    return multiply


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
