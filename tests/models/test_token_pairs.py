"""Pairs of tokens that make a third: those that looking at every cut of every token finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.limits import processor_time
from webgrad.models import token_pairs as module
from webgrad.models.folder_tokenizer import longest_text
from webgrad.models.token_pairs import token_pairs


def expected(tokens: list[str], ranks: list[int]) -> list[tuple[str, str]]:
    places = {token: place for place, token in enumerate(tokens)}
    found = [
        (ranks[place], places[token[:cut]], places[token[cut:]])
        for token, place in places.items()
        for cut in range(1, len(token))
        if token[:cut] in places and token[cut:] in places
    ]
    return [(tokens[first], tokens[second]) for _, first, second in sorted(found)]


def found(tokens: list[str], ranks: list[int]) -> list[tuple[str, str]]:
    return token_pairs(tokens, np.array(list(map(len, tokens)), np.int64), np.array(ranks, np.int64))


@pytest.mark.parametrize("seed", range(30))
def test_pairs_are_those_of_every_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOGETHER", 64)
    draw = random.Random(seed)
    letters = "ab▁é𝄞\ud800"[: draw.randrange(1, 7)]
    tokens = sorted({"".join(draw.choices(letters, k=draw.choice((1, 2, 3, 5, 9, 40)))) for _ in range(300)})
    draw.shuffle(tokens)
    ranks = draw.sample(range(len(tokens)), len(tokens))
    assert found(tokens, ranks) == expected(tokens, ranks)


def test_there_may_be_no_tokens_and_no_pairs() -> None:
    assert found([], []) == []
    assert found(["a", "bc"], [0, 1]) == []


def test_a_large_vocabulary_costs_little() -> None:
    draw = random.Random(0)
    tokens = list({"".join(draw.choices("abcdefghijkl", k=draw.randrange(1, 12))) for _ in range(270_000)})
    with processor_time(6):  # half a second on a quiet machine; looking at every cut takes several
        assert len(found(tokens, list(range(len(tokens))))) > 100_000


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ('{"a": "bcd"}', 3), (r'{"a\"b\"cdefg": 1}', 9), ('{"é": "一一一"}', 9)]
)
def test_no_text_of_json_is_longer_than_the_longest(text: str, length: int) -> None:
    assert longest_text(text) >= length
