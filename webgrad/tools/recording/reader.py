"""Reading a recording's file: nothing that is in it is believed.

In: a path. Out: what is in the file, well-formed, or a ModelFileError that says what is wrong. Sizes, names
and numbers are checked when it is opened, contents against their sha256 when they are asked for; nothing is
unpacked beyond its bounds, and nothing to disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ModelFileError, WebgradError
from .file_format import FORMAT, VERSION, Binding, Dispatch, Kernel, Origin, kernel_name

__all__ = ["RecordingReader"]

MOST_MANIFEST = 256 << 20  # bytes
MOST_TEXT = 256 << 20  # bytes of all kernels
MOST_BINDINGS = 1024
MOST_PARAMS = 4096  # bytes
MOST_BUFFER = 1 << 40
_HASH = re.compile(r"[0-9a-f]{64}")
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
    *(OverflowError, struct.error, KeyError, IndexError, AttributeError),
)


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
        data = self._member(kernel_name(number), self._text_left)
        self._text_left -= len(data)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._damaged(f"{kernel_name(number)} is not a text: {error}") from None

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
