"""Zip files from anywhere: what is in one is listed and read within limits.

In: a mapped file. Out: an archive whose list of files has at most so many bytes, and the bytes of its
members: unpacked up to a count, or as a view of the file where they are not compressed.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from pathlib import Path

import webgrad as wg

from ..arrays import Array

__all__ = ["open_zip", "stored", "unpacked"]

_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
    *(OverflowError, struct.error, UnicodeError),
)
_LOCAL = struct.Struct(
    "<4s22xHH"
)  # before a member's bytes: a magic, …, the lengths of its name and its extras


class _Bounded(io.RawIOBase):
    """A mapped file with a place of its own in each process, and little read at once until `is_open`.

    `ZipFile` reads the list of files whole, however long it is said to be; and by a descriptor, processes
    that were forked would move one another's place.
    """

    is_open = False

    def __init__(self, data: Array, most: int) -> None:
        self._data, self._at, self._most = data, 0, most

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._data)}[whence]
        if start + offset < 0:
            raise zipfile.BadZipFile("it has a place before its beginning")
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(len(self._data) - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted > self._most and not self.is_open:
            raise zipfile.BadZipFile(f"a part of it is longer than {self._most:,} bytes")
        self._at += wanted
        return self._data[self._at - wanted : self._at].tobytes()


def open_zip(path: Path | str, data: Array, directory: int, kind: str) -> zipfile.ZipFile:
    """The archive in a mapped file, whose list of files may have so many bytes."""
    file = _Bounded(data, directory)
    try:
        archive = zipfile.ZipFile(file)
    except _ERRORS as error:
        raise wg.ModelFileError(f"{path} is damaged, or no {kind} file: {error}") from None
    file.is_open = True
    return archive


def unpacked(path: Path | str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, count: int) -> bytes:
    """The first bytes of a member; its check sum is looked at where this is all of them."""
    try:
        with archive.open(member) as stream:
            return stream.read(min(count, member.file_size))
    except _ERRORS as error:
        raise wg.ModelFileError(f"{path}: {member.filename!r} is damaged: {error}") from None


def stored(path: Path | str, data: Array, member: zipfile.ZipInfo) -> Array:
    """A member that is not compressed, as a view of the file; its check sum is not looked at."""
    name = f"{path}: {member.filename!r}"
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise wg.ModelFileError(f"{name} is compressed or encrypted, which torch.save does not do")
    head = data[member.header_offset : member.header_offset + _LOCAL.size].tobytes()
    if len(head) < _LOCAL.size or not head.startswith(b"PK\3\4"):
        raise wg.ModelFileError(f"{name} is damaged: it does not lie where the list of files says")
    _, names, extras = _LOCAL.unpack(head)
    start = member.header_offset + _LOCAL.size + names + extras
    if member.file_size != member.compress_size or start + member.file_size > len(data):
        raise wg.ModelFileError(f"{name} is damaged: it ends too early")
    return data[start : start + member.file_size]
