"""Tokens become text one by one.

In come token ids, out come pieces of text that are whole characters only; all pieces joined are what
decoding all ids at once gives. A token costs the same however many came before it.
"""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from typing import Any

__all__ = ["SPACE", "Spelling", "StreamDecoder", "spelling_of"]

SPACE = "▁"  # SentencePiece's mark for one


@dataclass(frozen=True)
class Spelling:
    """How a vocabulary writes text in its tokens."""

    kind: str  # "bytes": a character a byte; "marks": text with ▁ for spaces; "other": the engine decodes
    byte_tokens: bool = False  # <0x0A> is a byte
    strip_first: bool = False  # a text starts with one space that nobody wrote
    bare_first: bool = False  # the first token loses all of its marks


def byte_characters() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes are their own characters, the others come after U+0100 in order."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }


BYTES = byte_characters()


def spelling_of(engine: Any) -> Spelling:
    """The spelling that undoes what the engine's decoder undoes."""
    decoder = engine.decoder
    if decoder is None:
        return Spelling("other")
    state = json.loads(decoder.__getstate__())
    steps = state["decoders"] if state["type"] == "Sequence" else [state]
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return Spelling("bytes")
    if kinds == ["Metaspace"] and steps[0]["replacement"] == SPACE:
        return Spelling("marks", bare_first=steps[0].get("prepend_scheme") != "never")
    strips = [step for step in steps if step["type"] == "Strip"]
    is_known = all(map(is_sentencepiece_step, steps)) and len(strips) <= 1 and "Replace" in kinds
    if not is_known or (strips and kinds[-2:] != ["Fuse", "Strip"]):
        return Spelling("other")
    return Spelling("marks", byte_tokens="ByteFallback" in kinds, strip_first=bool(strips))


def is_sentencepiece_step(step: dict[str, Any]) -> bool:
    if step["type"] == "Replace":
        return bool(step["pattern"] == {"String": SPACE} and step["content"] == " ")
    if step["type"] == "Strip":
        return bool(step["content"] == " " and step["start"] == 1 and step["stop"] == 0)
    return step["type"] in ("ByteFallback", "Fuse")


def token_bytes(token: str, spelling: Spelling) -> bytes:
    """The bytes of UTF-8 that a token stands for, wherever it is."""
    if spelling.kind == "bytes":
        values = [BYTES.get(character, -1) for character in token]
        return token.encode() if -1 in values else bytes(values)
    if spelling.byte_tokens and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes([int(token[3:5], 16)])
        except ValueError:
            pass
    return token.replace(SPACE, " ").encode()


class StreamDecoder:
    """Text out of tokens as they come: `push` gives what is whole by now, `finish` what was held back."""

    def __init__(self, engine: Any, spelling: Spelling, skipped: frozenset[int]) -> None:
        self._engine, self._spelling, self._skipped = engine, spelling, skipped
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_first = True
        self._before: int | None = None  # the last token, where the engine decodes

    def push(self, token_id: int) -> str:
        """The text that is whole now; "" while a character still lacks bytes."""
        token = self._engine.id_to_token(token_id)
        if token is None or token_id in self._skipped:
            return ""
        if self._spelling.kind == "other":
            return self._push_other(token_id)
        written = token_bytes(token, self._spelling)
        if self._is_first:
            self._is_first = False
            if self._spelling.bare_first:
                written = token.replace(SPACE, "").encode()
            elif self._spelling.strip_first and written.startswith(b" "):
                written = written[1:]
        return self._utf8.decode(written)

    def finish(self) -> str:
        """What was held back: bytes that never became a character, as U+FFFD."""
        rest = self._utf8.decode(b"", final=True)
        self._utf8.reset()
        self._is_first, self._before = True, None
        return rest

    def _push_other(self, token_id: int) -> str:
        """Other decoders look at the token before at most (WordPiece puts spaces between words)."""
        before = [] if self._before is None else [self._before]
        self._before = token_id
        known = self._engine.decode(before, skip_special_tokens=False) if before else ""
        both: str = self._engine.decode([*before, token_id], skip_special_tokens=False)
        return both[len(known) :]
