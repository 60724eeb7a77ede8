"""How much a tokenizer may make of a text: a file can ask for steps that double it forty times.

In: an engine of the package tokenizers. Out: nothing, or a ModelFileError that names the step. Engines have
no limit of time, and end the process where memory runs out, so what may grow or search without reason is
refused before any text is encoded: steps before and after the model, the model's own marks and lengths, and
what is put around a text.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from webgrad.errors import ModelFileError

from .patterns import check_pattern

__all__ = ["LONGEST_TOKEN", "check_growth"]

MOST = 40  # times: of published tokenizers a letter becomes at most 36
MOST_STEPS = 64  # of each kind; published tokenizers have up to ten
COMPOSED = 18  # letters that compatibility forms make of one that a step has put in
FORMS = ("NFC", "NFD", "NFKC", "NFKD")
BYTES = 4  # that a letter has, each of which becomes a letter
LONGEST_TOKEN = 1024  # characters
LONGEST_SPECIAL = 128  # letters of a special token: at each letter of a message all lengths are looked up
LONGEST_UNIGRAM = 128  # at each letter of a text all unigrams that begin there are weighed
LONGEST_WORD = 200  # of WordPiece, which looks up all parts of a word
LONGEST_MARK = 64  # of what is put before or after the parts of a word
MOST_AROUND = 1024  # tokens put around a text
MOST_TIMES = 3  # that a text, or one of a pair, is put there
INNER = ("normalizers", "pretokenizers", "decoders", "processors")


def check_growth(engine: Any, name: str, longest: float = math.inf) -> None:
    """Refuse an engine that may make a text more than MOST times as long, or take very long for it.

    No token is longer than `longest`; only where that is too long are they listed, which takes a while.
    """
    steps = [*_steps(engine.normalizer, name), *_steps(engine.pre_tokenizer, name)]
    _check_steps([*steps, *_steps(engine.post_processor, name)], name)
    _check_steps(list(_steps(engine.decoder, name)), name)
    _check_model(engine, name, longest)


def _steps(part: Any, name: str) -> Iterator[dict[str, Any]]:
    """The steps of a normalizer, pre-tokenizer, post-processor or decoder, those of sequences one by one."""
    waiting: list[Any] = [] if part is None else [json.loads(part.__getstate__())]
    count = 0
    while waiting:
        step = waiting.pop(0)
        inner = next((step[key] for key in INNER if key in step), None)
        count += 1
        if count > MOST_STEPS:
            raise ModelFileError(
                f"{name} is refused: it has more than {MOST_STEPS} steps in a row, such as {step.get('type')}"
            )
        if inner is None:
            yield step
        else:
            waiting[:0] = inner


def _check_steps(steps: list[dict[str, Any]], name: str) -> None:
    """Refuse steps that make of one letter more than MOST, with the step that goes beyond it."""
    growth, composed = 1, True  # what letters of the user's own become is the user's business
    for step in steps:
        kind = step.get("type")
        if kind in FORMS:
            factor, composed = (1 if composed else COMPOSED), True
        else:
            factor = _factor(step, name)
            composed = composed and (kind != "Replace" or step["content"].isascii())
        growth *= factor
        if growth > MOST:
            raise ModelFileError(
                f"{name} is refused: its steps up to {kind} may make a text {growth:,} times as long, and at "
                f"most {MOST:,} is allowed; such steps are there too often, or put in too much"
            )


def _factor(step: dict[str, Any], name: str) -> int:
    """How many letters (or ids, of a post-processor) a step makes of one, at most."""
    kind = step.get("type")
    if kind == "TemplateProcessing":
        return _around(step, name)
    if "Regex" not in (step.get("pattern") or {}):
        return GROWTHS[kind](step) if kind in GROWTHS else 1
    fewest = check_pattern(step["pattern"]["Regex"], f"{name}: a step {kind}")
    return max(1, len(step.get("content", ""))) + (kind == "Replace" and fewest == 0)


def _replaced(step: dict[str, Any]) -> int:
    old, new = step["pattern"]["String"], step["content"]
    return max(1, -(-len(new) // len(old))) if old else 1 + len(new)


def _mapped(step: dict[str, Any]) -> int:
    """The longest text of a table of SentencePiece: behind a tree, whose size is first, between zeros."""
    table = step.get("precompiled_charsmap") or ""
    data = base64.b64decode(table) if isinstance(table, str) else bytes(table)
    texts = data[4 + int.from_bytes(data[:4], "little") :].decode(errors="replace").split("\0")
    return max(1, *map(len, texts))


# How many letters a step makes of one, at most; those that are not here make one, or none.
GROWTHS: dict[Any, Callable[[dict[str, Any]], int]] = {
    "ByteLevel": lambda step: BYTES,
    "Replace": _replaced,
    "Prepend": lambda step: 1 + len(step["prepend"]),  # to each stretch between added tokens
    "Precompiled": _mapped,
    "Metaspace": lambda step: 2,  # to each word
    "BertNormalizer": lambda step: 3,  # spaces around letters of Chinese
    "Lowercase": lambda step: 2,
}


def _around(step: dict[str, Any], name: str) -> int:
    """How often a text's ids are repeated by a template of what is put around it."""
    specials = {key: len(each["ids"]) for key, each in step["special_tokens"].items()}
    for pieces in (step["single"], step["pair"]):
        named = [each["SpecialToken"]["id"] for each in pieces if "SpecialToken" in each]
        count = sum(specials.get(each, 0) for each in named)
        if count > MOST_AROUND:
            raise ModelFileError(
                f"{name} is refused: its TemplateProcessing puts {count:,} tokens around a text, and at most "
                f"{MOST_AROUND:,} are allowed"
            )
    times = max(sum("Sequence" in each for each in step[key]) for key in ("single", "pair"))
    if times > MOST_TIMES:
        raise ModelFileError(
            f"{name} is refused: its TemplateProcessing repeats a text {times:,} times, and at most "
            f"{MOST_TIMES} are allowed"
        )
    return max(1, times - 1)  # in a pair there are two texts


def _check_model(engine: Any, name: str, longest: float) -> None:
    model, kind = engine.model, type(engine.model).__name__
    special = [str(token.content) for token in engine.get_added_tokens_decoder().values() if token.special]
    allowed = LONGEST_UNIGRAM if kind == "Unigram" else LONGEST_TOKEN
    if longest > allowed:
        longest = max(map(len, engine.get_vocab()), default=0)
    bounds = (
        ("a token", longest, allowed),
        ("a special token", max(map(len, special), default=0), LONGEST_SPECIAL),
        ("the word", getattr(model, "max_input_chars_per_word", 0), LONGEST_WORD),
        ("the continuing_subword_prefix", _length(model, "continuing_subword_prefix"), LONGEST_MARK),
        ("the end_of_word_suffix", _length(model, "end_of_word_suffix"), LONGEST_MARK),
    )
    for what, length, most in bounds:
        if length > most:
            raise ModelFileError(
                f"{name} is refused: {what} of its {kind} model has up to {length:,} letters, and at most "
                f"{most:,} are allowed"
            )


def _length(model: Any, name: str) -> int:
    return len(getattr(model, name, None) or "")
