"""Small random models, written as published ones are, and what they compute by NumPy alone.

The reference goes position by position in float64, with no cache and no kernel of webgrad's.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg

Array = np.ndarray[Any, Any]
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}


def weights_of(config: dict[str, Any], seed: int = 0) -> dict[str, Array]:
    """Random weights by their published names."""
    random = np.random.default_rng(seed)
    width, hidden = config["hidden_size"], config["intermediate_size"]
    columns = config.get("head_dim", width // config["num_attention_heads"])
    queries, keys = (columns * config[f"num_{each}_heads"] for each in ("attention", "key_value"))

    def matrix(rows: int, inputs: int) -> Array:
        return (random.standard_normal((rows, inputs)) / math.sqrt(inputs)).astype(np.float32)

    def norm(size: int) -> Array:
        return random.uniform(0.5, 1.5, size).astype(np.float32)

    made = {
        "model.embed_tokens.weight": matrix(config["vocab_size"], width),
        "model.norm.weight": norm(width),
    }
    if not config["tie_word_embeddings"]:
        made["lm_head.weight"] = matrix(config["vocab_size"], width)
    for number in range(config["num_hidden_layers"]):
        layer = {
            "input_layernorm": norm(width),
            "post_attention_layernorm": norm(width),
            "self_attn.q_proj": matrix(queries, width),
            "self_attn.k_proj": matrix(keys, width),
            "self_attn.v_proj": matrix(keys, width),
            "self_attn.o_proj": matrix(width, queries),
            "mlp.gate_proj": matrix(hidden, width),
            "mlp.up_proj": matrix(hidden, width),
            "mlp.down_proj": matrix(width, hidden),
        }
        made.update({f"model.layers.{number}.{name}.weight": value for name, value in layer.items()})
    return made


def write_folder(folder: Path, config: dict[str, Any], weights: dict[str, Array]) -> Path:
    """A folder with config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    wg.io.save(folder / "model.safetensors", weights)
    return folder


def expected_logits(config: dict[str, Any], weights: dict[str, Array], ids: list[int]) -> Array:
    """The logits after every id, in float64."""
    given = {name: value.astype(np.float64) for name, value in weights.items()}
    x = given["model.embed_tokens.weight"][ids]
    for number in range(config["num_hidden_layers"]):
        layer = {
            name.removeprefix(f"model.layers.{number}.").removesuffix(".weight"): value
            for name, value in given.items()
            if name.startswith(f"model.layers.{number}.")
        }
        x = (
            x
            + _attended(config, layer, _normed(x, layer["input_layernorm"], config))
            @ layer["self_attn.o_proj"].T
        )
        normed = _normed(x, layer["post_attention_layernorm"], config)
        gate = normed @ layer["mlp.gate_proj"].T
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ layer["mlp.up_proj"].T)) @ layer["mlp.down_proj"].T
    head = given["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
    logits: Array = _normed(x, given["model.norm.weight"], config) @ head.T
    return logits


def _normed(x: Array, weight: Array, config: dict[str, Any]) -> Array:
    normed: Array = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + config["rms_norm_eps"]) * weight
    return normed


def _attended(config: dict[str, Any], layer: dict[str, Array], x: Array) -> Array:
    heads, shared = config["num_attention_heads"], config["num_key_value_heads"]
    columns = layer["self_attn.q_proj"].shape[0] // heads
    q, k, v = (
        (x @ layer[f"self_attn.{each}_proj"].T).reshape(len(x), -1, columns).swapaxes(0, 1) for each in "qkv"
    )
    q, k = (_turned(each, config["rope_theta"]) for each in (q, k))
    window = config.get("sliding_window") or len(x)
    behind = np.subtract.outer(np.arange(len(x)), np.arange(len(x)))
    results = []
    for head in range(heads):
        own = head * shared // heads
        scores = q[head] @ k[own].T / math.sqrt(columns)
        scores = np.where((behind >= 0) & (behind < window), scores, -np.inf)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        results.append(shares / shares.sum(axis=-1, keepdims=True) @ v[own])
    return np.concatenate(results, axis=-1)


def _turned(x: Array, base: float) -> Array:
    half = x.shape[-1] // 2
    angles = np.multiply.outer(np.arange(x.shape[-2]), base ** (-np.arange(half) / half))
    first, second = x[..., :half], x[..., half:]
    return np.concatenate(
        [first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles)],
        axis=-1,
    )
