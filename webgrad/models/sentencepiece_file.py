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
# What pieces, their texts and scores begin with; types with what they begin with, or nothing for the first.
PIECE_KEY, TEXT_KEY, SCORE_KEY = PIECE << 3 | LENGTH, TEXT << 3 | LENGTH, SCORE << 3 | FOUR_BYTES
SCORE_BYTES = 5
SHORT = 128  # bytes: lengths below are one byte
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
    tokens, scores, types, settings = read_parts(data)
    if len(tokens) > MOST_PIECES:
        raise ValueError(f"more than {MOST_PIECES:,} pieces")
    trainer, normalizer = settings[TRAINER], settings[NORMALIZER]
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


def read_parts(data: bytes) -> tuple[list[str], list[float], list[int], dict[int, dict[int, Any]]]:
    """The texts, scores and types of all pieces, and the settings of the trainer and the normalizer."""
    tokens: list[str] = []
    scores: list[float] = []
    types: list[int] = []
    settings: dict[int, dict[int, Any]] = {TRAINER: {}, NORMALIZER: {}}
    place, padded = 0, data + bytes(2 * SHORT + SCORE_BYTES)
    while (place := read_plain(padded, len(data), place, tokens, scores, types)) < len(data):
        number, value, place = field(data, place)
        if number == PIECE:
            piece = dict(fields(expect_bytes(value)))
            tokens.append(expect_bytes(piece.get(TEXT, b"")).decode())
            scores.append(read_float(piece.get(SCORE)))
            types.append(int(piece.get(TYPE, 1)))
        elif number in settings:
            settings[number] = dict(fields(expect_bytes(value)))
    return tokens, scores, types, settings


def read_plain(
    data: bytes, last: int, place: int, tokens: list[str], scores: list[float], types: list[int]
) -> int:
    """Read pieces that are short, with a text, a score and perhaps a type, as nearly all are; gives the place
    behind them. Field by field it takes five times as long. Behind the last byte there is room to look.
    """
    while data[place] == PIECE_KEY and data[place + 2] == TEXT_KEY:
        size, length = data[place + 1], data[place + 3]
        end, score = place + 2 + size, place + 4 + length
        kind = TYPES.get(data[score + SCORE_BYTES : end])
        fits = score + SCORE_BYTES <= end <= last and size < SHORT
        if kind is None or not fits or data[score] != SCORE_KEY:
            break
        tokens.append(data[place + 4 : score].decode())
        scores.append(FLOAT.unpack_from(data, score + 1)[0])
        types.append(kind)
        place = end
    return place


def unescaped(tokens: list[str], types: list[int]) -> list[str]:
    """User-defined pieces are looked for in the text as it is written, with spaces."""
    return [
        token.replace("▁", " ") if kind == 4 else token for token, kind in zip(tokens, types, strict=True)
    ]


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbered fields of one message."""
    place = 0
    while place < len(data):
        number, value, place = field(data, place)
        yield number, value


def field(data: bytes, place: int) -> tuple[int, int | bytes, int]:
    """The number and the value of a field, and the place behind it."""
    key, place = varint(data, place)
    number, kind = key >> 3, key & 7
    if kind == VARINT:
        value, place = varint(data, place)
        return number, value, place
    if kind == LENGTH:
        length, place = varint(data, place)
    elif kind in (FOUR_BYTES, EIGHT_BYTES):
        length = 4 if kind == FOUR_BYTES else 8
    else:
        raise ValueError(f"a field of kind {kind} at byte {place}")
    if length > len(data) - place:
        raise ValueError(f"a field of {length} bytes at byte {place} of {len(data)}")
    return number, data[place : place + length], place + length


def varint(data: bytes, place: int) -> tuple[int, int]:
    if place < len(data) and data[place] < SHORT:  # most of them
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
