"""Tokenizers whose steps make texts grow without bound are refused before any text is encoded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from webgrad.errors import ModelFileError
from webgrad.models.folder_tokenizer import engine_of_json
from webgrad.models.growth import MOST, check_growth

tokenizers = pytest.importorskip("tokenizers")
normalizers, pre, decoders = tokenizers.normalizers, tokenizers.pre_tokenizers, tokenizers.decoders
models = tokenizers.models


def engine(normalizer: Any = None, pre_tokenizer: Any = None, decoder: Any = None) -> Any:
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"a": 0}, merges=[]))
    if normalizer is not None:
        made.normalizer = normalizer
    if pre_tokenizer is not None:
        made.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        made.decoder = decoder
    return made


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": pre.Sequence([pre.ByteLevel() for _ in range(7)])},
        {"normalizer": normalizers.Sequence([normalizers.Replace("a", "aa") for _ in range(13)])},
        {"normalizer": normalizers.Replace(tokenizers.Regex("x*"), "y" * 5000)},
        {"normalizer": normalizers.Replace("a", "y" * 5000)},
        {"decoder": decoders.Sequence([decoders.Replace("a", "aa") for _ in range(13)])},
        {
            "normalizer": normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("a", "y" * 60)]),
            "pre_tokenizer": pre.Sequence([pre.ByteLevel()]),
        },
    ],
)
def test_what_may_grow_without_bound_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(
        ModelFileError, match=r"it\.json is refused: its steps up to \w+ may make a text [\d,]+ times"
    ):
        check_growth(engine(**parts), "it.json")


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"pre_tokenizer": pre.ByteLevel(), "decoder": decoders.ByteLevel()},
        {
            "normalizer": normalizers.Sequence(
                [
                    normalizers.NFKC(),
                    normalizers.NFKD(),
                    normalizers.Prepend("▁"),
                    normalizers.Replace(" ", "▁"),
                    *[normalizers.Replace(tokenizers.Regex(r"\s+"), " ") for _ in range(20)],
                ]
            ),
            "pre_tokenizer": pre.Sequence([pre.Digits(), pre.ByteLevel()]),
            "decoder": decoders.Sequence(
                [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
            ),
        },
    ],
)
def test_what_published_tokenizers_do_is_not(parts: dict[str, Any]) -> None:
    check_growth(engine(**parts), "it.json")


def test_a_file_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    engine(pre_tokenizer=pre.Sequence([pre.ByteLevel() for _ in range(40)])).save(str(path))
    with pytest.raises(ModelFileError, match="its steps up to ByteLevel may make a text 64 times as long"):
        engine_of_json(path)


def split(pattern: str) -> Any:
    return pre.Split(tokenizers.Regex(pattern), "isolated")


def template(single: list[str], ids: int = 1) -> Any:
    return tokenizers.processors.TemplateProcessing(
        single=single, special_tokens=[{"id": "<s>", "ids": [0] * ids, "tokens": ["a"] * ids}]
    )


LOOK = tokenizers.Regex("(?=.)")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"normalizer": normalizers.Sequence([normalizers.Replace(LOOK, "x")] * 30)}, "steps up to Replace"),
        ({"decoder": decoders.Sequence([decoders.Replace(LOOK, "x")] * 30)}, "steps up to Replace"),
        (
            {"normalizer": normalizers.Sequence([normalizers.Prepend("x" * 1000)] * 20)},
            "steps up to Prepend may make a text 1,001 times",
        ),
        ({"pre_tokenizer": pre.Sequence([pre.Metaspace()] * 25)}, "steps up to Metaspace"),
        ({"normalizer": normalizers.Sequence([normalizers.BertNormalizer()] * 9)}, "up to BertNormalizer"),
        ({"normalizer": normalizers.Sequence([normalizers.Strip()] * 99)}, "more than 64 steps"),
        ({"pre_tokenizer": split("(a|aa|a+)+$")}, "a step Split is refused: its regular expression"),
        ({"post_processor": template(["$A"] * 1000)}, "TemplateProcessing repeats a text 1,000 times"),
        ({"post_processor": template(["<s>", "$A"], 2000)}, "puts 2,000 tokens around a text"),
        ({"post_processor": template(["<s>"] * 2000 + ["$A"])}, "puts 2,000 tokens around a text"),
    ],
)
def test_refused_steps_are_named(parts: dict[str, Any], message: str) -> None:
    made = engine()
    for name, part in parts.items():
        setattr(made, name, part)
    with pytest.raises(ModelFileError, match=message):
        check_growth(made, "it.json")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (models.BPE(vocab={"a": 0}, merges=[], continuing_subword_prefix="p" * 100), "continuing_subword"),
        (models.BPE(vocab={"a": 0}, merges=[], end_of_word_suffix="p" * 100), "the end_of_word_suffix"),
        (models.WordPiece({"a": 0}, unk_token="a", max_input_chars_per_word=10**9), "up to 1,000,000,000"),
        (models.Unigram([("a" * 200, 0.0)], 0, False), "a token of its Unigram model has up to 200 letters"),
        (models.BPE(vocab={"a" * 2000: 0}, merges=[]), "a token of its BPE model has up to 2,000 letters"),
    ],
)
def test_models_that_take_long_are_refused(model: Any, message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        check_growth(tokenizers.Tokenizer(model), "it.json")


def test_long_special_tokens_are_refused() -> None:
    made = engine()
    made.add_special_tokens(["a" * 200])
    with pytest.raises(ModelFileError, match="a special token of its BPE model has up to 200 letters"):
        check_growth(made, "it.json")


# At the bounds: what is accepted takes a few seconds for a text of 100,000 letters.
AT_BOUNDS: dict[str, Any] = {
    "steps": lambda: engine(normalizer=normalizers.Replace("a", "a" * MOST)),
    "unigrams": lambda: tokenizers.Tokenizer(
        models.Unigram([("<unk>", 0.0), *(("a" * length, -float(length)) for length in range(1, 129))], 0)
    ),
    "cuts": lambda: engine(pre_tokenizer=pre.Sequence([split(".")] * 30)),
}


@pytest.mark.parametrize("name", AT_BOUNDS)
def test_what_is_accepted_ends_soon(name: str) -> None:
    made = AT_BOUNDS[name]()
    check_growth(made, "it.json")
    start = time.process_time()
    made.encode("a" * 100_000)
    assert time.process_time() - start < 20  # two on a quiet machine


def test_a_run_of_spaces_is_cut_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    engine(pre_tokenizer=split(r"\s+$")).save(str(path))
    made = engine_of_json(path)
    assert made.pre_tokenizer.pre_tokenize_str("x  y  ") == [("x  y", (0, 4)), ("  ", (4, 6))]
    start = time.process_time()
    made.encode(" " * 100_000 + "x")
    assert time.process_time() - start < 20  # it takes hours where each space is a start
