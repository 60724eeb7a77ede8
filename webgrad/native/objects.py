"""Object files kept on disk, so that a module is compiled once on a machine, not once a process.

In: a key and the bytes of an object file. Out: the same bytes, in this process or another. Files are written
aside and moved into place; one that is damaged, or another key's, is a miss, and goes. Over their limit the
files that were unused longest go. The invariants: code is only taken from files of our own that nobody else
can write to, and no disk that is full, read-only or missing is ever an error.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..config import cache_path, settings
from ..runtime.shield import shield

__all__ = ["FORMAT", "Objects", "key_of", "objects_folder"]

FORMAT = 1  # of the files, and of what decides on the code beside a module's text
_MAGIC = f"webgrad object {FORMAT}\n".encode()
_HEAD = len(_MAGIC) + 32  # then a checksum of the key and of what follows
SUFFIX = ".o"
SHARE = 16  # the folder is looked through when this part of its limit was written,
SELDOM = 4  # and for keys that begin below this, of 256: many processes may each write little
FULL = 3 / 4  # of the limit is left then
ABANDONED = 3600.0  # seconds after which a file that was never moved into place goes
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def key_of(*parts: str) -> str:
    """A key of all that decides on the code."""
    text = "\0".join((str(FORMAT), *parts))
    return hashlib.sha256(text.encode()).hexdigest()


def objects_folder() -> Path | None:
    """Where object files are kept: in the folder that WEBGRAD_CACHE names, or the system's own."""
    cache = settings().cache or cache_path()
    return None if cache is None else cache / "native"


class Objects:
    """Object files by key, of at most about `limit` bytes; None, or 0, keeps nothing."""

    def __init__(self, folder: Path | None, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._written = 0  # bytes since the folder was looked through
        self._is_off = folder is None or limit <= 0
        self._takes_more = not self._is_off

    def find(self, key: str) -> bytes | None:
        """The bytes that were kept for a key."""
        if self._is_off:
            return None
        with shield:  # an OSError of a signal's handler is not the system's
            try:
                path = self._path(key)
                handle = os.open(path, _OPEN)
                with os.fdopen(handle, "rb") as file:
                    if not _is_ours(os.fstat(handle)) or not _is_ours(path.parent.stat()):
                        return None
                    found = file.read()
            except OSError:
                return None
            image = found[_HEAD:]
            if found[:_HEAD] != _head(key, image):
                self.drop(key)
                return None
            with suppress(OSError):
                os.utime(path)  # by which the oldest are found
            return image

    def keep(self, key: str, image: bytes) -> None:
        """Keep bytes, if there is room at all."""
        size = _HEAD + len(image)
        if not self._takes_more or size > self.limit:
            return
        with shield:
            try:
                self._write(self._path(key), _head(key, image) + image)
            except OSError as error:
                # Windows refuses to replace what another process reads just now.
                self._takes_more = os.name == "nt" and isinstance(error, PermissionError)
                return
            self._written += size
            if self._written > self.limit // SHARE or int(key[:2], 16) < SELDOM:
                self._written = 0
                self.trim()

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(path.parent.stat()):
            raise PermissionError
        aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            with os.fdopen(os.open(aside, _CREATE, 0o600), "wb") as file:
                file.write(content)
            aside.replace(path)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def drop(self, key: str) -> None:
        """Remove a file that is not what it should be."""
        if self.folder is not None:
            with suppress(OSError):
                self._path(key).unlink()

    def trim(self) -> None:
        """Remove the files that were unused longest where there is too much."""
        files = sorted(self._files(), key=lambda each: each[1].st_mtime_ns)
        total = sum(about.st_size for _, about in files)
        if total > self.limit:
            for path, about in files:
                if total <= self.limit * FULL:
                    break
                with suppress(OSError):  # another process was here first
                    path.unlink()
                total -= about.st_size

    def usage(self) -> tuple[int, int]:
        """How many files there are, and how many bytes."""
        sizes = [about.st_size for _, about in self._files()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove every file; gives how many went."""
        gone = 0
        for path, _ in list(self._files()):
            path.unlink(missing_ok=True)
            gone += 1
        return gone

    def _path(self, key: str) -> Path:
        return (self.folder or Path()) / f"{key}{SUFFIX}"

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """The files that are there; what a process left that was killed goes."""
        if self.folder is None:
            return
        with suppress(OSError), os.scandir(self.folder) as entries:
            for each in entries:
                with suppress(OSError):
                    about = each.stat(follow_symlinks=False)
                    if each.name.startswith(".") and about.st_mtime < time.time() - ABANDONED:
                        Path(each.path).unlink()
                    elif each.name.endswith(SUFFIX) and stat.S_ISREG(about.st_mode):
                        yield Path(each.path), about


def _head(key: str, image: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(key.encode() + image).digest()


def _is_ours(about: os.stat_result) -> bool:
    """Whether a file or folder is this user's, and nobody else may write to it. Windows does not tell by
    mode; there the folder for caches is each user's own.
    """
    return not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & _OTHERS)
