"""BERT: what transformers computes, by every name that weights are published under, however it is padded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import webgrad as wg
from scripts.family_logits import FIXTURE, sample
from scripts.random_models import FAMILIES, IDS, weights_of
from webgrad.models.bert import Bert
from webgrad.models.embedding import load_encoder
from webgrad.models.settings import settings_of_config

FAMILY = FAMILIES["bert"]
STORED = json.loads(FIXTURE.read_text(encoding="utf-8"))["bert"]
Array = np.ndarray[Any, Any]


def read(folder: Path, weights: dict[str, Any], device: str = "cpu", **changes: Any) -> Bert:
    """The model of weights that were written to a folder."""
    wg.io.save(folder / "model.safetensors", weights)
    (folder / "config.json").write_text(json.dumps({**FAMILY.config, **changes}), encoding="utf-8")
    return load_encoder(folder, device)


def vectors(bert: Bert, *rows: tuple[int, ...]) -> Array:
    """What the model gives rows of tokens, padded with what should not matter."""
    size = max(map(len, rows))
    ids = np.array([[*row, *[5] * (size - len(row))] for row in rows], np.int32)
    lengths = np.array([len(row) for row in rows], np.int32)
    device = bert.device
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


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("half", [np.float16, bfloat16])
def test_half_precision_gives_what_its_values_give(tmp_path: Path, device: str, half: Any) -> None:
    stored = {name: each.astype(half) for name, each in weights_of(FAMILY).items()}
    plain = {name: each.astype(np.float32) for name, each in stored.items()}
    bert = read(tmp_path, stored, device)
    found = vectors(bert, IDS)[0]
    assert {each.dtype.name for each in bert.parameters() if each.ndim == 2} == {np.dtype(half).name}
    np.testing.assert_allclose(found, vectors(read(tmp_path, plain), IDS)[0], rtol=0, atol=5e-5)


@pytest.mark.parametrize("form", ["Q8_0", "Q4_0", "Q4_1"])
def test_blocks_stay_packed_and_give_what_their_weights_give(tmp_path: Path, form: str) -> None:
    assert FAMILY.gguf is not None
    metadata, tensors = FAMILY.gguf(FAMILY.config, weights_of(FAMILY))
    packed: dict[str, Any] = {
        name: wg.quantise(wg.asarray(each), form) if each.ndim == 2 else each
        for name, each in tensors.items()
    }
    plain = {name: np.asarray(each) for name, each in packed.items()}
    found = []
    for number, values in enumerate((packed, plain)):
        wg.io.save(tmp_path / f"{number}.gguf", values, metadata)
        bert = load_encoder(tmp_path / f"{number}.gguf", "cpu")
        assert isinstance(bert.layers[0].qkv.weight, wg.QuantisedTensor) == (number == 0)
        found.append(vectors(bert, IDS[:30], IDS[5:]))
    np.testing.assert_allclose(found[0][0, :30], found[1][0, :30], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-4)


def test_padding_does_not_show(tmp_path: Path) -> None:
    bert = read(tmp_path, weights_of(FAMILY))
    together = vectors(bert, IDS[:3], IDS[5:30], IDS[7:17])
    for row, ids in zip(together, (IDS[:3], IDS[5:30], IDS[7:17]), strict=True):
        np.testing.assert_allclose(row[: len(ids)], vectors(bert, ids)[0], rtol=0, atol=1e-5)


def test_what_is_missing_or_of_another_shape_is_named(tmp_path: Path) -> None:
    weights = weights_of(FAMILY)
    lost = "encoder.layer.1.output.dense.bias"
    with pytest.raises(wg.ModelFileError, match=f"there is no {lost}"):
        read(tmp_path, {name: each for name, each in weights.items() if name != lost})
    with pytest.raises(
        wg.ModelFileError, match=r"word_embeddings.weight has the shape \(256, 64\).* \(300, 64\)"
    ):
        read(tmp_path, weights, vocab_size=300)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_act": "mish"}, "hidden_act='mish' is not offered"),
        ({"num_attention_heads": 5}, "64 is not shared by 5 heads"),
        ({"num_hidden_layers": None}, "num_hidden_layers is missing"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be an integer.* not True"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps is a positive number, not 'small'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
    ],
)
def test_settings_that_are_not_offered(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(wg.ModelFileError, match=message):
        settings_of_config({**FAMILY.config, **changes})
