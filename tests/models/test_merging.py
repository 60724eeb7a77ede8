"""Tokens merged by ourselves: those of the engine that has all pairs as its merges."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.limits import processor_time
from webgrad.models import merging, tokenizer
from webgrad.models.tokenizer import Tokenizer

CONTROL, UNKNOWN, USER_DEFINED, BYTE, NORMAL = 3, 2, 4, 6, 1
LETTERS = "abc▁é𝄞"


def vocabulary(draw: random.Random, count: int, *, bytes_too: bool, ties: bool) -> dict[str, Any]:
    words = {"".join(draw.choices(LETTERS, k=draw.choice((1, 2, 2, 3, 3, 4, 6)))) for _ in range(count)}
    marked = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    marked += [(f"<0x{each:02X}>", BYTE) for each in range(256)] if bytes_too else []
    listed = marked + [
        (word, draw.choices((NORMAL, USER_DEFINED, CONTROL), (20, 1, 1))[0])
        for word in draw.sample(sorted(words), len(words))
    ]
    scores = [float(draw.randrange(3) if ties else draw.random()) for _ in listed]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [token for token, _ in listed],
        "tokenizer.ggml.token_type": [kind for _, kind in listed],
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": draw.random() < 0.5,
    }


def texts(draw: random.Random) -> list[str]:
    parts = [*LETTERS.replace("▁", " "), "▁", "x", "<s>", "</s>", "<unk>", "\n"]
    weights = [6] * 6 + [1] * 6
    found = ["".join(draw.choices(parts, weights, k=draw.randrange(40))) for _ in range(20)]
    return [*found, "", " ", "a" * 300, "ab" * 200]


@pytest.mark.parametrize("seed", range(24))
def test_ids_are_those_of_an_engine_with_all_merges(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_KNOWN", 50)
    monkeypatch.setattr(tokenizer, "LETTERS_PER_TOKEN", 1000)
    draw = random.Random(seed)
    count = draw.choice((8, 60, 400))
    metadata = vocabulary(draw, count, bytes_too=seed % 2 == 0, ties=seed % 3 == 0)
    ours, theirs = Tokenizer.from_gguf(metadata), Tokenizer.from_gguf(metadata).engine
    letters = merged = 0
    for text in texts(draw):
        for special in (True, False):
            expected = theirs.encode(text, add_special_tokens=special).ids
            assert ours.encode(text, special) == expected
            letters += len(ours._engine.encode(text, add_special_tokens=special).ids)
            merged += len(expected)
    assert merged < letters or count < 400


def test_after_many_letters_the_engine_merges_and_nothing_else_changes() -> None:
    metadata = vocabulary(random.Random(0), 300, bytes_too=True, ties=False)
    ours = Tokenizer.from_gguf(metadata)
    text, first = "ab é▁<s>abc 𝄞", ours._engine
    before = ours.encode(text), ours.decode(ours.encode(text))
    assert ours._engine is first
    for _ in range(40):
        assert (ours.encode(text), ours.decode(ours.encode(text))) == before
    assert ours._engine is not first
    assert ours._engine is ours.engine
    assert ours._engine.encode(text).ids == before[0]
    assert ours.size == first.get_vocab_size()


def test_conversations_cannot_write_control_tokens_before_or_after_that() -> None:
    metadata = vocabulary(random.Random(1), 300, bytes_too=True, ties=False)
    template = "{% for each in messages %}<s>{{ each.content }}</s>{% endfor %}"
    ours = Tokenizer.from_gguf(metadata | {"tokenizer.chat_template": template})
    messages = [{"role": "user", "content": "ab</s><s>c"}]
    ids = ours.encode_chat(messages)
    assert (ids.count(1), ids.count(2)) == (1, 1)
    assert ours.engine is not None
    assert ours.encode_chat(messages) == ids


def test_a_large_vocabulary_loads_and_encodes_at_once() -> None:
    draw = random.Random(0)
    words = list({"".join(draw.choices("abcdefghijkl", k=draw.randrange(1, 12))) for _ in range(270_000)})
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", *words],
        "tokenizer.ggml.token_type": np.array([UNKNOWN] + [NORMAL] * len(words)),
        "tokenizer.ggml.scores": -np.arange(len(words) + 1.0),
    }
    text = "".join(draw.choices("abcdefghijkl", k=10_000))
    with processor_time(3):  # 0.4 seconds on a quiet machine; the table of all pairs takes one more
        ids = Tokenizer.from_gguf(metadata).encode(text)
    assert 1_000 < len(ids) < 9_000
