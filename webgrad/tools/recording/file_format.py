"""The file of a recording: a zip of a manifest, kernels as text, and buffers as raw bytes, equal ones once.

In: kernels, contents and `Dispatch`es, as they come. Out: a file, whole or not at all, of which equal
recordings make equal ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...errors import ModelFileError
from ...io.replace import replacing

__all__ = ["FORMAT", "VERSION", "Binding", "Dispatch", "Kernel", "Origin", "RecordingWriter", "kernel_name"]

FORMAT, VERSION = "webgrad recording", 1
_DATE = (1980, 1, 1, 0, 0, 0)  # equal recordings are equal files
_TRIED = 1 << 16  # bytes that are packed to see whether it pays


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's canonical text, from which any device's is rendered."""

    label: str
    entry: str
    text: str


@dataclass(frozen=True, slots=True)
class Binding:
    """One buffer of a dispatch; `before` and `after` name its contents, empty where they were not kept."""

    name: str
    access: str  # read or read_write
    type: str  # in WGSL
    dtype: str  # of the elements, webgrad's name; empty where nobody knows
    nbytes: int
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One distinct dispatch, and how often it ran."""

    kernel: int
    name: str
    ops: str
    line: str
    count: int
    grid: tuple[int, int, int]
    params: bytes
    needs: tuple[str, ...]  # features
    moved: int  # bytes read and written
    operations: int  # of floating point
    bindings: tuple[Binding, ...]

    @property
    def kept(self) -> bool:
        """Whether its contents are in the file."""
        return all(each.before for each in self.bindings)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a recording was made."""

    webgrad: str
    device: str
    adapter: str
    backend: str
    driver: str
    features: tuple[str, ...]
    limits: Mapping[str, int]


class RecordingWriter:
    """Writes a recording beside its path as it grows; `close` puts it there, `abandon` leaves nothing."""

    def __init__(self, path: str | os.PathLike[str], limit: int) -> None:
        self.path = Path(path)
        self.limit = limit
        self.stored = 0  # bytes of buffers, before they were packed
        self.kernels: dict[tuple[str, str], int] = {}
        self._labels: list[tuple[str, str]] = []
        self._names: set[str] = set()
        self._stack = ExitStack()
        temporary = self._stack.enter_context(replacing(path))
        self._archive = zipfile.ZipFile(temporary, "w", allowZip64=True)

    def kernel(self, label: str, entry: str, text: str) -> int:
        """A kernel's number; its text is written once."""
        number = self.kernels.setdefault((entry, text), len(self._labels))
        if number == len(self._labels):
            self._labels.append((label, entry))
            self._write(kernel_name(number), text.encode(), zipfile.ZIP_DEFLATED)
        return number

    def fits(self, nbytes: int) -> bool:
        """Whether so many more bytes are within the limit."""
        return self.stored + nbytes <= self.limit

    def buffer(self, data: bytes) -> str:
        """Keep contents, once; gives the name to find them by."""
        name = hashlib.sha256(data).hexdigest()
        if name not in self._names:
            packs = len(zlib.compress(data[:_TRIED], 1)) < 0.9 * min(len(data), _TRIED)
            self._write(f"buffers/{name}", data, zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED)
            self._names.add(name)
            self.stored += len(data)
        return name

    def close(self, origins: Sequence[Origin], dispatches: Sequence[Dispatch]) -> None:
        """Write the manifest, and put the file in its place."""
        rows = [_as_row(each) for each in dispatches]
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "origins": [asdict(each) | {"limits": dict(each.limits)} for each in origins],
            "totals": {
                "dispatches": sum(each.count for each in dispatches),
                "distinct": len(rows),
                "without_buffers": sum(not each.kept for each in dispatches),
                "bytes": self.stored,
            },
            "kernels": [{"label": label, "entry": entry} for label, entry in self._labels],
            "dispatches": rows,
        }
        try:
            self._write("manifest.json", json.dumps(manifest, indent=1).encode(), zipfile.ZIP_DEFLATED)
            self._archive.close()
        except (OSError, ModelFileError) as error:
            self.abandon()
            raise self._unwritable(error) if isinstance(error, OSError) else error from None
        self._stack.close()

    def abandon(self) -> None:
        """Leave nothing behind, and what was under the path as it was."""
        with suppress(OSError, ValueError):
            self._archive.close()  # on a full disk it can no more be ended well
        error = _GivenUpError()
        with suppress(_GivenUpError):
            self._stack.__exit__(_GivenUpError, error, None)

    def _write(self, name: str, data: bytes, packed: int) -> None:
        try:
            self._archive.writestr(zipfile.ZipInfo(name, _DATE), data, packed, compresslevel=1)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> ModelFileError:
        return ModelFileError(f"{self.path} cannot be written: {error.strerror or error}")


class _GivenUpError(Exception):
    """Leaves a block of `replacing` without replacing."""


def kernel_name(number: int) -> str:
    """Where a kernel's text lies."""
    return f"kernels/{number:03}.wgsl"


def _as_row(dispatch: Dispatch) -> dict[str, Any]:
    bindings = [asdict(each) for each in dispatch.bindings]
    rest = {each.name: getattr(dispatch, each.name) for each in fields(dispatch)}
    return rest | {"params": dispatch.params.hex(), "bindings": bindings}
