"""A model's tokenizer as exported pages read it: what webgrad/web/tokenizer.js makes a tokenizer of.

In comes a `Tokenizer`, out come plain values for a tokenizer.json of pages: the vocabulary by id, merges, and
the steps before and after them, which `token_steps.py` reduces to few kinds. Whatever the page could not do
the same way is refused here, so a page never gives other ids than Python.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

from webgrad.models.text_stream import spelling_of
from webgrad.models.tokenizer import BREAK, Tokenizer

from .expressions import Classes, members, refusal
from .token_steps import normalizer_steps, pre_tokenizer_steps, steps_of, word_characters

__all__ = ["engine_spec", "tokenizer_file", "tokenizer_spec", "written"]

MOST_TOKENS = 4_000_000
STRIPS = {"lstrip", "rstrip"}


def tokenizer_file(tokenizer: Tokenizer) -> bytes:
    """The contents of a page's tokenizer.json; a ModelFileError says what a page cannot have."""
    return written(tokenizer_spec(tokenizer))


def written(spec: dict[str, Any]) -> bytes:
    """A page's tokenizer.json."""
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode()


def tokenizer_spec(tokenizer: Tokenizer) -> dict[str, Any]:
    """What a page needs of a tokenizer, as plain values."""
    ends = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "stop": sorted(tokenizer.stop_ids)}
    return engine_spec(tokenizer.engine) | ends


def engine_spec(engine: Any) -> dict[str, Any]:
    """The same of a tokenizer of the package `tokenizers`, of which nothing else is known."""
    state = json.loads(engine.to_str())
    classes = Classes()
    steps, takes_bytes = pre_tokenizer_steps(state["pre_tokenizer"], classes)
    before, after = frame(state["post_processor"])
    model = state["model"]
    if model["type"] not in MODELS:
        raise refusal(f"a model of the kind {model['type']}")
    added = [added_token(token, engine) for token in state["added_tokens"] if token["content"]]
    return {
        "format": "webgrad-tokenizer",
        "version": 1,
        "normalizer": normalizer_steps(state["normalizer"], classes),
        "preTokenizer": steps,
        "model": MODELS[model["type"]](model) | {"bytes": takes_bytes},
        "added": added,
        # What tokens that are whole words must not touch, and what others take with them beside them.
        "word": classes.name(word_characters()) if any("single_word" in token for token in added) else None,
        "space": classes.name(members(r"\s")) if any(STRIPS & set(token) for token in added) else None,
        "before": before,
        "after": after,
        "decoder": decoder(engine, state["decoder"]),
        "break": BREAK,
        "stop": [],
        "classes": classes.written(),
    }


# Vocabularies


def by_id(vocabulary: Mapping[str, int]) -> list[str | None]:
    """The tokens in order of their ids, None where there is none."""
    size = max(vocabulary.values(), default=-1) + 1
    if size > MOST_TOKENS:
        raise refusal(f"the token id {size - 1:,}")
    tokens: list[str | None] = [None] * size
    for token, place in vocabulary.items():
        if tokens[place] is not None:
            raise refusal(f"two tokens with the id {place}")
        tokens[place] = token
    return tokens


def utf16_length(text: str) -> int:
    """How long JavaScript thinks that a text is."""
    return len(text.encode("utf-16-le")) // 2


def bpe(model: dict[str, Any]) -> dict[str, Any]:
    """Byte-pair encoding. A merge is written as what it makes, by its distance from the merge before, and
    how long its left side is: two small numbers."""
    for name in ("dropout", "continuing_subword_prefix"):
        if model.get(name):
            raise refusal(f"BPE with {name}={model[name]!r:.40}")
    vocabulary = model["vocab"]
    merges, last = [], 0
    for left, right in model["merges"]:
        made = vocabulary[left + right]
        merges += [made - last, utf16_length(left)]
        last = made
    return {
        "kind": "bpe",
        "vocabulary": by_id(vocabulary),
        "merges": merges,
        "unknown": unknown_id(model, vocabulary),
        "fuseUnknown": bool(model.get("fuse_unk")),
        "byteFallback": bool(model.get("byte_fallback")),
        "wholeWords": bool(model.get("ignore_merges")),
        "suffix": model.get("end_of_word_suffix") or "",
    }


def unknown_id(model: dict[str, Any], vocabulary: Mapping[str, int]) -> int | None:
    token = model.get("unk_token")
    if token is not None and token not in vocabulary:
        raise refusal(f"a token for what is unknown, {token!r:.40}, that its vocabulary does not have")
    return None if token is None else vocabulary[token]


