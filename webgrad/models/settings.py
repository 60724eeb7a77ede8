"""What a language model is, in numbers: read from Hugging Face's config.json or from a GGUF file's metadata.

In: a dict of either kind. Out: `Settings`, the same record for both. The invariant: every number that a model
is built of is checked here, once; what is missing, impossible or not offered is a `ModelFileError` that names
the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import webgrad as wg

from .reader import Reader
from .rotary import Rotary, rotary_of_config, rotary_of_gguf

__all__ = ["Settings", "settings_of_config", "settings_of_gguf"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers of a decoder: how wide, how deep, and what its layers do."""

    architecture: str
    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    head_width: int
    hidden: int
    context: int
    epsilon: float
    activation: str = "silu"
    tied: bool = False
    rotary: Rotary | None = None
    local_rotary: Rotary | None = None  # of layers with a window, where these have their own
    windows: tuple[int, ...] = ()  # how many positions a layer sees; 0: all of them
    query_scale: float = 0.0
    embedding_scale: float = 1.0
    norm_offset: float = 0.0  # is added to a norm's stored weights
    stop_ids: tuple[int, ...] = field(default=())  # that end an answer, as far as the settings tell


# Hugging Face's config.json

_GATED = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
_GPT2_ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}


def settings_of_config(config: Mapping[str, Any], source: str = "config.json") -> Settings:
    """The settings of a decoder from a config.json."""
    told = Reader(config, source)
    kind = told.text("model_type", "")
    make = _CONFIGS.get(kind)
    if make is None:
        raise wg.ModelFileError(
            f"{source}: model_type {kind!r} is not offered; webgrad has {', '.join(sorted(_CONFIGS))}"
        )
    return make(told)


def _config_llama(told: Reader) -> Settings:
    width, heads = told.whole("hidden_size"), told.whole("num_attention_heads")
    layers = told.whole("num_hidden_layers")
    head_width = told.whole("head_dim", default=_divided(told, width, heads))
    told.refuse("mlp_bias", False)
    return Settings(
        architecture=told.text("model_type", ""),
        vocabulary=told.whole("vocab_size"),
        width=width,
        layers=layers,
        heads=heads,
        key_heads=_shared(told, heads, told.whole("num_key_value_heads", default=heads)),
        head_width=head_width,
        hidden=told.whole("intermediate_size"),
        context=told.whole("max_position_embeddings", default=2048),
        epsilon=told.number("rms_norm_eps", default=1e-6),
        activation=_one_of(told, "hidden_act", "silu", _GATED),
        tied=told.flag("tie_word_embeddings", False),
        rotary=rotary_of_config(told, head_width),
        windows=_windows(told, layers),
        query_scale=head_width**-0.5,
        stop_ids=_stop_ids(told),
    )


def _config_gemma3(told: Reader) -> Settings:
    inner = told.get("text_config")
    if isinstance(inner, Mapping):
        told = Reader({**inner, "model_type": "gemma3_text"}, told.source)
    told.refuse("final_logit_softcapping")
    told.refuse("attn_logit_softcapping")
    width, layers = told.whole("hidden_size"), told.whole("num_hidden_layers")
    heads, head_width = told.whole("num_attention_heads"), told.whole("head_dim", default=256)
    return Settings(
        architecture="gemma3",
        vocabulary=told.whole("vocab_size", default=262_208),
        width=width,
        layers=layers,
        heads=heads,
        key_heads=_shared(told, heads, told.whole("num_key_value_heads", default=heads)),
        head_width=head_width,
        hidden=told.whole("intermediate_size"),
        context=told.whole("max_position_embeddings", default=131_072),
        epsilon=told.number("rms_norm_eps", default=1e-6),
        activation=_one_of(told, "hidden_activation", "gelu_pytorch_tanh", _GATED),
        tied=told.flag("tie_word_embeddings", True),
        rotary=rotary_of_config(told, head_width, "full_attention", base=1e6),
        local_rotary=rotary_of_config(told, head_width, "sliding_attention", base=1e4),
        windows=_windows(told, layers, pattern=6),
        query_scale=told.number("query_pre_attn_scalar", default=256) ** -0.5,
        embedding_scale=math.sqrt(width),
        norm_offset=1.0,
        stop_ids=_stop_ids(told),
    )


def _config_gpt2(told: Reader) -> Settings:
    width, heads = told.whole("n_embd"), told.whole("n_head")
    told.refuse("scale_attn_weights", True)
    told.refuse("scale_attn_by_inverse_layer_idx", False)
    return Settings(
        architecture="gpt2",
        vocabulary=told.whole("vocab_size"),
        width=width,
        layers=told.whole("n_layer"),
        heads=heads,
        key_heads=heads,
        head_width=_divided(told, width, heads),
        hidden=told.whole("n_inner", default=4 * width),
        context=told.whole("n_positions", default=1024),
        epsilon=told.number("layer_norm_epsilon", default=1e-5),
        activation=_one_of(told, "activation_function", "gelu_new", _GPT2_ACTIVATIONS),
        tied=told.flag("tie_word_embeddings", True),
        windows=(0,) * told.whole("n_layer"),
        query_scale=_divided(told, width, heads) ** -0.5,
        stop_ids=_stop_ids(told),
    )


