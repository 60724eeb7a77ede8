"""Writing a file whole or not at all: beside it, to the disk, then in its place by one rename.

In: a path. Out: a temporary path in the same folder to write to. The invariant: under the path there is
always the old contents or the new, whatever happens meanwhile.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import webgrad as wg

__all__ = ["replacing"]

_MASK = threading.Lock()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to the path that this gives, and when the block ends well, it takes the place of `path`.

    >>> import tempfile
    >>> with wg.io.replacing(tempfile.gettempdir() + "/webgrad-note.txt") as path:
    ...     _ = path.write_text("all of it, or nothing")
    """
    if "\0" in str(path):
        raise wg.ModelFileError(f"{str(path)!r} cannot be written: there is a NUL in the name")
    target = Path(os.path.realpath(path))  # where a link leads, so that it stays a link
    if not target.parent.is_dir():
        raise wg.ModelFileError(
            f"{target} cannot be written: there is no folder {target.parent}; make it first"
        )
    if os.path.isdir(target):  # noqa: PTH112  (the method raises where a name is too long)
        raise wg.ModelFileError(f"{target} cannot be written: it is a folder")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    except OSError as error:
        raise wg.ModelFileError(f"{target} cannot be written: {error.strerror or error}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _put_in_place(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _put_in_place(temporary: Path, target: Path) -> None:
    try:
        _to_disk(temporary)
        temporary.chmod(_mode(target))
        temporary.replace(target)
        _to_disk(target.parent)
    except OSError as error:  # a full disk may be noticed only now
        raise wg.ModelFileError(f"{target} cannot be written: {error.strerror or error}") from None


def _mode(target: Path) -> int:
    """The file's own permissions; those of a new file where there is none."""
    with suppress(FileNotFoundError):
        return target.stat().st_mode & 0o777
    with _MASK:  # which is read by setting it: another thread that did so between would keep the 0
        mask = os.umask(0)
        os.umask(mask)
    return 0o666 & ~mask


def _to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
