"""The tokenizer of pages in node, and texts that tokenizers find difficult."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts.browser import find
from scripts.make_token_fixture import PIECES
from tests.limits import HANG
from webgrad.models.tokenizer import Tokenizer
from webgrad.web.tokenizer_data import tokenizer_spec

__all__ = ["check_ids", "check_same", "difficult_texts", "tokenize"]

HARNESS = Path(__file__).parent / "tokenize.mjs"
NO_NODE = "THE TOKENIZER OF PAGES WAS NOT TRIED: node is not installed"
# Characters that Unicode versions, languages or expressions take differently.
ODD = (
    *(
        "\x85",
        "\u1680",
        "\u180e",
        "\u200b",
        "\u200d",
        "\u2028",
        "\u202f",
        "\u205f",
        "\u2060",
        "\ufeff",
        "\x1c",
    ),
    *(
        "\x00",
        "\x0b",
        "\x0c",
        "\x7f",
        "\x9f",
        "\u00ad",
        "\u0301",
        "\u0344",
        "\u0345",
        "\u20dd",
        "\ufe0f",
        "\ufdd0",
    ),
    *(
        "ſ",
        "K",
        "ß",
        "İ",
        "ı",
        "Σ",
        "ς",
        "ΑΣ",
        "Ⅷ",
        "½",
        "৪",
        "〇",
        "㊙",
        "ﬃ",
        "Ω",
        "Å",
        "가",
        "각",
        "ᄀ",
        "ᅡ",
    ),
    *(
        "'S",
        "'ſ",
        "'LL",
        "'ll",
        "'Ve",
        "n't",
        "do not",
        " 's",
        "$",
        "+",
        "^",
        "`",
        "_",
        "\\",
        "·",
        "–",
        "«",
        "、",
    ),
    *(
        "𝟘",
        "𐄂",
        "𞤀",
        "𞥐",
        "𠀀",
        "\U0002ffff",
        "\U000e0041",
        "\U000f0000",
        "\U0010ffff",
        "ꟑ",
        "\U00010d50",
        "ᲊ",
    ),
    *(
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "<unk>",
        "<s>",
        "</s>",
        "<0x0A>",
        "▁▁",
        "##a",
        "  ",
        " \n",
        "\n \n",
        "\r\r\n",
    ),
)


def difficult_texts(count: int, seed: int = 9, more: Iterable[str] = ()) -> list[str]:
    """All difficult pieces, mixtures of them, and of any characters."""
    choose = random.Random(seed)
    pieces = [*PIECES, *ODD, *more]
    texts = ["", *pieces]
    for number in range(count):
        length = choose.randint(2, 10)
        any_characters = (anything(choose) for _ in range(length))
        texts.append("".join(choose.choices(pieces, k=length) if number % 4 else any_characters))
    return texts


def anything(choose: random.Random) -> str:
    """A character of Unicode, the first ones more often."""
    code = choose.randrange(1 << choose.choice((7, 8, 12, 16, 17, 18)))
    return " " if 0xD800 <= code < 0xE000 else chr(code)


def tokenize(tokenizers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the page's tokenizers answer; without node a skip."""
    node = find("node")
    if node is None:
        pytest.skip(NO_NODE)
    done = subprocess.run(
        [node, str(HARNESS)],
        input=json.dumps({"tokenizers": tokenizers}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def check_same(tokenizers: Mapping[str, Tokenizer], texts: list[str]) -> None:
    """Pages give these texts the ids that Python gives, and read them, and ids at random, in the same way."""
    choose = random.Random(5)
    given: dict[str, dict[str, Any]] = {}
    wanted: dict[str, list[list[int]]] = {}
    for name, tokenizer in tokenizers.items():
        wanted[name] = [tokenizer.encode(text) for text in texts]
        random_ids = [choose.choices(range(tokenizer.size + 2), k=12) for _ in range(20)]
        given[name] = {
            "spec": tokenizer_spec(tokenizer),
            "texts": texts,
            "ids": wanted[name][::2] + random_ids,
        }
    answers = tokenize(given)
    for name, tokenizer in tokenizers.items():
        check_ids(name, texts, answers[name]["ids"], wanted[name])
        for ids, (text, with_special), pieces in zip(
            given[name]["ids"], answers[name]["texts"], answers[name]["pieces"], strict=True
        ):
            assert text == tokenizer.decode(ids), (name, ids)
            assert with_special == tokenizer.decode(ids, skip_special_tokens=False), (name, ids)
            stream = tokenizer.stream()
            assert pieces == [*map(stream.push, ids), stream.finish()], (name, ids)


def check_ids(name: str, texts: list[str], found: list[list[int]], wanted: list[list[int]]) -> None:
    """The ids are those wanted; else the first text that has others."""
    for text, mine, theirs in zip(texts, found, wanted, strict=True):
        assert mine == theirs, (name, text)
