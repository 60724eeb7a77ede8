"""Settings from config.json and from GGUF's metadata: the same record, and errors that name the key."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import webgrad as wg
from scripts.random_models import FAMILIES
from webgrad.models.rotary import Rotary, frequencies, tables
from webgrad.models.settings import Settings, settings_of_config, settings_of_gguf

from .tiny import CONFIG

GGUF: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.vocab_size": 96,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 256,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
}


NESTED: Any = 1
for _ in range(900):
    NESTED = [NESTED]
VALUES = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    st.sampled_from([0, 1, 3, 15, 1 << 24, 1 << 62, 10**400, 1e-300, 1e300, math.nan, math.inf, "llama"]),
    st.sampled_from([NESTED, [], {}, ["sliding_attention"] * 2, {"rope_type": "llama3"}, np.arange(5)]),
    st.dictionaries(
        st.sampled_from(["rope_type", "rope_theta", "factor", "full_attention", "high_freq_factor"]),
        st.integers() | st.floats() | st.text(max_size=9) | st.lists(st.integers(), max_size=2),
    ),
)
UNUSUAL = (
    *("rope_scaling", "rope_parameters", "head_dim", "layer_types", "sliding_window", "use_sliding_window"),
    *("sliding_window_pattern", "max_window_layers", "partial_rotary_factor", "text_config", "mlp_bias"),
    *("query_pre_attn_scalar", "hidden_activation", "n_inner", "type_vocab_size", "eos_token_id"),
    *("quantization_config", "quantization", "final_logit_softcapping"),
)
UNUSUAL_OF_GGUF = (
    *("rope.dimension_count", "rope.scaling.type", "rope.scaling.factor", "attention.key_length"),
    *("attention.value_length", "attention.sliding_window", "attention.sliding_window_pattern"),
    *("rope.scale_linear", "final_logit_softcapping", "expert_count", "attention.causal", "unheard_of"),
)
CONFIGS = [dict(family.config) for family in FAMILIES.values()]


def check_told(read: Callable[[], Settings]) -> None:
    """Settings, or an error that names the file and is short."""
    told = "a file: "
    try:
        read()
    except wg.ModelFileError as error:
        told = str(error)
    assert told.startswith("a file: ")
    assert len(told) < 300


@given(data=st.data())
def test_any_config_gives_settings_or_a_clear_error(data: st.DataObject) -> None:
    config = data.draw(st.sampled_from(CONFIGS))
    changes = data.draw(st.dictionaries(st.sampled_from([*config, *UNUSUAL]), VALUES, max_size=3))
    check_told(lambda: settings_of_config({**config, **changes}, "a file"))


@given(data=st.data())
def test_any_metadata_give_settings_or_a_clear_error(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["llama", "qwen2", "gemma3", "gpt2", "bert"]))
    given = {key.replace("llama.", f"{kind}."): each for key, each in GGUF.items()}
    keys = [*given, *(f"{kind}.{each}" for each in UNUSUAL_OF_GGUF)]
    changes = data.draw(st.dictionaries(st.sampled_from(keys), VALUES, max_size=3))
    metadata = {**given, "general.architecture": kind, **changes}
    check_told(lambda: settings_of_gguf(metadata, {"token_embd.weight": 96}, "a file"))


def test_both_kinds_of_file_tell_the_same() -> None:
    config = {key: value for key, value in CONFIG.items() if key != "eos_token_id"}
    assert settings_of_config(config) == settings_of_gguf(GGUF, {"output.weight": 96})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "mamba"}, "model_type 'mamba' is not offered; webgrad has bert, gemma3, .*llama"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": -4}, "hidden_size must be an integer from 1"),
        ({"hidden_size": 1 << 60}, "hidden_size must be an integer"),
        ({"hidden_size": "64"}, "hidden_size must be an integer .* not '64'"),
        ({"num_attention_heads": 7}, "64 is not shared by 7 heads"),
        ({"num_key_value_heads": 3}, "4 heads do not share 3 heads of keys"),
        ({"rms_norm_eps": 0}, "rms_norm_eps is a positive number"),
        ({"rope_theta": math.inf}, "rope_theta is a positive number"),
        ({"hidden_act": "mish"}, "hidden_act='mish' is not offered"),
        ({"mlp_bias": True}, "mlp_bias=True is not offered"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is true or false"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "scaled by 'longrope' are not offered"),
        (
            {"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 4.0}},
            "low_freq_factor=4.0 is not below",
        ),
        ({"rope_theta": 10**400}, "rope_theta is a positive number"),
        ({"partial_rotary_factor": 1e9}, "of a head's 16 features cannot turn"),
        ({"head_dim": 15}, "15 of a head's 15 features cannot turn"),
        ({"num_hidden_layers": 1 << 24}, "num_hidden_layers must be an integer from 1 to 4,096"),
        ({"hidden_size": NESTED}, r"hidden_size must be an integer .* not \[\["),
        ({"layer_types": ["sliding_attention"]}, "layer_types is sliding_attention, full_attention for each"),
        ({"layer_types": ["chunked_attention"] * 2}, "layer_types is .* not .'chunked_attention'"),
        ({"layer_types": [[], {}]}, "layer_types is"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantised by 'awq', which webgrad does not read"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "quantised by 'MLX', which webgrad does not read"),
        ({"quantization": 4}, "quantised by 'MLX'"),
        ({"model_type": "mixtral"}, "model_type 'mixtral' is not offered"),
        ({"model_type": "gemma3_text", "attn_logit_softcapping": 5.0}, "attn_logit_softcapping=5.0 is not"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(wg.ModelFileError, match=told):
        settings_of_config({**CONFIG, **changes})


def test_metadata_that_cannot_be() -> None:
    with pytest.raises(wg.ModelFileError, match="'rwkv' is not offered"):
        settings_of_gguf({"general.architecture": "rwkv"}, {})
    bert = {key.replace("llama", "bert"): each for key, each in GGUF.items() if "_kv" not in key}
    with pytest.raises(wg.ModelFileError, match=r"bert\.attention\.key_length=3 is not offered"):
        settings_of_gguf({**bert, "general.architecture": "bert", "bert.attention.key_length": 3}, {})
    with pytest.raises(wg.ModelFileError, match=r"the file: llama\.block_count is missing"):
        settings_of_gguf({**GGUF, "llama.block_count": None}, {})


def test_what_a_config_leaves_out_is_as_transformers_has_it() -> None:
    def told(kind: str, **changes: Any) -> Settings:
        given = {key: each for key, each in CONFIG.items() if key != "num_key_value_heads"}
        wide = {"hidden_size": 512, "num_attention_heads": 32}
        return settings_of_config({**given, **wide, "model_type": kind, **changes})

    assert told("mistral").windows == (4096, 4096)
    assert told("mistral", sliding_window=None).windows == (0, 0)
    assert (told("llama").key_heads, told("mistral").key_heads, told("qwen2").key_heads) == (32, 8, 32)
    assert (told("llama").head_width, told("qwen3").head_width) == (16, 128)


def test_gemmas_logits_are_bounded_where_its_config_says_so() -> None:
    def cap(**changes: Any) -> float:
        return settings_of_config({**CONFIG, "model_type": "gemma3_text", **changes}).logit_cap

    assert cap() == cap(final_logit_softcapping=None) == 0
    assert cap(final_logit_softcapping=30.0) == 30
    with pytest.raises(wg.ModelFileError, match="final_logit_softcapping is a positive number"):
        cap(final_logit_softcapping=-1)


def test_windows_by_the_kinds_of_layers() -> None:
    def windows(**changes: Any) -> tuple[int, ...]:
        return settings_of_config({**CONFIG, "num_hidden_layers": 4, **changes}).windows

    kinds = ["sliding_attention", "full_attention"] * 2
    assert windows() == (0, 0, 0, 0)
    assert windows(model_type="mistral", sliding_window=8) == (8, 8, 8, 8)
    assert windows(model_type="qwen2", use_sliding_window=False, sliding_window=8) == (0, 0, 0, 0)
    assert windows(model_type="qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=3) == (
        0,
        0,
        0,
        8,
    )
    assert windows(model_type="qwen3", sliding_window=8) == (0, 0, 0, 0)  # its own settings start with no
    assert windows(layer_types=kinds, sliding_window=8) == (8, 0, 8, 0)
    gemma = {"model_type": "gemma3_text", "sliding_window": 8, "sliding_window_pattern": 3}
    assert windows(**gemma) == (8, 8, 0, 8)


def test_rotary_scalings() -> None:
    plain = frequencies(Rotary(10000.0, 8))
    np.testing.assert_allclose(plain, [1, 0.1, 0.01, 0.001], rtol=1e-6)
    np.testing.assert_allclose(frequencies(Rotary(10000.0, 8, "linear", 4.0)), plain / 4, rtol=1e-6)
    scaled = frequencies(Rotary(10000.0, 8, "llama3", 8.0, 1.0, 4.0, 1000))
    turns = 1000 * plain / (2 * math.pi)  # 159, 15.9, 1.59 and 0.159 over the old context
    share = (turns[2] - 1) / 3
    np.testing.assert_allclose(scaled, [1, 0.1, 0.01 * (share + (1 - share) / 8), 0.001 / 8], rtol=1e-6)
    np.testing.assert_allclose(
        frequencies(Rotary(10000.0, 8), np.array([1, 2, 4, 8], np.float32)), plain / [1, 2, 4, 8], rtol=1e-6
    )
    with pytest.raises(wg.ModelFileError, match="3 factors for 4 pairs"):
        frequencies(Rotary(10000.0, 8), np.ones(3, np.float32))
    with pytest.raises(wg.ModelFileError, match="factors that are not positive numbers"):
        frequencies(Rotary(10000.0, 8), np.array([1, 0, 1, math.nan], np.float32))


def test_tables_have_a_row_for_each_position() -> None:
    cos, sin = tables(Rotary(10000.0, 4), 3)
    np.testing.assert_allclose(cos[2], [math.cos(2), math.cos(0.02)], rtol=1e-6)
    np.testing.assert_allclose(sin[1], [math.sin(1), math.sin(0.01)], rtol=1e-6)
