"""Small models with random weights, one of each family: `python -m scripts.random_models FOLDER [FAMILY …]`.

In: the settings below. Out: for each family a folder as Hugging Face publishes models (config.json,
model.safetensors) and beside it the same as FAMILY.gguf, named, permuted and shifted as llama.cpp's
converters do. The numbers depend on a tensor's name only, and not on any package's version, so that stored
logits stay true.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from scripts.system import say

__all__ = [
    "DECODER_NAMES",
    "FAMILIES",
    "IDS",
    "Family",
    "gguf_name",
    "interleaved",
    "weights_of",
    "write_folder",
    "write_gguf",
]

Array = np.ndarray[Any, Any]
Shapes = dict[str, tuple[int, ...]]
# A text of 40 tokens, longer than every window below.
IDS = tuple((7 * number * number + 3 * number + 11) % 253 + 3 for number in range(40))

SMALL: Mapping[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "attention_bias": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
SCALED = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


@dataclass(frozen=True, slots=True)
class Family:
    """A family's config.json, the shapes of its weights, and how it lies in a GGUF file."""

    config: Mapping[str, Any]
    shapes: Callable[[Mapping[str, Any]], Shapes]
    gguf: Callable[[Mapping[str, Any], Mapping[str, Array]], tuple[dict[str, Any], dict[str, Array]]] | None
    scales: Mapping[str, float] = field(default_factory=dict)  # of weights whose names end so


# Weights


def _decoder_shapes(config: Mapping[str, Any]) -> Shapes:
    """Llama and its relatives."""
    wide, inner = config["hidden_size"], config["intermediate_size"]
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    head, kind = config.get("head_dim", wide // heads), config["model_type"]
    shapes: Shapes = {"model.embed_tokens.weight": (config["vocab_size"], wide), "model.norm.weight": (wide,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], wide)
    rows = {"q_proj": heads * head, "k_proj": groups * head, "v_proj": groups * head}
    norms = ["input_layernorm", "post_attention_layernorm"]
    if kind == "gemma3_text":
        norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    for number in range(config["num_hidden_layers"]):
        start = f"model.layers.{number}."
        for name, count in rows.items():
            shapes[f"{start}self_attn.{name}.weight"] = (count, wide)
            if kind == "qwen2":
                shapes[f"{start}self_attn.{name}.bias"] = (count,)
        shapes[f"{start}self_attn.o_proj.weight"] = (wide, heads * head)
        if kind in ("qwen3", "gemma3_text"):
            shapes |= {f"{start}self_attn.{name}_norm.weight": (head,) for name in "qk"}
        shapes |= {f"{start}mlp.{name}_proj.weight": (inner, wide) for name in ("gate", "up")}
        shapes[f"{start}mlp.down_proj.weight"] = (wide, inner)
        shapes |= {f"{start}{name}.weight": (wide,) for name in norms}
    return shapes


def _gpt2_shapes(config: Mapping[str, Any]) -> Shapes:
    """GPT-2, whose matrices lie the other way round: (inputs, outputs)."""
    wide, inner = config["n_embd"], 4 * config["n_embd"]
    shapes: Shapes = {
        "transformer.wte.weight": (config["vocab_size"], wide),
        "transformer.wpe.weight": (config["n_positions"], wide),
        **_pair("transformer.ln_f", wide),
    }
    for number in range(config["n_layer"]):
        start = f"transformer.h.{number}."
        for name in ("ln_1", "ln_2"):
            shapes |= _pair(start + name, wide)
        for name, rows, columns in (
            ("attn.c_attn", wide, 3 * wide),
            ("attn.c_proj", wide, wide),
            ("mlp.c_fc", wide, inner),
            ("mlp.c_proj", inner, wide),
        ):
            shapes |= {f"{start}{name}.weight": (rows, columns), f"{start}{name}.bias": (columns,)}
    return shapes


def _bert_shapes(config: Mapping[str, Any]) -> Shapes:
    wide, inner = config["hidden_size"], config["intermediate_size"]
    shapes: Shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], wide),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], wide),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], wide),
        **_pair("embeddings.LayerNorm", wide),
    }
    for number in range(config["num_hidden_layers"]):
        start = f"encoder.layer.{number}."
        for name in ("query", "key", "value"):
            shapes |= _pair(f"{start}attention.self.{name}", wide, wide)
        shapes |= _pair(f"{start}attention.output.dense", wide, wide)
        shapes |= _pair(f"{start}attention.output.LayerNorm", wide)
        shapes |= _pair(f"{start}intermediate.dense", inner, wide)
        shapes |= _pair(f"{start}output.dense", wide, inner)
        shapes |= _pair(f"{start}output.LayerNorm", wide)
    return shapes