def wordpiece(model: dict[str, Any]) -> dict[str, Any]:
    """BERT's kind: of each word the longest tokens from its start."""
    return {
        "kind": "wordpiece",
        "vocabulary": by_id(model["vocab"]),
        "unknown": unknown_id(model, model["vocab"]),
        "continuing": model["continuing_subword_prefix"],
        "longest": model["max_input_chars_per_word"],
    }


def unigram(model: dict[str, Any]) -> dict[str, Any]:
    """The likeliest tokens. Scores that are float32 are written short; the page rounds them to that again."""
    tokens, scores = zip(*model["vocab"], strict=True)
    if len(set(tokens)) != len(tokens):
        raise refusal("the same token twice")
    if model["unk_id"] is None:
        raise refusal("no token for what is unknown")
    single = all(rounded(score) == score for score in scores)
    return {
        "kind": "unigram",
        "vocabulary": list(tokens),
        "scores": [shortest(score) for score in scores] if single else list(scores),
        "single": single,
        "unknown": model["unk_id"],
        "byteFallback": bool(model.get("byte_fallback")),
    }


def rounded(number: float) -> float:
    """The nearest float32."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def shortest(number: float) -> float:
    """The number with the fewest digits that is rounded to this float32."""
    return next(short for digits in range(1, 18) if rounded(short := float(f"{number:.{digits}g}")) == number)


MODELS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "BPE": bpe,
    "WordPiece": wordpiece,
    "Unigram": unigram,
}


# Tokens that are found before anything else


def added_token(token: dict[str, Any], engine: Any) -> dict[str, Any]:
    """An added token: the text it stands for, and as "found" the one that is looked for."""
    names = ("special", "single_word", "lstrip", "rstrip", "normalized")
    found = token["content"]
    if token["normalized"] and engine.normalizer is not None:
        found = engine.normalizer.normalize_str(found)
    named = {"id": token["id"], "text": engine.id_to_token(token["id"]), "found": found}
    return named | {name: True for name in names if token[name]}


# What is put around a text


def frame(processor: dict[str, Any] | None) -> tuple[list[int], list[int]]:
    """The ids before and after a text."""
    before: list[int] = []
    after: list[int] = []
    for step in steps_of(processor):
        if step["type"] not in FRAMES:
            raise refusal(f"a post-processor of the kind {step['type']}")
        first, last = FRAMES[step["type"]](step)
        before, after = first + before, after + last
    return before, after


def template_frame(step: dict[str, Any]) -> tuple[list[int], list[int]]:
    parts = step["single"]
    texts = [place for place, part in enumerate(parts) if "Sequence" in part]
    if len(texts) != 1 or parts[texts[0]]["Sequence"]["id"] != "A":
        raise refusal("a template that writes a text other than once")
    sides = parts[: texts[0]], parts[texts[0] + 1 :]
    first, last = (
        [step["special_tokens"][part["SpecialToken"]["id"]]["ids"] for part in side] for side in sides
    )
    return list(itertools.chain(*first)), list(itertools.chain(*last))


def bert_frame(step: dict[str, Any]) -> tuple[list[int], list[int]]:
    return [step["cls"][1]], [step["sep"][1]]


FRAMES: dict[str, Callable[[dict[str, Any]], tuple[list[int], list[int]]]] = {
    "TemplateProcessing": template_frame,
    "BertProcessing": bert_frame,
    "RobertaProcessing": bert_frame,
    "ByteLevel": lambda step: ([], []),  # changes offsets only
}


# From ids to text


def decoder(engine: Any, state: dict[str, Any] | None) -> dict[str, Any]:
    """How tokens become text, by the kinds of models/text_stream.py and two that put spaces between."""
    spelling = spelling_of(engine)
    if spelling.kind != "other":
        return {
            "kind": spelling.kind,
            "byteTokens": spelling.byte_tokens,
            "stripFirst": spelling.strip_first,
            "bareFirst": spelling.bare_first,
        }
    if state is None:
        return {"kind": "words", "continuing": None, "cleanUp": False}
    if state["type"] == "WordPiece":
        return {"kind": "words", "continuing": state["prefix"], "cleanUp": state["cleanup"]}
    kinds = ", ".join(step["type"] for step in steps_of(state))
    raise refusal(f"a decoder of the kind {kinds}")
