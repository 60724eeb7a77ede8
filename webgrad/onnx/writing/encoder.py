"""Messages as bytes, by the tables of `schema.py`.

In: a message's fields. Out: `Encoded`, the pieces that its bytes are made of. The invariant: weights are
never copied: a message holds views of the arrays that it is made of until it is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..schema import MESSAGES, Field

__all__ = ["Encoded", "encode"]

_REAL = {"float": (5, struct.Struct("<f")), "double": (1, struct.Struct("<d"))}
_NAMED = {kind: {each.name: each for each in fields.values()} for kind, fields in MESSAGES.items()}


@dataclass(frozen=True, slots=True)
class Encoded:
    """A message's bytes in pieces, and how many they are."""

    pieces: tuple[bytes | memoryview, ...]
    size: int

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)


def encode(kind: str, **fields: Any) -> Encoded:
    """A message of these fields; of repeated ones any number of values. None: not there."""
    pieces: list[bytes | memoryview] = []
    for name, given in fields.items():
        row = _NAMED[kind][name]
        for value in (given if row.repeated else [given]) if given is not None else ():
            pieces += _field(row, value)
    return Encoded(tuple(pieces), sum(map(len, pieces)))


def _field(row: Field, value: Any) -> Iterator[bytes | memoryview]:
    """A value with its number and the way that it is written."""
    if row.kind == "int":
        yield _varint(row.number << 3) + _varint(int(value))
        return
    if row.kind in _REAL:
        wire, layout = _REAL[row.kind]
        yield _varint(row.number << 3 | wire) + layout.pack(value)
        return
    if isinstance(value, Encoded):
        size, pieces = value.size, value.pieces
    else:
        data = value.encode() if isinstance(value, str) else value
        size, pieces = len(data), (data,)
    yield _varint(row.number << 3 | 2) + _varint(size)
    yield from pieces


def _varint(number: int) -> bytes:
    """A number in groups of seven bits."""
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
