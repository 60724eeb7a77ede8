"""What a model is, in numbers: read from Hugging Face's config.json or from a GGUF file's metadata.

In: a dict of either kind. Out: `Settings`, the same record for both. The invariant: every number that a model
is built of is checked here, once; what is missing, impossible or not offered is a `ModelFileError` that names
the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import webgrad as wg

from .gguf_keys import check_keys
from .reader import Reader, shown
from .rotary import Rotary, rotary_of_config, rotary_of_gguf

__all__ = ["Settings", "rows_of", "settings_of_config", "settings_of_gguf"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers of a decoder or an encoder: how wide, how deep, and what its layers do."""

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
    types: int = 0  # kinds of tokens that an encoder tells apart
    norm_offset: float = 0.0  # is added to a norm's stored weights
    logit_cap: float = 0.0  # what logits are bounded to: cap · tanh(logits / cap); 0: nothing
    stop_ids: tuple[int, ...] = field(default=())  # that end an answer, as far as the settings tell


# Hugging Face's config.json

_MOST_LAYERS = 4096  # of which every one has a row in the settings, before any weight is looked at
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


def settings_of_config(config: Mapping[str, Any], source: str = "config.json") -> Settings:
    """The settings of a model from a config.json."""
    told = Reader(config, source)
    kind = told.text("model_type", "")
    make = _CONFIGS.get(kind)
    if make is None:
        raise wg.ModelFileError(
            f"{source}: model_type {shown(kind)} is not offered; webgrad has {', '.join(sorted(_CONFIGS))}"
        )
    _check_is_plain(told)
    return make(told.with_defaults(_DEFAULTS.get(kind, {})))


def _check_is_plain(told: Reader) -> None:
    """Weights that another program packed have other names and shapes: the reason is the packing."""
    for key, name in (("quantization_config", "quant_method"), ("quantization", "mode")):  # the latter: MLX
        packed = told.get(key)
        if packed is None:
            continue
        kind = packed.get(name) if isinstance(packed, Mapping) else None
        by = shown(kind) if isinstance(kind, str) else "MLX" if key == "quantization" else "another program"
        raise wg.ModelFileError(
            f"{told.source}: {key} says that the weights are quantised by {by}, which webgrad does not read: "
            "get the model as it was published first, or as GGUF"
        )


# What files may leave out, where that is not Llama's. A null that is written down stays.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131_072},
    "qwen2": {"num_key_value_heads": 32, "sliding_window": 4096, "max_position_embeddings": 32_768},
    "qwen3": {
        "num_key_value_heads": 32,
        "head_dim": 128,
        "sliding_window": 4096,
        "max_position_embeddings": 32_768,
    },
}


def _config_llama(told: Reader) -> Settings:
    width, heads = told.whole("hidden_size"), told.whole("num_attention_heads")
    layers = told.whole("num_hidden_layers", most=_MOST_LAYERS)
    head_width = told.whole("head_dim") if "head_dim" in told else _divided(told, width, heads)
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
        activation=told.one_of("hidden_act", "silu", _ACTIVATIONS),
        tied=told.flag("tie_word_embeddings", False),
        rotary=rotary_of_config(told, head_width),
        windows=_windows(told, layers),
        query_scale=head_width**-0.5,
        stop_ids=_stop_ids(told),
    )


_GEMMA3 = {  # what its files may leave out
    "vocab_size": 262_208,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "tie_word_embeddings": True,
    "hidden_activation": "gelu_pytorch_tanh",
}


def _config_gemma3(told: Reader) -> Settings:
    inner = told.get("text_config")
    told = Reader(inner, told.source) if isinstance(inner, Mapping) else told
    told = told.with_defaults(_GEMMA3)
    told.refuse("attn_logit_softcapping")
    told.refuse("use_bidirectional_attention", False)
    plain = _config_llama(told)
    return replace(
        plain,
        architecture="gemma3",
        activation=told.one_of("hidden_activation", "", _ACTIVATIONS),
        rotary=rotary_of_config(told, plain.head_width, "full_attention", base=1e6),
        local_rotary=rotary_of_config(told, plain.head_width, "sliding_attention", base=1e4),
        windows=_windows(told, plain.layers, pattern=6),
        query_scale=told.number("query_pre_attn_scalar") ** -0.5,
        embedding_scale=math.sqrt(plain.width),
        logit_cap=told.cap("final_logit_softcapping"),
        norm_offset=1.0,
    )