def _pair(stem: str, rows: int, *columns: int) -> Shapes:
    return {f"{stem}.weight": (rows, *columns), f"{stem}.bias": (rows,)}


def _uniform(name: str, shape: Sequence[int]) -> Array:
    """Numbers from -1 to 1 by a tensor's name: raw words, which NumPy keeps from version to version."""
    words = np.random.Philox(key=zlib.crc32(name.encode())).random_raw(math.prod(shape))
    return ((words >> np.uint64(40)).astype(np.float64) / 2**23 - 1).reshape(tuple(shape))


def _drawn(family: Family, name: str, shape: Sequence[int]) -> Array:
    """A tensor of about the size that training gives it: matrices keep variances, norms are near one."""
    values = _uniform(name, shape)
    if len(shape) == 2:
        table = any(part in name for part in ("embed", "wte", "wpe"))
        values = values if table else values * math.sqrt(3 / shape[-1])
    else:
        norm = "norm" in name.lower() or ".ln_" in name
        shift = (
            1.0 if norm and name.endswith("weight") and "gemma" not in family.config["model_type"] else 0.0
        )
        values = values / 4 + shift
    factor = next((each for end, each in family.scales.items() if name.endswith(end)), 1.0)
    return np.ascontiguousarray(values * factor, np.float32)


def weights_of(family: Family) -> dict[str, Array]:
    """All weights of a family, by the names of Hugging Face's files."""
    return {name: _drawn(family, name, shape) for name, shape in family.shapes(family.config).items()}


# GGUF

DECODER_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
GEMMA_NAMES = {
    **DECODER_NAMES,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GPT2_NAMES = {
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
}
BERT_NAMES = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
TOP_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}


def gguf_name(name: str, names: Mapping[str, str]) -> str:
    """A published name as llama.cpp's: model.layers.3.mlp.up_proj.weight is blk.3.ffn_up.weight."""
    stem, _, last = name.rpartition(".")
    if stem in TOP_NAMES:
        return f"{TOP_NAMES[stem]}.{last}"
    parts = stem.split(".")
    at = next(place for place, part in enumerate(parts) if part.isdigit())
    return f"blk.{parts[at]}.{names['.'.join(parts[at + 1 :])]}.{last}"


def interleaved(weight: Array, heads: int) -> Array:
    """Rows of queries or keys in the order of the architecture llama: halves of a head, one by one."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))


def _decoder_metadata(config: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    heads = config["num_attention_heads"]
    head = config.get("head_dim", config["hidden_size"] // heads)
    values: dict[str, Any] = {
        "vocab_size": config["vocab_size"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.freq_base": config["rope_theta"],
    }
    if "head_dim" in config:
        values |= {"attention.key_length": head, "attention.value_length": head}
    if architecture == "llama":
        values["rope.dimension_count"] = head
    if config.get("sliding_window"):
        values["attention.sliding_window"] = config["sliding_window"]
    return {
        "general.architecture": architecture,
        **{f"{architecture}.{name}": each for name, each in values.items()},
    }


def _rope_factors(config: Mapping[str, Any]) -> Array:
    """By what the frequencies of a head are divided: Llama 3.1's scaling, which GGUF keeps as a tensor."""
    head = config["hidden_size"] // config["num_attention_heads"]
    waves = 2 * math.pi * config["rope_theta"] ** (np.arange(0, head, 2) / head)
    scaling = config["rope_scaling"]
    low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
    turns = scaling["original_max_position_embeddings"] / waves
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return np.asarray(1 / ((1 - smooth) / factor + smooth), np.float32)


