"""GPT-2: names with and without their wrapper, matrices the other way round, reading by parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.random_models import FAMILIES, IDS, weights_of
from webgrad.models.language import LanguageModel

FAMILY = FAMILIES["gpt2"]
Array = np.ndarray[Any, Any]


def made(folder: Path, weights: dict[str, Array], **changes: Any) -> LanguageModel:
    folder.mkdir(exist_ok=True)
    wg.io.save(folder / "model.safetensors", weights)
    (folder / "config.json").write_text(json.dumps({**FAMILY.config, **changes}), encoding="utf-8")
    model: Any = wg.models.load(str(folder), device="cpu")
    assert isinstance(model, LanguageModel)
    return model


def test_names_without_their_wrapper(tmp_path: Path) -> None:
    weights = weights_of(FAMILY)
    bare = {name.removeprefix("transformer."): each for name, each in weights.items()}
    bare["h.0.attn.bias"] = np.ones((1, 1, 8, 8), np.float32)  # a mask that the first files have
    np.testing.assert_array_equal(
        made(tmp_path / "bare", bare).logits(IDS).numpy(),
        made(tmp_path / "wrapped", weights).logits(IDS).numpy(),
    )


def test_a_head_of_its_own(tmp_path: Path) -> None:
    weights = weights_of(FAMILY)
    weights["lm_head.weight"] = 2 * weights["transformer.wte.weight"]
    found = made(tmp_path / "own", weights, tie_word_embeddings=False).logits(IDS).numpy()
    tied = made(tmp_path / "tied", weights).logits(IDS).numpy()
    np.testing.assert_allclose(found, 2 * tied, rtol=1e-5, atol=1e-5)


def test_greedy_tokens_are_those_of_the_logits(tmp_path: Path) -> None:
    model = made(tmp_path, weights_of(FAMILY), eos_token_id=None)
    text = [*IDS[:11]]
    for token in model.generate_ids(text, max_tokens=12, temperature=0):
        row = model.logits(text).numpy()[-1]
        assert row[token] >= row.max() - 1e-4
        text.append(token)
    assert len(text) == 23


def test_a_text_as_long_as_there_are_positions(tmp_path: Path) -> None:
    model = made(tmp_path, weights_of(FAMILY), eos_token_id=None)
    text = [number % 256 for number in range(126)]
    assert len(list(model.generate_ids(text, max_tokens=50, temperature=0))) == 3  # up to 128, and one more
    with pytest.raises(wg.ArgumentError, match="does not fit the context of 128"):
        model.logits([1] * 129)


def test_a_matrix_that_lies_the_wrong_way(tmp_path: Path) -> None:
    weights = weights_of(FAMILY)
    name = "transformer.h.1.mlp.c_fc.weight"
    weights[name] = np.ascontiguousarray(weights[name].T)
    with pytest.raises(wg.ModelFileError, match=r"c_fc\.weight has the shape \(256, 64\).*\(64, 256\)"):
        made(tmp_path, weights)