def _config_gpt2(told: Reader) -> Settings:
    width, heads = told.whole("n_embd"), told.whole("n_head")
    layers = told.whole("n_layer", most=_MOST_LAYERS)
    told.refuse("scale_attn_weights", True)
    told.refuse("scale_attn_by_inverse_layer_idx", False)
    return Settings(
        architecture="gpt2",
        vocabulary=told.whole("vocab_size"),
        width=width,
        layers=layers,
        heads=heads,
        key_heads=heads,
        head_width=_divided(told, width, heads),
        hidden=told.whole("n_inner", default=4 * width),
        context=told.whole("n_positions", default=1024),
        epsilon=told.number("layer_norm_epsilon", default=1e-5),
        activation=told.one_of("activation_function", "gelu_new", _ACTIVATIONS),
        tied=told.flag("tie_word_embeddings", True),
        windows=(0,) * layers,
        query_scale=_divided(told, width, heads) ** -0.5,
        stop_ids=_stop_ids(told),
    )


def _config_bert(told: Reader) -> Settings:
    width, heads = told.whole("hidden_size"), told.whole("num_attention_heads")
    told.refuse("position_embedding_type", "absolute")
    return Settings(
        architecture="bert",
        vocabulary=told.whole("vocab_size"),
        width=width,
        layers=told.whole("num_hidden_layers", most=_MOST_LAYERS),
        heads=heads,
        key_heads=heads,
        head_width=_divided(told, width, heads),
        hidden=told.whole("intermediate_size"),
        context=told.whole("max_position_embeddings"),
        epsilon=told.number("layer_norm_eps", default=1e-12),
        activation=told.one_of("hidden_act", "gelu", _ACTIVATIONS),
        types=told.whole("type_vocab_size", default=2),
        query_scale=_divided(told, width, heads) ** -0.5,
    )


_CONFIGS: Mapping[str, Callable[[Reader], Settings]] = {
    "llama": _config_llama,
    "mistral": _config_llama,
    "qwen2": _config_llama,
    "qwen3": _config_llama,
    "gemma3": _config_gemma3,
    "gemma3_text": _config_gemma3,
    "gpt2": _config_gpt2,
    "bert": _config_bert,
}


def _windows(told: Reader, layers: int, pattern: int = 0) -> tuple[int, ...]:
    """How many positions each layer sees: by its kind, by every n-th, or all the same."""
    kinds = told.get("layer_types")
    width = told.whole("sliding_window") if "sliding_window" in told else 0
    is_qwen = told.text("model_type", "").startswith("qwen")
    if not told.flag("use_sliding_window", not is_qwen):
        return (0,) * layers
    if kinds is not None:
        seen = {"sliding_attention": width, "full_attention": 0}
        if (
            not isinstance(kinds, list)
            or len(kinds) != layers
            or not all(_is_in(each, seen) for each in kinds)
        ):
            raise told.error(
                "layer_types", f" is {', '.join(seen)} for each of {layers} layers, not {shown(kinds)}"
            )
        return tuple(seen[each] for each in kinds)
    pattern = told.whole("sliding_window_pattern", "_sliding_window_pattern", default=pattern or 1)
    if pattern > 1:
        return tuple(0 if number % pattern == pattern - 1 else width for number in range(layers))
    first = told.whole("max_window_layers", default=28, least=0) if is_qwen else 0
    return tuple(width if number >= first else 0 for number in range(layers))


def _is_in(name: Any, known: Mapping[str, int]) -> bool:
    return isinstance(name, str) and name in known


def _stop_ids(told: Reader) -> tuple[int, ...]:
    value = told.get("eos_token_id")
    ids = value if isinstance(value, list) else [value]
    return tuple(each for each in ids if isinstance(each, int) and not isinstance(each, bool))


def _divided(told: Reader, width: int, heads: int) -> int:
    if width % heads:
        raise wg.ModelFileError(f"{told.source}: a width of {width} is not shared by {heads} heads evenly")
    return width // heads


def _shared(told: Reader, heads: int, key_heads: int) -> int:
    if heads % key_heads:
        raise wg.ModelFileError(f"{told.source}: {heads} heads do not share {key_heads} heads of keys evenly")
    return key_heads


# GGUF

_GGUF = {
    "llama": "silu",
    "qwen2": "silu",
    "qwen3": "silu",
    "gemma3": "gelu_tanh",
    "gpt2": "gelu_tanh",
    "bert": "gelu",
}
_WITHOUT_ROTARY = ("gpt2", "bert")  # and with as many heads of keys, which share the width evenly


