"""Every key of an architecture's is obeyed, without effect, or refused by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts import random_models
from scripts.random_models import FAMILIES, IDS, weights_of
from tests.selection import first
from webgrad.models.gguf_keys import ARCHITECTURES, NO_EFFECT, USED, check_keys, rule_of
from webgrad.models.settings import settings_of_gguf

FAMILY = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3": "gemma3-six"}
FAMILY |= {"gpt2": "gpt2", "bert": "bert"}


def contents(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    family = FAMILIES[FAMILY.get(name, name)]
    assert family.gguf is not None
    return family.gguf(family.config, weights_of(family))


def logits_of(tmp_path: Path, metadata: dict[str, Any], tensors: dict[str, Any]) -> Any:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.gguf"
    wg.io.save(path, tensors, metadata)
    model = wg.models.load(path, device="cpu")
    assert isinstance(model, wg.models.LanguageModel)
    return model.logits(list(IDS)).numpy()


def published_keys() -> list[str]:
    """The keys that the package gguf knows, without the architecture's name."""
    constants = pytest.importorskip("gguf.constants")
    groups = ("LLM", "Attention", "Rope", "SSM", "WKV", "Classifier", "ShortConv")
    keys = [each for name in groups for each in vars(getattr(constants.Keys, name)).values()]
    return sorted({k.removeprefix("{arch}.") for k in keys if isinstance(k, str) and k.startswith("{arch}.")})


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_published_key_is_passed_over(architecture: str) -> None:
    """What is neither used nor known to be without effect is refused by its name and value."""
    refused = 0
    for key in published_keys():
        if rule_of(architecture, key) in (USED, NO_EFFECT):
            continue
        with pytest.raises(wg.ModelFileError, match=rf"a file: .*{architecture}\.{key}=3\.5 "):
            check_keys({f"{architecture}.{key}": 3.5}, architecture, "a file")
        refused += 1
    assert refused > 40


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_values_that_change_nothing_are_taken(architecture: str) -> None:
    metadata, _ = contents(architecture)
    plain = settings_of_gguf(metadata, {"token_embd.weight": 256})
    for key, rule in ARCHITECTURES[architecture].items():
        for value in rule if isinstance(rule, tuple) else ():
            changed = {**metadata, f"{architecture}.{key}": value}
            assert settings_of_gguf(changed, {"token_embd.weight": 256}) == plain, (key, value)


@pytest.mark.parametrize(
    ("architecture", "key", "value", "told"),
    [
        ("llama", "expert_count", 8, "llama.expert_count=8 .*mixtures of experts"),
        ("llama", "logit_scale", 0.25, "llama.logit_scale=0.25 is not offered by webgrad"),
        ("llama", "attention.scale", 0.1, "llama.attention.scale=0.1 "),
        ("llama", "rope.scaling.type", "yarn", "llama.rope.scaling.type='yarn' is not offered"),
        ("llama", "rope.scaling.attn_factor", 1.2, "llama.rope.scaling.attn_factor=1.2 "),
        ("llama", "rope.dimension_count", 8, "llama.rope.dimension_count=8 "),
        ("llama", "attention.causal", False, "llama.attention.causal=False "),
        ("llama", "brand_new", 0, r"what llama.brand_new=0 means is not known\..*--remove-metadata"),
        ("qwen2", "attention.sliding_window", 8, "qwen2.attention.sliding_window=8 "),
        ("qwen3", "pooling_type", 4, "qwen3.pooling_type=4 "),
        ("gemma3", "attn_logit_softcapping", 50.0, "gemma3.attn_logit_softcapping=50.0 "),
        ("gemma3", "rope.freq_base", None, "gemma3.rope.freq_base is missing"),
        ("gemma3", "attention.sliding_window_pattern", [True], "for each of 6 layers"),
        ("gpt2", "attention.max_alibi_bias", 8.0, "gpt2.attention.max_alibi_bias=8.0 "),
        ("bert", "attention.causal", True, "bert.attention.causal=True "),
    ],
)
def test_keys_that_are_refused(architecture: str, key: str, value: Any, told: str) -> None:
    metadata, _ = contents(architecture)
    with pytest.raises(wg.ModelFileError, match=told):
        settings_of_gguf({**metadata, f"{architecture}.{key}": value}, {"token_embd.weight": 256})


