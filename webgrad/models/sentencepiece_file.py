"""SentencePiece's tokenizer.model files, read as the metadata that GGUF files have for the same
vocabulary.

Such a file is a protocol-buffer message: numbered fields, each a varint, four or eight bytes, or a length
with so many bytes. Lengths are checked before they are used; fields that nobody needs are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webgrad.errors import ModelFileError

__all__ = ["metadata_of_sentencepiece"]

LARGEST_FILE = 64 << 20
MOST_PIECES = 1_000_000
MODELS = {1: "t5", 2: "llama"}  # unigrams and BPE by scores, by GGUF's names
VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
# Numbers of the fields: of the whole, of a piece, of the trainer's settings, of the normalizer's.
PIECE, TRAINER, NORMALIZER = 1, 2, 3
TEXT, SCORE, TYPE = 1, 2, 3
# What a piece's text and score begin with; its type with what it begins with, or nothing for the first.
TEXT_KEY, SCORE_KEY = TEXT << 3 | LENGTH, bytes([SCORE << 3 | FOUR_BYTES])
TYPES = {b"": 1} | {bytes([TYPE << 3 | VARINT, each]): each for each in range(128)}
FLOAT = struct.Struct("<f")
MODEL_TYPE, UNKNOWN_ID, BOS_ID, EOS_ID, PAD_ID = 3, 40, 41, 42, 43
CHARACTER_MAP, DUMMY_PREFIX, REMOVE_SPACES = 2, 3, 4


def metadata_of_sentencepiece(path: Path) -> dict[str, Any]:
    """The vocabulary of a tokenizer.model file, under GGUF's keys."""
    size = path.stat().st_size
    if not 0 < size <= LARGEST_FILE:
        raise ModelFileError(f"{path} has {size:,} bytes: this is no SentencePiece model")
    try:
        return read_model(path.read_bytes())
    except (ValueError, struct.error) as error:  # a UnicodeDecodeError is a ValueError
        raise ModelFileError(
            f"{path} is no SentencePiece model ({error}). Convert the tokenizer to a tokenizer.json: "
            "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        ) from None


def read_model(data: bytes) -> dict[str, Any]:
    tokens: list[str] = []
    types: list[int] = []
    scores: list[float] = []
    trainer: dict[int, Any] = {}
    normalizer: dict[int, Any] = {}
    for number, value in fields(data):
        if number == PIECE:
            text, score, kind = read_piece(expect_bytes(value))
            tokens.append(text.decode())
            scores.append(score)
            types.append(kind)
            if len(tokens) > MOST_PIECES:
                raise ValueError(f"more than {MOST_PIECES:,} pieces")
        elif number == TRAINER:
            trainer = dict(fields(expect_bytes(value)))
        elif number == NORMALIZER:
            normalizer = dict(fields(expect_bytes(value)))
    model = MODELS.get(trainer.get(MODEL_TYPE, 1))
    if not tokens or model is None:
        raise ValueError("no pieces" if not tokens else f"a model of type {trainer[MODEL_TYPE]}")
    return {
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.tokens": unescaped(tokens, types),
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.unknown_token_id": signed(trainer.get(UNKNOWN_ID, 0)),
        "tokenizer.ggml.bos_token_id": signed(trainer.get(BOS_ID, 1)),
        "tokenizer.ggml.eos_token_id": signed(trainer.get(EOS_ID, 2)),
        "tokenizer.ggml.padding_token_id": signed(trainer.get(PAD_ID, -1)),
        "tokenizer.ggml.add_space_prefix": bool(normalizer.get(DUMMY_PREFIX, 1)),
        "tokenizer.ggml.remove_extra_whitespaces": bool(normalizer.get(REMOVE_SPACES, 1)),
        "tokenizer.ggml.precompiled_charsmap": expect_bytes(normalizer.get(CHARACTER_MAP, b"")),
    }


def read_piece(data: bytes) -> tuple[bytes, float, int]:
    """A piece's text, score and type."""
    end = 2 + data[1] if len(data) > 1 and data[0] == TEXT_KEY and data[1] < 128 else len(data)
    if data[end : end + 1] == SCORE_KEY and len(data) >= end + 5:
        kind = TYPES.get(data[end + 5 :])  # as they all are written: so it takes a fifth of the time
        if kind is not None:
            return data[2:end], FLOAT.unpack_from(data, end + 1)[0], kind
    piece = dict(fields(data))
    return expect_bytes(piece.get(TEXT, b"")), read_float(piece.get(SCORE)), int(piece.get(TYPE, 1))


def unescaped(tokens: list[str], types: list[int]) -> list[str]:
    """User-defined pieces are looked for in the text as it is written, with spaces."""
    return [
        token.replace("▁", " ") if kind == 4 else token for token, kind in zip(tokens, types, strict=True)
    ]


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbered fields of one message."""
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value: int | bytes
            value, place = varint(data, place)
            yield number, value
            continue
        if kind == LENGTH:
            length, place = varint(data, place)
        elif kind in (FOUR_BYTES, EIGHT_BYTES):
            length = 4 if kind == FOUR_BYTES else 8
        else:
            raise ValueError(f"a field of kind {kind} at byte {place}")
        if length > len(data) - place:
            raise ValueError(f"a field of {length} bytes at byte {place} of {len(data)}")
        yield number, data[place : place + length]
        place += length


def varint(data: bytes, place: int) -> tuple[int, int]:
    if place < len(data) and data[place] < 128:  # most of them
        return data[place], place + 1
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ValueError("it ends inside of a number")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError(f"a number of more than ten bytes at byte {place}")


def signed(value: Any) -> int:
    """A 32-bit number, which protocol buffers write as 64 bits when it is negative."""
    return int(value) - (1 << 64) if int(value) >= 1 << 63 else int(value)


def expect_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where a text should be")
    return value


def read_float(value: Any) -> float:
    return float(struct.unpack("<f", expect_bytes(value))[0]) if value is not None else 0.0
