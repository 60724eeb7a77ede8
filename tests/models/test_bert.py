"""BERT: what transformers computes, by every name that weights are published under, however it is padded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.family_logits import FIXTURE, sample
from scripts.random_models import FAMILIES, IDS, weights_of
from webgrad.models.bert import Bert, BertSettings, read_bert

FAMILY = FAMILIES["bert"]
STORED = json.loads(FIXTURE.read_text(encoding="utf-8"))["bert"]
Array = np.ndarray[Any, Any]


def read(folder: Path, weights: dict[str, Array], device: str = "cpu", **changes: Any) -> Bert:
    """The model of weights that were written to a file."""
    wg.io.save(folder / "model.safetensors", weights)
    settings = BertSettings.from_config({**FAMILY.config, **changes})
    with wg.io.open(folder / "model.safetensors") as opened:
        return read_bert(opened, settings, device)


def vectors(bert: Bert, *rows: tuple[int, ...]) -> Array:
    """What the model gives rows of tokens, padded with what should not matter."""
    side = max(map(len, rows))
    ids = np.array([[*row, *[5] * (side - len(row))] for row in rows], np.int32)
    lengths = np.array([len(row) for row in rows], np.int32)
    device = bert.words.device
    found: Array = bert(wg.asarray(ids, device=device), wg.asarray(lengths, device=device)).numpy()
    return found


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
def test_it_is_what_transformers_computes(tmp_path: Path, device: str) -> None:
    found = vectors(read(tmp_path, weights_of(FAMILY), device), IDS)[0]
    np.testing.assert_allclose(sample(found), STORED, rtol=0, atol=1e-4)


def test_names_with_a_prefix_and_of_old_norms(tmp_path: Path) -> None:
    def old(name: str) -> str:
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        return f"bert.{name}"

    weights = {old(name): each for name, each in weights_of(FAMILY).items()}
    weights["cls.predictions.bias"] = np.zeros(256, np.float32)  # what is not needed is not read
    found = vectors(read(tmp_path, weights), IDS)[0]
    np.testing.assert_allclose(sample(found), STORED, rtol=0, atol=1e-4)


def test_half_precision_is_read_as_float32(tmp_path: Path) -> None:
    weights = {name: each.astype(np.float16) for name, each in weights_of(FAMILY).items()}
    bert = read(tmp_path, weights)
    assert {each.dtype for each in bert.parameters()} == {wg.float32}
    np.testing.assert_allclose(sample(vectors(bert, IDS)[0]), STORED, rtol=0, atol=2e-2)


def test_padding_does_not_show(tmp_path: Path) -> None:
    bert = read(tmp_path, weights_of(FAMILY))
    together = vectors(bert, IDS[:3], IDS[5:30], IDS[7:17])
    for row, ids in zip(together, (IDS[:3], IDS[5:30], IDS[7:17]), strict=True):
        np.testing.assert_allclose(row[: len(ids)], vectors(bert, ids)[0], rtol=0, atol=1e-5)


def test_what_is_missing_or_of_another_shape_is_named(tmp_path: Path) -> None:
    weights = weights_of(FAMILY)
    lost = "encoder.layer.1.output.dense.bias"
    with pytest.raises(wg.ModelFileError, match=f"has no weights {lost}"):
        read(tmp_path, {name: each for name, each in weights.items() if name != lost})
    with pytest.raises(wg.ModelFileError, match=r"word_embeddings.weight is \(256, 64\).* \(300, 64\)"):
        read(tmp_path, weights, vocab_size=300)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_act": "mish"}, "hidden_act='mish' is none of gelu"),
        ({"num_attention_heads": 5}, "64 columns cannot have 5 heads"),
        ({"num_hidden_layers": None}, "num_hidden_layers=None"),
        ({"num_hidden_layers": True}, "num_hidden_layers=True"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps='small'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
    ],
)
def test_settings_that_are_not_offered(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(wg.ModelFileError, match=message):
        BertSettings.from_config({**FAMILY.config, **changes})
