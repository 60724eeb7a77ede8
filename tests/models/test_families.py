"""Random models of every family: the logits of transformers, which scripts/family_logits.py stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.family_logits import FIXTURE, sample
from scripts.random_models import FAMILIES, IDS, weights_of, write_folder, write_gguf
from webgrad.models.embedding import load_encoder
from webgrad.models.language import LanguageModel

STORED = json.loads(FIXTURE.read_text(encoding="utf-8"))
DECODERS = [name for name in FAMILIES if name != "bert"]


def check(name: str, path: Path, device: str) -> None:
    model: Any = wg.models.load(str(path), device=device)
    assert isinstance(model, LanguageModel)
    np.testing.assert_allclose(sample(model.logits(IDS).numpy()), STORED[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", DECODERS)
def test_from_safetensors(tmp_path: Path, name: str) -> None:
    write_folder(FAMILIES[name], tmp_path)
    check(name, tmp_path, "cpu")


@pytest.mark.parametrize("name", [name for name in DECODERS if FAMILIES[name].gguf is not None])
def test_from_gguf(tmp_path: Path, name: str) -> None:
    write_gguf(FAMILIES[name], tmp_path / "model.gguf")
    check(name, tmp_path / "model.gguf", "cpu")


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt2"])
def test_from_quantised_gguf(tmp_path: Path, name: str) -> None:
    """Blocks give what their weights give."""
    build, config = FAMILIES[name].gguf, FAMILIES[name].config
    assert build is not None
    metadata, tensors = build(config, weights_of(FAMILIES[name]))
    packed: dict[str, Any] = {
        key: wg.quantise(wg.asarray(each), "Q8_0") if each.ndim == 2 else each
        for key, each in tensors.items()
    }
    plain: dict[str, Any] = {
        key: each if isinstance(each, np.ndarray) else each.dequantise() for key, each in packed.items()
    }
    found = []
    for number, values in enumerate((packed, plain)):
        wg.io.save(tmp_path / f"{number}.gguf", values, metadata)
        model: Any = wg.models.load(str(tmp_path / f"{number}.gguf"), device="cpu")
        found.append(model.logits(IDS).numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["gemma3", "gpt2"])
def test_on_a_gpu(tmp_path: Path, name: str) -> None:
    write_folder(FAMILIES[name], tmp_path)
    check(name, tmp_path, "webgpu:0")


def test_bert_from_gguf(tmp_path: Path) -> None:
    write_gguf(FAMILIES["bert"], tmp_path / "model.gguf")
    bert = load_encoder(tmp_path / "model.gguf", "cpu")
    found = bert(wg.asarray([IDS]), wg.asarray([len(IDS)])).numpy()[0]
    np.testing.assert_allclose(sample(found), STORED["bert"], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("qwen2", "model.layers.1.self_attn.k_proj.bias"),
        ("qwen3", "model.layers.1.self_attn.q_norm.weight"),
        ("gemma3", "model.layers.0.pre_feedforward_layernorm.weight"),
        ("gpt2", "transformer.h.0.mlp.c_fc.bias"),
        ("bert", "encoder.layer.0.attention.self.query.bias"),
    ],
)
def test_what_a_family_has_must_be_there(tmp_path: Path, name: str, lost: str) -> None:
    weights = {key: each for key, each in weights_of(FAMILIES[name]).items() if key != lost}
    write_folder(FAMILIES[name], tmp_path)
    wg.io.save(tmp_path / "model.safetensors", weights)
    with pytest.raises(wg.ModelFileError, match=f"there is no {lost}"):
        wg.models.load(tmp_path, device="cpu")
