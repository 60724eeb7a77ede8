"""The file of a recording: a zip of a manifest, kernels as text, and buffers as raw bytes, equal ones once.

In: `Dispatch`es and bytes; then a path. Out: a file, whole or not at all; then what is in it. Nothing that
is read is believed: sizes, names and numbers are checked here, contents against their sha256, so that what
comes out is well-formed or a ModelFileError that says what is wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...errors import ModelFileError, WebgradError
from ...io.replace import replacing

__all__ = ["Binding", "Dispatch", "Kernel", "Origin", "RecordingReader", "RecordingWriter"]

FORMAT, VERSION = "webgrad recording", 1
MOST_MANIFEST = 256 << 20  # bytes
MOST_TEXT = 256 << 20  # bytes of all kernels
MOST_BINDINGS = 1024
MOST_PARAMS = 4096  # bytes
MOST_BUFFER = 1 << 40
_HASH = re.compile(r"[0-9a-f]{64}")
_DATE = (1980, 1, 1, 0, 0, 0)  # equal recordings are equal files
_TRIED = 1 << 16  # bytes that are packed to see whether it pays
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
    *(OverflowError, struct.error, KeyError, IndexError, AttributeError),
)


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
            self._write(_kernel_name(number), text.encode(), zipfile.ZIP_DEFLATED)
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


def _kernel_name(number: int) -> str:
    return f"kernels/{number:03}.wgsl"


def _as_row(dispatch: Dispatch) -> dict[str, Any]:
    bindings = [asdict(each) for each in dispatch.bindings]
    rest = {each.name: getattr(dispatch, each.name) for each in fields(dispatch)}
    return rest | {"params": dispatch.params.hex(), "bindings": bindings}


class RecordingReader:
    """An open recording: `origins`, `kernels` and `dispatches` are read and checked, contents on demand."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._archive = zipfile.ZipFile(self.path)
        except _ZIP_ERRORS as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ModelFileError(
                f"{self.path} cannot be read as a recording: {why}. wg.record makes them"
            ) from None
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RecordingReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go."""
        self._archive.close()

    def contents(self, name: str, nbytes: int) -> bytes:
        """The contents that a binding names."""
        data = self._member(f"buffers/{name}", nbytes)
        if len(data) != nbytes:
            raise self._damaged(f"the buffer {name[:12]}… has {len(data):,} bytes, not {nbytes:,}")
        if hashlib.sha256(data).hexdigest() != name:
            raise self._damaged(f"the buffer {name[:12]}… is not what was recorded: its sha256 differs")
        return data

    def _read(self) -> None:
        try:
            manifest = json.loads(self._member("manifest.json", MOST_MANIFEST))
        except (ValueError, RecursionError) as error:
            raise (
                error
                if isinstance(error, WebgradError)
                else self._damaged(f"manifest.json is no JSON: {error}")
            ) from None
        form = _Fields(manifest, "manifest.json", self._damaged)
        if form.values.get("format") != FORMAT:
            raise self._damaged("manifest.json is not one of a webgrad recording")
        if form.values.get("version") != VERSION:
            raise ModelFileError(
                f"{self.path} is a recording of version {form.values.get('version')!r}, and this webgrad "
                f"reads version {VERSION}: record it anew, or use the webgrad that made it"
            )
        self.origins = tuple(_origin(each) for each in form.rows("origins"))
        self._text_left = MOST_TEXT
        self.kernels = tuple(
            Kernel(each.text("label"), each.text("entry"), self._kernel_text(number))
            for number, each in enumerate(form.rows("kernels"))
        )
        self.dispatches = tuple(_dispatch(each, len(self.kernels)) for each in form.rows("dispatches"))

    def _kernel_text(self, number: int) -> str:
        data = self._member(_kernel_name(number), self._text_left)
        self._text_left -= len(data)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._damaged(f"{_kernel_name(number)} is no text: {error}") from None

    def _member(self, name: str, most: int) -> bytes:
        """A part of the file; one larger than it may be is refused before it is unpacked."""
        try:
            member = self._archive.getinfo(name)
        except KeyError:
            raise self._damaged(f"there is no {name} in it") from None
        if member.file_size > most:
            raise self._damaged(f"{name} has {member.file_size:,} bytes, and may have {most:,}")
        try:
            with self._archive.open(member) as stream:
                return stream.read(most + 1)
        except _ZIP_ERRORS as error:
            raise self._damaged(f"{name}: {error}") from None

    def _damaged(self, what: str) -> ModelFileError:
        return ModelFileError(f"{self.path} is damaged: {what}")


@dataclass(frozen=True, slots=True)
class _Fields:
    """A JSON object, whose values are taken out by kind; `damaged` makes the error of one that is not."""

    values: Any
    place: str
    damaged: Callable[[str], ModelFileError]

    def __post_init__(self) -> None:
        if not isinstance(self.values, dict):
            raise self.damaged(f"{self.place} is not an object")

    def wrong(self, name: str) -> ModelFileError:
        return self.damaged(f"{self.place}: {name} is {str(self.values.get(name, 'missing'))[:60]}")

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self.wrong(name)
        return value

    def whole(self, name: str, least: int, most: int) -> int:
        value = self.values.get(name)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(name)
        return tuple(value)

    def rows(self, name: str) -> list[_Fields]:
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.wrong(name)
        return [_Fields(each, f"{self.place}, {name} {at}", self.damaged) for at, each in enumerate(value)]

    def hash(self, name: str) -> str:
        value = self.text(name)
        if value and not _HASH.fullmatch(value):
            raise self.wrong(name)
        return value

    def hexadecimal(self, name: str, most: int) -> bytes:
        try:
            value = bytes.fromhex(self.text(name))
        except ValueError as error:
            raise error if isinstance(error, WebgradError) else self.wrong(name) from None
        if len(value) > most:
            raise self.wrong(name)
        return value

    def grid(self, name: str) -> tuple[int, int, int]:
        value = self.values.get(name)
        if not isinstance(value, list) or len(value) != 3:
            raise self.wrong(name)
        if not all(type(each) is int and 0 < each < 1 << 32 for each in value):
            raise self.wrong(name)
        return value[0], value[1], value[2]

    def numbers(self, name: str) -> dict[str, int]:
        value = self.values.get(name)
        if not isinstance(value, dict) or not all(type(each) is int for each in value.values()):
            raise self.wrong(name)
        return value


def _origin(form: _Fields) -> Origin:
    return Origin(
        form.text("webgrad"),
        form.text("device"),
        form.text("adapter"),
        form.text("backend"),
        form.text("driver"),
        form.texts("features"),
        form.numbers("limits"),
    )


def _dispatch(form: _Fields, kernels: int) -> Dispatch:
    bindings = form.rows("bindings")
    if len(bindings) > MOST_BINDINGS:
        raise form.damaged(f"{form.place}: there are {len(bindings):,} bindings")
    return Dispatch(
        kernel=form.whole("kernel", 0, kernels - 1),
        name=form.text("name"),
        ops=form.text("ops"),
        line=form.text("line"),
        count=form.whole("count", 1, 1 << 62),
        grid=form.grid("grid"),
        params=form.hexadecimal("params", MOST_PARAMS),
        needs=form.texts("needs"),
        moved=form.whole("moved", 0, 1 << 62),
        operations=form.whole("operations", 0, 1 << 62),
        bindings=tuple(map(_binding, bindings)),
    )


def _binding(form: _Fields) -> Binding:
    access = form.text("access")
    if access not in ("read", "read_write"):
        raise form.wrong("access")
    found = Binding(
        form.text("name"),
        access,
        form.text("type"),
        form.text("dtype"),
        form.whole("nbytes", 0, MOST_BUFFER),
        form.hash("before"),
        form.hash("after"),
    )
    if bool(found.after) != (bool(found.before) and access == "read_write"):
        raise form.wrong("after")
    return found