def test_a_file_that_is_no_model_itself() -> None:
    metadata, _ = contents("llama")
    with pytest.raises(wg.ModelFileError, match=r"general\.type is 'adapter': this file belongs to a model"):
        settings_of_gguf({**metadata, "general.type": "adapter"}, {})


def test_logits_are_bounded_where_a_file_says_so(tmp_path: Path) -> None:
    metadata, tensors = contents("gemma3")
    plain = logits_of(tmp_path, metadata, tensors)
    capped = logits_of(tmp_path, {**metadata, "gemma3.final_logit_softcapping": 2.0}, tensors)
    assert np.abs(plain).max() > 2
    np.testing.assert_allclose(capped, 2 * np.tanh(plain / 2), atol=1e-5)


@pytest.mark.usefixtures("compiled_at_once")
@pytest.mark.parametrize("key", ["rope.scaling.factor", "rope.scale_linear"])
def test_a_factor_without_a_kind_is_linear(tmp_path: Path, key: str) -> None:
    metadata, tensors = contents("llama")
    plain = logits_of(tmp_path, metadata, tensors)
    named = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    linear = logits_of(tmp_path, {**metadata, **named}, tensors)
    assert np.abs(linear - plain).max() > 1e-3
    np.testing.assert_array_equal(logits_of(tmp_path, {**metadata, f"llama.{key}": 4.0}, tensors), linear)
    off = {f"llama.{key}": 4.0, "llama.rope.scaling.type": "none"}
    np.testing.assert_array_equal(logits_of(tmp_path, {**metadata, **off}, tensors), plain)


@pytest.mark.usefixtures("compiled_at_once")
def test_windows_as_a_list(tmp_path: Path) -> None:
    metadata, tensors = contents("gemma3")
    listed = {"gemma3.attention.sliding_window_pattern": [True] * 5 + [False]}
    np.testing.assert_array_equal(
        logits_of(tmp_path, {**metadata, **listed}, tensors), logits_of(tmp_path, metadata, tensors)
    )


@pytest.mark.parametrize("compares", first(1, ["settings", "logits"]))
def test_gemma_3_27b_divides_queries_by_its_width_over_its_heads(tmp_path: Path, compares: str) -> None:
    """GGUF has no key for query_pre_attn_scalar; llama.cpp knows the model by its 62 layers."""
    family = random_models._gemma3(num_hidden_layers=62, hidden_size=192, query_pre_attn_scalar=48)
    random_models.write_folder(family, tmp_path / "folder")
    random_models.write_gguf(family, tmp_path / "one.gguf")
    both = [wg.models.load(tmp_path / name, device="cpu") for name in ("folder", "one.gguf")]
    folder, file = (each for each in both if isinstance(each, wg.models.LanguageModel))
    assert folder.settings.query_scale == file.settings.query_scale == 48**-0.5
    if compares == "logits":
        wanted = folder.logits(list(IDS)).numpy()
        np.testing.assert_allclose(file.logits(list(IDS)).numpy(), wanted, atol=1e-4)


def test_a_tensor_that_nothing_computes_with_is_refused(tmp_path: Path) -> None:
    metadata, tensors = contents("llama")
    tensors = {**tensors, "blk.1.attn_sinks.weight": np.ones(4, np.float32)}
    with pytest.raises(wg.ModelFileError, match=r"'blk\.1\.attn_sinks\.weight' is none of the tensors"):
        logits_of(tmp_path, metadata, tensors)
