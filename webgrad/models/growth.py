"""How much longer a tokenizer's steps may make a text: a file can ask for steps that double it forty times.

In: an engine of the package tokenizers. Out: nothing, or a ModelFileError. Engines end the process where
memory runs out, so what may grow without reason is refused before any text is encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from webgrad.errors import ModelFileError

from .gguf_tokenizer import import_tokenizers

__all__ = ["check_growth"]

MOST = 4096  # times: of published tokenizers a letter becomes at most a few dozen
COMPOSED = 18  # letters that compatibility forms make of one, at most; doing it again adds none
FORMS = ("NFKC", "NFKD", "Precompiled")
BYTES = 4  # that a letter has, each of which becomes a letter


def check_growth(engine: Any, name: str) -> None:
    """Refuse an engine whose steps, one after the other, may make a text more than MOST times as long."""
    before = _growth([*_steps(engine.normalizer), *_steps(engine.pre_tokenizer)])
    after = _growth(_steps(engine.decoder))
    if max(before, after) > MOST:
        raise ModelFileError(
            f"{name} is refused: its steps may make a text {max(before, after):,} times as long, and at most "
            f"{MOST:,} is allowed; a step such as ByteLevel or Replace is there too often"
        )


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """The steps of a normalizer, pre-tokenizer or decoder, those inside of sequences one by one."""
    waiting: list[Any] = [] if part is None else [json.loads(part.__getstate__())]
    while waiting:
        step = waiting.pop(0)
        inner = next((step[key] for key in ("normalizers", "pretokenizers", "decoders") if key in step), None)
        if inner is None:
            yield step
        else:
            waiting[:0] = inner


def _growth(steps: Any) -> int:
    growth, composed = 1, False
    for step in steps:
        kind = step.get("type")
        if kind == "ByteLevel":
            growth *= BYTES
        elif kind == "Replace":
            growth *= _replaced(step["pattern"], step["content"])
        elif kind in FORMS and not composed:
            growth, composed = growth * COMPOSED, True
    return growth


def _replaced(pattern: dict[str, str], content: str) -> int:
    """How many letters one letter becomes, at most."""
    if "String" in pattern:
        return max(1, -(-len(content) // len(pattern["String"]))) if pattern["String"] else 1 + len(content)
    package = import_tokenizers()
    replace = package.normalizers.Replace(package.Regex(pattern["Regex"]), content or "x")
    fits_nothing = bool(replace.normalize_str(""))  # then it is put between any two letters
    return max(1, len(content)) + fits_nothing
