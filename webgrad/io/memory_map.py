"""A file's bytes as a read-only array that the system reads in when they are looked at.

In: a path. Out: an array of bytes over the mapped file, which lives as long as a view of it does. Only plain
files are mapped: a pipe or a device would make the reader wait.
"""

from __future__ import annotations

import math
import mmap
import os
import stat
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..runtime.shield import shield

__all__ = ["Array", "check_is_file", "head_of", "is_possible", "map_file", "shown", "view_of"]

_MAX_DIMENSIONS = 32  # what every NumPy has
_ELEMENTS = 1 << 48


def map_file(path: Path) -> Array:
    """All bytes of a file, none of them read yet."""
    check_is_file(path)
    with shield:  # what a signal's handler raises is not the system's error; so below
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if not size:  # which no system maps
                    return _locked(np.empty(0, np.uint8))
                return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), np.uint8)
        except (OSError, ValueError, OverflowError) as error:
            raise wg.ModelFileError(f"{path} cannot be read: {_reason(error)}") from None


def check_is_file(path: Path) -> None:
    """Raise where there is no plain file."""
    with shield:
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise wg.ModelFileError(f"{path} cannot be read: there is no such file") from None
        except (OSError, ValueError) as error:
            raise wg.ModelFileError(f"{path} cannot be read: {_reason(error)}") from None
    if not stat.S_ISREG(mode):
        what = "it is a folder" if stat.S_ISDIR(mode) else "it is not a plain file"
        raise wg.ModelFileError(f"{path} cannot be read: {what}")


def head_of(path: Path, count: int) -> bytes:
    """The first bytes of a file."""
    check_is_file(path)
    with shield:
        try:
            with path.open("rb") as file:
                return file.read(count)
        except OSError as error:
            raise wg.ModelFileError(f"{path} cannot be read: {_reason(error)}") from None


def shown(text: str, most: int = 80) -> str:
    """A name out of a file, fit for a message: one line of so many characters, with nothing to obey."""
    if text.isprintable() and len(text) <= most:
        return text
    return repr(text[:most]) + ("…" if len(text) > most else "")


def is_possible(shape: tuple[int, ...]) -> bool:
    """Whether NumPy can have this shape: where one size is nothing, the others count too."""
    return len(shape) <= _MAX_DIMENSIONS and math.prod(max(size, 1) for size in shape) <= _ELEMENTS


def view_of(data: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Bytes as numbers: a view where they lie aligned, else a copy; read-only both."""
    aligned = data.ctypes.data % dtype.itemsize == 0
    return _locked((data if aligned else data.copy()).view(dtype).reshape(shape))


def _locked(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
