"""The Llama family against a decoder written in NumPy alone: whole texts, chunks, and token by token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.models.language import LanguageModel
from webgrad.models.llama import Llama
from webgrad.models.published_weights import Published
from webgrad.models.settings import settings_of_config

from .tiny import CONFIG, expected_logits, weights_of, write_folder

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
IDS = [5, 17, 3, 90, 41, 41, 8, 60, 11, 2, 77, 30]
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tied": {"tie_word_embeddings": True},
    "window": {"model_type": "mistral", "sliding_window": 4},
    "wide heads": {"head_dim": 32},
    "no sharing": {"num_key_value_heads": 4},
}


def model_of(folder: Path, config: dict[str, Any], device: str, context: int | None = None) -> LanguageModel:
    """The model of a folder, without a tokenizer."""
    settings = settings_of_config(config)
    where = wg.zeros(1, device=device).device
    with wg.no_grad(), wg.io.open(folder) as weights:
        return LanguageModel(Llama(settings, Published(weights, settings, where)), None, context, where)


def made(tmp_path: Path, device: str, **changes: Any) -> tuple[LanguageModel, dict[str, Any], dict[str, Any]]:
    """A small model, its config and its weights."""
    config = {**CONFIG, **changes}
    weights = weights_of(config)
    return model_of(write_folder(tmp_path, config, weights), config, device), config, weights


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_numpy(tmp_path: Path, device: str, variant: str) -> None:
    model, config, weights = made(tmp_path, device, **VARIANTS[variant])
    expected = expected_logits(config, weights, IDS)
    np.testing.assert_allclose(model.logits(IDS).numpy(), expected, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_every_step_takes_the_likeliest_token(tmp_path: Path, device: str) -> None:
    model, config, weights = made(tmp_path, device)
    model.stop_ids = frozenset()
    text = list(IDS)
    for token in model.generate_ids(IDS, max_tokens=12, temperature=0):
        logits = expected_logits(config, weights, text)[-1]
        assert logits[token] >= logits.max() - 1e-4
        text.append(token)
    assert len(text) == len(IDS) + 12


@pytest.mark.parametrize("count", [1, 2, 8, 9, 40, 150])
def test_a_prompt_of_any_length_goes_on_as_the_whole_text_would(tmp_path: Path, count: int) -> None:
    model, config, weights = made(tmp_path, "cpu")
    ids = [int(each) for each in np.random.default_rng(count).integers(3, 96, count)]
    (token,) = model.generate_ids(ids, max_tokens=1, temperature=0)
    logits = expected_logits(config, weights, ids)[-1]
    assert logits[token] >= logits.max() - 1e-4


def test_texts_that_take_turns_do_not_disturb_each_other(tmp_path: Path) -> None:
    model, _, _ = made(tmp_path, "cpu")
    model.stop_ids = frozenset()
    other = [9, 9, 1, 50]
    alone = [list(model.generate_ids(each, max_tokens=6, temperature=0)) for each in (IDS, other)]
    first, second = (model.generate_ids(each, max_tokens=6, temperature=0) for each in (IDS, other))
    turns = [(next(first), next(second)) for _ in range(6)]
    assert [list(each) for each in zip(*turns, strict=True)] == alone


def test_what_two_texts_begin_with_is_read_once(tmp_path: Path) -> None:
    model, _, _ = made(tmp_path, "cpu")
    list(model.generate_ids(IDS, max_tokens=1, temperature=0))
    assert model._decoding.held == IDS
    assert model._decoding.read([*IDS[:7], 4, 4]) == 7
    assert model._decoding.held == [*IDS[:7], 4, 4]


def test_a_context_that_is_full_ends_the_text(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, CONFIG, weights_of(CONFIG))
    model = model_of(folder, CONFIG, "cpu", context=16)
    model.stop_ids = frozenset()
    assert len(list(model.generate_ids(IDS, max_tokens=50, temperature=0))) == 5  # the last one has no place
    with pytest.raises(wg.ArgumentError, match=r"17 tokens does not fit the context of 16.*context=34"):
        model.generate_ids([1] * 17)


def test_a_cache_grows_with_the_text(tmp_path: Path) -> None:
    model, config, weights = made(tmp_path, "cpu", max_position_embeddings=4096)
    first = list(model.generate_ids(IDS, max_tokens=2, temperature=0))
    text = [*IDS, *first, *[int(each) for each in np.random.default_rng(1).integers(3, 96, 700)]]
    (token,) = model.generate_ids(text, max_tokens=1, temperature=0)
    logits = expected_logits(config, weights, text)[-1]
    assert logits[token] >= logits.max() - 1e-4


@pytest.mark.parametrize(
    ("ids", "error", "told"),
    [
        ([], wg.ArgumentError, "one id at least"),
        ([96], wg.ArgumentError, "the id 96 is none of this model's, which are 0 to 95"),
        ([-1], wg.ArgumentError, "the id -1"),
        (["a"], wg.DTypeError, "integers"),
        ("text", wg.DTypeError, "integers"),
        (3, wg.DTypeError, "integers"),
    ],
)
def test_ids_that_are_none(tmp_path: Path, ids: Any, error: type[Exception], told: str) -> None:
    model, _, _ = made(tmp_path, "cpu")
    with pytest.raises(error, match=told):
        model.logits(ids)


def test_all_weights_are_parameters_of_the_decoder(tmp_path: Path) -> None:
    model, _, weights = made(tmp_path, "cpu")
    decoder: Any = model.decoder
    assert sum(each.size for each in decoder.parameters()) == sum(each.size for each in weights.values())
    assert "layers.1.self_attn.qkv.weight" in decoder.state_dict()
    assert not any(each.requires_grad for each in decoder.parameters())


def test_weights_that_do_not_fit_the_settings(tmp_path: Path) -> None:
    weights = weights_of(CONFIG)
    name = "model.layers.1.mlp.up_proj.weight"
    lacking = {key: value for key, value in weights.items() if key != name}
    with pytest.raises(wg.ModelFileError, match=r"there is no model\.layers\.1\.mlp\.up_proj\.weight"):
        model_of(write_folder(tmp_path / "a", CONFIG, lacking), CONFIG, "cpu")
    short = {**weights, name: weights[name][1:]}
    with pytest.raises(wg.ModelFileError, match=r"up_proj\.weight has the shape \(95, 64\).*\(96, 64\)"):
        model_of(write_folder(tmp_path / "b", CONFIG, short), CONFIG, "cpu")
