"""SentencePiece's files: pieces read at once are those read field by field; damaged ones fail alike."""

from __future__ import annotations

import base64
import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from webgrad.models import sentencepiece_file as module

FIXTURE = Path(__file__).parent / "sentencepiece.json"


def read_fields(data: bytes) -> Any:
    found = dict(module.fields(data))
    text = module.expect_bytes(found.get(module.TEXT, b""))
    return text.decode(), module.read_float(found.get(module.SCORE)), int(found.get(module.TYPE, 1))


def read_piece(data: bytes) -> Any:
    """A piece in a file, with what a reader of many at once may not touch behind it."""
    tokens, scores, types, settings = module.read_parts(
        b"\x0a" + number(len(data)) + data + b"\x12\x02\x18\x02"
    )
    assert settings[module.TRAINER] == {module.MODEL_TYPE: 2}
    ((text, score, kind),) = zip(tokens, scores, types, strict=True)
    return text, score, kind


def outcome(read: Any, piece: bytes) -> Any:
    try:
        return repr(read(piece))
    except (ValueError, struct.error) as error:
        return type(error)


@pytest.mark.parametrize("name", ["llama", "gemma", "t5"])
def test_pieces_are_read_at_once_as_by_their_fields(name: str) -> None:
    data = base64.b64decode(json.loads(FIXTURE.read_text(encoding="utf-8"))[name]["model"])
    pieces = [value for number, value in module.fields(data) if number == module.PIECE]
    draw = random.Random(name)
    failed = 0
    for at in range(4 * len(pieces)):
        piece = bytearray(module.expect_bytes(pieces[at % len(pieces)]))
        if at >= len(pieces):
            piece[draw.randrange(len(piece))] = draw.randrange(256)
            del piece[draw.choice((len(piece), draw.randrange(len(piece) + 1))) :]
        expected = outcome(read_fields, bytes(piece))
        assert outcome(read_piece, bytes(piece)) == expected
        failed += isinstance(expected, type)
    assert 0 < failed < 3 * len(pieces)


@pytest.mark.parametrize("text", ["", "a", "▁" * 40, "x" * 127, "x" * 128, "é" * 100])
@pytest.mark.parametrize("kind", [None, 1, 4, 127, 128, 300])
def test_pieces_of_all_lengths_and_types(text: str, kind: int | None) -> None:
    raw = text.encode()
    piece = b"\x0a" + number(len(raw)) + raw + b"\x15" + struct.pack("<f", -1.5)
    piece += b"" if kind is None else b"\x18" + number(kind)
    assert read_piece(piece) == (text, -1.5, 1 if kind is None else kind)


def number(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])