def rows_of(weights: wg.io.Weights) -> dict[str, int]:
    """How many rows a file's matrices have."""
    shapes = {name: weights.shape(name) for name in weights}
    return {name: shape[0] for name, shape in shapes.items() if len(shape) == 2}


def settings_of_gguf(
    metadata: Mapping[str, Any], rows: Mapping[str, int], source: str = "the file"
) -> Settings:
    """The settings of a model from a GGUF file's metadata, and from how many rows its matrices have.

    Of those these are looked at, where they are there: token_embd.weight, token_types.weight, output.weight.
    """
    whole = Reader(metadata, source)
    kind = whole.text("general.architecture", "")
    if kind not in _GGUF:
        raise wg.ModelFileError(
            f"{source}: general.architecture {shown(kind)} is not offered; webgrad has "
            f"{', '.join(sorted(_GGUF))}"
        )
    _check_is_model(whole)
    check_keys(metadata, kind, source)
    told = whole.under(f"{kind}.")
    width, layers = told.whole("embedding_length"), told.whole("block_count", most=_MOST_LAYERS)
    heads = told.whole("attention.head_count")
    key = "attention.key_length"
    if kind in _WITHOUT_ROTARY:
        told.refuse("attention.head_count_kv", heads)
        told.refuse(key, _divided(told, width, heads))
    head_width = told.whole(key) if key in told else _divided(told, width, heads)
    if told.whole("attention.value_length", default=head_width) != head_width:
        raise wg.ModelFileError(f"{source}: keys and values of different widths are not offered")
    if kind == "llama":  # whose rows of queries and keys are stored in an order that goes by whole heads
        told.refuse("rope.dimension_count", head_width)
    is_gemma = kind == "gemma3"
    return Settings(
        architecture=kind,
        vocabulary=told.whole("vocab_size", default=rows.get("token_embd.weight")),
        width=width,
        layers=layers,
        heads=heads,
        key_heads=_shared(told, heads, told.whole("attention.head_count_kv", default=heads)),
        head_width=head_width,
        hidden=told.whole("feed_forward_length"),
        context=told.whole("context_length"),
        epsilon=told.number(f"attention.layer_norm_{'' if kind in _WITHOUT_ROTARY else 'rms_'}epsilon"),
        activation=_GGUF[kind],
        tied="output.weight" not in rows,
        rotary=None
        if kind in _WITHOUT_ROTARY
        else rotary_of_gguf(told, head_width, base=None if is_gemma else 10000.0),  # no Gemma has that
        local_rotary=rotary_of_gguf(told, head_width, local=True) if is_gemma else None,
        windows=_gguf_windows(told, layers, pattern=6 if is_gemma else 0),
        query_scale=_gguf_query_width(told, kind, layers, head_width) ** -0.5,
        embedding_scale=math.sqrt(width) if is_gemma else 1.0,
        logit_cap=told.cap("final_logit_softcapping"),
        types=rows.get("token_types.weight", 0),
        norm_offset=0.0,  # GGUF stores Gemma's norms with the one added
    )


def _check_is_model(whole: Reader) -> None:
    """Files of another kind may name the architecture that they belong to."""
    kind = whole.text("general.type", "model")
    if kind != "model":
        raise wg.ModelFileError(
            f"{whole.source}: general.type is {shown(kind)}: this file belongs to a model and is none "
            "itself; load the model's own file"
        )


_GEMMA3_27B = 62  # layers, by which llama.cpp knows it: no key of GGUF has query_pre_attn_scalar


def _gguf_query_width(told: Reader, kind: str, layers: int, head_width: int) -> int:
    """By whose root queries are divided: a head's features, but for one Gemma."""
    if kind != "gemma3" or layers != _GEMMA3_27B:
        return head_width
    return _divided(told, told.whole("embedding_length"), told.whole("attention.head_count"))


def _gguf_windows(told: Reader, layers: int, pattern: int) -> tuple[int, ...]:
    """How many positions each layer sees: all but every n-th have the window, or those that a list says."""
    window = told.whole("attention.sliding_window", default=0, least=0)
    key = "attention.sliding_window_pattern"
    listed = told.get(key) if pattern else None
    if isinstance(listed, list):
        if len(listed) != layers or not all(isinstance(each, bool) for each in listed):
            raise told.error(key, f" is a number, or true or false for each of {layers} layers")
        return tuple(window if each else 0 for each in listed)
    pattern = told.whole(key, default=pattern) if pattern else layers + 1
    return tuple(0 if number % pattern == pattern - 1 else window for number in range(layers))
