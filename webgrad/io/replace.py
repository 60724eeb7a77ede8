"""Writing a file whole or not at all: beside it, to the disk, then in its place by one rename.

In: a path. Out: a temporary path in the same folder to write to. The invariant: under the path there is
always the old contents or the new, whatever happens meanwhile.

An OSError of a signal's handler, such as TimeoutError, is not the system's, and os.path's questions answer
every OSError with no. Therefore all of these stand under the shield.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import webgrad as wg

from ..runtime.shield import shield

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to the path that this gives, and when the block ends well, it takes the place of `path`.

    >>> import tempfile
    >>> with wg.io.replacing(tempfile.gettempdir() + "/webgrad-note.txt") as path:
    ...     _ = path.write_text("all of it, or nothing")
    """
    if "\0" in str(path):
        raise wg.ModelFileError(f"{str(path)!r} cannot be written: there is a NUL in the name")
    with shield:
        target = Path(os.path.realpath(path))  # where a link leads, so that it stays a link
        is_folder = os.path.isdir(target)  # noqa: PTH112  (the method raises where a name is too long)
    if not target.parent.is_dir():
        raise wg.ModelFileError(
            f"{target} cannot be written: there is no folder {target.parent}; make it first"
        )
    if is_folder:
        raise wg.ModelFileError(f"{target} cannot be written: it is a folder")
    # Named before it is made: Ctrl-C between the two would leave it behind.
    temporary = target.parent / f".{target.name}.{secrets.token_urlsafe(6)}.partial"
    try:
        _create(temporary, target)
        yield temporary
        _put_in_place(temporary, target)
    finally:
        with shield, suppress(OSError):  # in its place by now, or never made
            temporary.unlink()


def _create(temporary: Path, target: Path) -> None:
    """An empty file, which nobody else may read if the target is not theirs to read."""
    with shield:
        try:
            # The mask of a new file is the process's; asking for that alone would set it for a moment.
            mode = 0o600 if target.exists() else 0o666
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
        except OSError as error:
            raise wg.ModelFileError(f"{target} cannot be written: {error.strerror or error}") from None


def _put_in_place(temporary: Path, target: Path) -> None:
    with shield:
        try:
            _to_disk(temporary)
            with suppress(FileNotFoundError):
                temporary.chmod(target.stat().st_mode & 0o777)
            temporary.replace(target)
            _to_disk(target.parent)
        except OSError as error:  # a full disk may be noticed only now
            raise wg.ModelFileError(f"{target} cannot be written: {error.strerror or error}") from None


def _to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