def _decoder_gguf(architecture: str) -> Callable[..., tuple[dict[str, Any], dict[str, Array]]]:
    def build(
        config: Mapping[str, Any], weights: Mapping[str, Array]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        names = GEMMA_NAMES if architecture == "gemma3" else DECODER_NAMES
        tensors = {gguf_name(name, names): each for name, each in weights.items()}
        for name, each in tensors.items():
            if architecture == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
                grouped = "num_key_value_heads" if "attn_k" in name else "num_attention_heads"
                tensors[name] = interleaved(each, config[grouped])
            if architecture == "gemma3" and name.endswith("norm.weight"):
                tensors[name] = each + np.float32(1)
        if "rope_scaling" in config:
            tensors["rope_freqs.weight"] = _rope_factors(config)
        return _decoder_metadata(config, architecture), tensors

    return build


def _gpt2_gguf(
    config: Mapping[str, Any], weights: Mapping[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    tensors = {
        gguf_name(name, GPT2_NAMES): np.ascontiguousarray(each.T) if ".c_" in name else each
        for name, each in weights.items()
    }
    return {
        "general.architecture": "gpt2",
        "gpt2.vocab_size": config["vocab_size"],
        "gpt2.context_length": config["n_positions"],
        "gpt2.embedding_length": config["n_embd"],
        "gpt2.feed_forward_length": 4 * config["n_embd"],
        "gpt2.block_count": config["n_layer"],
        "gpt2.attention.head_count": config["n_head"],
        "gpt2.attention.layer_norm_epsilon": config["layer_norm_epsilon"],
    }, tensors


def _bert_gguf(
    config: Mapping[str, Any], weights: Mapping[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    return {
        "general.architecture": "bert",
        "bert.context_length": config["max_position_embeddings"],
        "bert.embedding_length": config["hidden_size"],
        "bert.feed_forward_length": config["intermediate_size"],
        "bert.block_count": config["num_hidden_layers"],
        "bert.attention.head_count": config["num_attention_heads"],
        "bert.attention.layer_norm_epsilon": config["layer_norm_eps"],
        "bert.attention.causal": False,
        "bert.pooling_type": 1,
    }, {gguf_name(name, BERT_NAMES): each for name, each in weights.items()}


# The families


def _decoder(kind: str, architecture: str, /, **changes: Any) -> Family:
    name = {"gemma3_text": "Gemma3"}.get(kind, kind.capitalize())
    config = {"architectures": [f"{name}ForCausalLM"], "model_type": kind, **SMALL, **changes}
    scales = {"embed_tokens.weight": 1 / 8} if kind == "gemma3_text" else {}  # it multiplies them by 8
    return Family(config, _decoder_shapes, _decoder_gguf(architecture), scales)


def _gemma3(folder_only: bool = False, **changes: Any) -> Family:
    family = _decoder(
        "gemma3_text",
        "gemma3",
        **{
            "head_dim": 32,
            "hidden_act": None,
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": 32,
            "sliding_window": 8,
            "sliding_window_pattern": 6,
            "rope_theta": 1e6,
            "rope_local_base_freq": 10000.0,
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": True,
            **changes,
        },
    )
    return replace(family, gguf=None) if folder_only else family


FAMILIES: Mapping[str, Family] = {
    "llama": _decoder("llama", "llama"),
    "smollm2": _decoder(
        "llama",
        "llama",
        hidden_size=96,
        num_attention_heads=3,
        num_key_value_heads=1,
        rope_theta=100000.0,
        tie_word_embeddings=True,
    ),
    "llama3.1": _decoder("llama", "llama", rope_theta=500000.0, rope_scaling=SCALED),
    "mistral": _decoder("mistral", "llama", sliding_window=8, head_dim=16),
    "qwen2": _decoder("qwen2", "qwen2", rms_norm_eps=1e-6, rope_theta=1e6),
    "qwen3": _decoder("qwen3", "qwen3", head_dim=32, rms_norm_eps=1e-6, rope_theta=1e6),
    "gemma3": _gemma3(),
    "gemma3-six": _gemma3(num_hidden_layers=6),  # the sixth layer sees everything
    "gemma3-scaled": _gemma3(
        folder_only=True,  # what a GGUF file has no keys for
        sliding_window_pattern=2,
        query_pre_attn_scalar=24,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    ),
    "gpt2": Family(
        {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "vocab_size": 256,
            "n_embd": 64,
            "n_head": 4,
            "n_layer": 2,
            "n_positions": 128,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "torch_dtype": "float32",
        },
        _gpt2_shapes,
        _gpt2_gguf,
    ),
    "bert": Family(
        {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": 256,
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "type_vocab_size": 2,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "pad_token_id": 0,
            "torch_dtype": "float32",
        },
        _bert_shapes,
        _bert_gguf,
    ),
}


def write_folder(family: Family, folder: Path) -> None:
    """config.json and model.safetensors, as Hugging Face publishes them."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {name: each for name, each in family.config.items() if each is not None}
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    wg.io.save(folder / "model.safetensors", weights_of(family), {"format": "pt"})


def write_gguf(family: Family, path: Path) -> None:
    """The same model as one GGUF file."""
    if family.gguf is None:
        raise ValueError("GGUF has no keys for what this family shows")
    metadata, tensors = family.gguf(family.config, weights_of(family))
    wg.io.save(path, tensors, metadata)


def main(arguments: Sequence[str]) -> int:
    """Write families, all of them unless some are named."""
    unknown = [name for name in arguments[1:] if name not in FAMILIES]
    if not arguments or arguments[0].startswith("-") or unknown:
        say(f"python -m scripts.random_models FOLDER [FAMILY …]; the families are {', '.join(FAMILIES)}")
        return 2
    for name in arguments[1:] or FAMILIES:
        write_folder(FAMILIES[name], Path(arguments[0]) / name)
        if FAMILIES[name].gguf is not None:
            write_gguf(FAMILIES[name], Path(arguments[0]) / f"{name}.gguf")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
