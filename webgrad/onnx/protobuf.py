"""Protobuf's wire format: bytes as messages, by the tables of `schema.py`.

In: a view of bytes and a message's name. Out: `Message`, whose fields are attributes. Every length is
compared with the bytes that are there before it is used, messages and fields are counted, and nothing is
copied but numbers and texts: a file that lies costs no more than its own size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

import webgrad as wg

from ..arrays import Array, np
from .schema import ABSENT, MESSAGES, Field

__all__ = ["Message", "parse"]

AT_ONCE = 1 << 16  # bytes of numbers side by side
FIELDS = 1 << 22  # of all messages together
DEPTH = 64  # of messages in messages: a graph in a graph takes three
_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5  # how a value is written
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_REAL = {_SHORT: _FLOAT, _LONG: _DOUBLE}
_PACKED = {"float": "<f4", "double": "<f8"}


class Message:
    """The fields that are there; another one has its kind's value for nothing: 0, "", (), None."""

    def __init__(self, kind: str) -> None:
        self.__dict__["kind"] = kind

    def __getattr__(self, name: str) -> Any:
        try:
            return ABSENT[self.kind][name]
        except KeyError:
            raise AttributeError(f"a {self.kind} message has no field {name!r}") from None

    def has(self, name: str) -> bool:
        """Whether a field is there."""
        return name in self.__dict__

    def __repr__(self) -> str:
        return f"<{self.kind} {', '.join(self.__dict__)}>"


def parse(data: Any, kind: str, source: str) -> Message:
    """The message that bytes hold; `source` is what an error calls them."""
    return _Reader(source).message(memoryview(data), kind, DEPTH)


class _Reader:
    """What is left to be read of the count of fields."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.left = FIELDS

    def fail(self, what: str) -> NoReturn:
        raise wg.ModelFileError(f"{self.source} is damaged, or no ONNX file: {what}")

    def message(self, view: memoryview, kind: str, depth: int) -> Message:
        if not depth:
            self.fail(f"messages lie in each other deeper than {DEPTH}")
        known = MESSAGES[kind]
        found = Message(kind)
        values = found.__dict__
        for number, wire, value in self.fields(view):
            field = known.get(number)
            if field is None:
                continue
            if field.repeated:
                several = values.setdefault(field.name, [])
                self.add(several, field, wire, value, depth)
            else:
                values[field.name] = self.value(field, wire, value, depth)
        return found

    def fields(self, view: memoryview) -> Iterator[tuple[int, int, Any]]:
        """Number, wire type and raw value of each field."""
        at, end = 0, len(view)
        while at < end:
            self.left -= 1
            if self.left < 0:
                self.fail(f"it has more than {FIELDS:,} fields")
            tag, at = self.varint(view, at)
            number, wire = tag >> 3, tag & 7
            if wire == _VARINT:
                value, at = self.varint(view, at)
                yield number, wire, value
                continue
            if wire == _BYTES:
                size, at = self.varint(view, at)
            elif wire in _REAL:
                size = _REAL[wire].size
            else:
                self.fail(f"a field is written in the unknown way {wire}")
            if size > end - at:
                self.fail(f"a field of {size:,} bytes begins {end - at:,} bytes before its message ends")
            yield number, wire, view[at : at + size]
            at += size

    def varint(self, view: memoryview, at: int) -> tuple[int, int]:
        """An unsigned number in groups of seven bits, and where the next byte is."""
        found = shift = 0
        for next_one, byte in enumerate(view[at : at + 10], at + 1):
            found |= (byte & 127) << shift
            if byte < 128:
                return found & 0xFFFF_FFFF_FFFF_FFFF, next_one
            shift += 7
        return self.fail("a number does not end")

    def value(self, field: Field, wire: int, value: Any, depth: int) -> Any:
        if field.kind == "int":
            return _signed(value) if wire == _VARINT else self.refuse(field)
        if field.kind in _PACKED:
            return _REAL[wire].unpack(value)[0] if wire in _REAL else self.refuse(field)
        if wire != _BYTES:
            self.refuse(field)
        if field.kind == "bytes":
            return value
        if field.kind != "text":
            return self.message(value, field.kind, depth - 1)
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError as error:
            self.fail(f"the text {field.name} is no UTF-8: {error.reason}")

    def add(self, several: list[Any], field: Field, wire: int, value: Any, depth: int) -> None:
        """One more value of a repeated field, or, of numbers, many side by side."""
        if wire == _BYTES and field.kind == "int":
            several += self.varints(value)
        elif wire == _BYTES and field.kind in _PACKED:
            if len(value) % np.dtype(_PACKED[field.kind]).itemsize:
                self.refuse(field)
            several += np.frombuffer(value, _PACKED[field.kind]).tolist()
        else:
            several.append(self.value(field, wire, value, depth))

    def varints(self, view: memoryview) -> Iterator[int]:
        """Numbers side by side: many at once, since a tensor may be written so, but not all, since what it
        takes to find them is many times their bytes.
        """
        at = 0
        while at < len(view):
            data = np.frombuffer(view[at : at + AT_ONCE], np.uint8)
            ends = np.flatnonzero(data < 128)
            if not ends.size or (at + data.size == len(view) and ends[-1] != data.size - 1):
                self.fail("a number does not end")
            size = int(ends[-1]) + 1
            yield from self.whole_varints(data[:size], ends)
            at += size

    def whole_varints(self, data: Array, ends: Array) -> list[int]:
        """Numbers that end at these places."""
        starts = np.concatenate([[0], ends[:-1] + 1])
        if (ends - starts).max() > 9:
            self.fail("a number has more than ten bytes")
        which = np.repeat(np.arange(len(ends)), ends - starts + 1)
        shifts = (7 * (np.arange(data.size) - starts[which])).astype(np.uint64)
        parts = (data & 127).astype(np.uint64) << shifts
        found: list[int] = np.add.reduceat(parts, starts).view(np.int64).tolist()
        return found

    def refuse(self, field: Field) -> NoReturn:
        self.fail(f"the field {field.name} is not written as {field.kind}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