_CONFIGS: Mapping[str, Callable[[Reader], Settings]] = {
    "llama": _config_llama,
    "mistral": _config_llama,
    "qwen2": _config_llama,
    "qwen3": _config_llama,
    "gemma3": _config_gemma3,
    "gemma3_text": _config_gemma3,
    "gpt2": _config_gpt2,
}


def _windows(told: Reader, layers: int, pattern: int = 0) -> tuple[int, ...]:
    """How many positions each layer sees: by its kind, by every n-th, or all the same."""
    kinds = told.get("layer_types")
    width = told.whole("sliding_window") if "sliding_window" in told else 0
    if told.get("use_sliding_window") is False:
        return (0,) * layers
    if isinstance(kinds, list) and len(kinds) == layers:
        return tuple(width if each == "sliding_attention" else 0 for each in kinds)
    pattern = told.whole("sliding_window_pattern", "_sliding_window_pattern", default=pattern or 1)
    if pattern > 1:
        return tuple(0 if number % pattern == pattern - 1 else width for number in range(layers))
    first = told.whole("max_window_layers", default=0, least=0) if "use_sliding_window" in told else 0
    return tuple(width if number >= first else 0 for number in range(layers))


def _stop_ids(told: Reader) -> tuple[int, ...]:
    value = told.get("eos_token_id")
    ids = value if isinstance(value, list) else [value]
    return tuple(each for each in ids if isinstance(each, int) and not isinstance(each, bool))


def _one_of(told: Reader, key: str, default: str, known: Mapping[str, str]) -> str:
    name = told.text(key, default)
    if name not in known:
        raise wg.ModelFileError(
            f"{told.source}: {key}={name!r} is not offered; webgrad has {', '.join(known)}"
        )
    return known[name]


def _divided(told: Reader, width: int, heads: int) -> int:
    if width % heads:
        raise wg.ModelFileError(f"{told.source}: a width of {width} is not shared by {heads} heads evenly")
    return width // heads


def _shared(told: Reader, heads: int, key_heads: int) -> int:
    if heads % key_heads:
        raise wg.ModelFileError(f"{told.source}: {heads} heads do not share {key_heads} heads of keys evenly")
    return key_heads


# GGUF

_GGUF = {"llama": "silu", "qwen2": "silu", "qwen3": "silu", "gemma3": "gelu_tanh", "gpt2": "gelu_tanh"}


def settings_of_gguf(metadata: Mapping[str, Any], *, tied: bool, source: str = "the file") -> Settings:
    """The settings of a decoder from a GGUF file's metadata; `tied`: there is no matrix for the output."""
    kind = Reader(metadata, source).text("general.architecture", "")
    if kind not in _GGUF:
        raise wg.ModelFileError(
            f"{source}: general.architecture {kind!r} is not offered; webgrad has {', '.join(sorted(_GGUF))}"
        )
    prefix = f"{kind}."
    told = Reader(
        {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)},
        f"{source}: {prefix[:-1]}",
    )
    width, layers = told.whole("embedding_length"), told.whole("block_count")
    heads = told.whole("attention.head_count")
    head_width = told.whole("attention.key_length", default=_divided(told, width, heads))
    if told.whole("attention.value_length", default=head_width) != head_width:
        raise wg.ModelFileError(f"{source}: keys and values of different widths are not offered")
    tokens = metadata.get("tokenizer.ggml.tokens")
    is_gemma = kind == "gemma3"
    window = told.whole("attention.sliding_window", default=0, least=0)
    pattern = told.whole("attention.sliding_window_pattern", default=6) if is_gemma else layers + 1
    return Settings(
        architecture=kind,
        vocabulary=told.whole("vocab_size", default=len(tokens) if tokens is not None else None),
        width=width,
        layers=layers,
        heads=heads,
        key_heads=_shared(told, heads, told.whole("attention.head_count_kv", default=heads)),
        head_width=head_width,
        hidden=told.whole("feed_forward_length"),
        context=told.whole("context_length"),
        epsilon=told.number("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"),
        activation=_GGUF[kind],
        tied=tied,
        rotary=None if kind == "gpt2" else rotary_of_gguf(told, head_width),
        local_rotary=rotary_of_gguf(told, head_width, local=True) if is_gemma else None,
        windows=tuple(0 if number % pattern == pattern - 1 else window for number in range(layers)),
        query_scale=head_width**-0.5,
        embedding_scale=math.sqrt(width) if is_gemma else 1.0,
        norm_offset=0.0,  # GGUF stores Gemma's norms with the one added
    )
