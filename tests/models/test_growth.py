"""Tokenizers whose steps make texts grow without bound are refused before any text is encoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from webgrad.errors import ModelFileError
from webgrad.models.folder_tokenizer import engine_of_json
from webgrad.models.growth import check_growth

tokenizers = pytest.importorskip("tokenizers")
normalizers, pre, decoders = tokenizers.normalizers, tokenizers.pre_tokenizers, tokenizers.decoders


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
    with pytest.raises(ModelFileError, match=r"it\.json is refused: its steps may make a text [\d,]+ times"):
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
    with pytest.raises(ModelFileError, match="a step such as ByteLevel or Replace is there too often"):
        engine_of_json(path)
