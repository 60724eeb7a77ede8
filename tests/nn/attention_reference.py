"""MultiheadAttention as it is defined, in NumPy's float64, and arrays to try it with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Array", "attention", "hidden", "numbers"]

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def hidden(*shape: int) -> Array:
    """A mask of bools whose rows all leave a key."""
    mask = np.random.default_rng(sum(shape)).random(shape) < 0.5
    mask[..., 0] = False
    return mask


def added(mask: Array | None) -> Array:
    if mask is None:
        return np.zeros(())
    return np.where(mask, -np.inf, 0.0) if mask.dtype == bool else mask


def attention(
    layer: Any, q: Array, k: Array, v: Array, mask: Array | None = None, padding: Array | None = None
) -> tuple[Array, Array]:
    """The result (batch, queries, columns) and the weights of every head, of inputs with the batch first."""
    state = {name: each.numpy().astype(np.float64) for name, each in layer.state_dict().items()}
    if "in_proj_weight" in state:
        matrices = np.split(state["in_proj_weight"], 3)
    else:
        matrices = [state[f"{name}_proj_weight"] for name in "qkv"]
    biases = np.split(state.get("in_proj_bias", np.zeros(3 * layer.embed_dim)), 3)
    rows = [x @ w.T + b for x, w, b in zip((q, k, v), matrices, biases, strict=True)]
    batch, more = len(q), 0
    if "bias_k" in state:
        for number, name in ((1, "bias_k"), (2, "bias_v")):
            rows[number] = np.concatenate(
                [rows[number], np.broadcast_to(state[name], (batch, 1, layer.embed_dim))], 1
            )
        more += 1
    if layer.add_zero_attn:
        for number in (1, 2):
            rows[number] = np.concatenate([rows[number], np.zeros((batch, 1, layer.embed_dim))], 1)
        more += 1
    qs, ks, vs = (x.reshape(batch, x.shape[1], layer.num_heads, -1).transpose(0, 2, 1, 3) for x in rows)
    total = np.zeros((batch, layer.num_heads, q.shape[1], ks.shape[2]))
    plain = total[..., : total.shape[-1] - more]
    if mask is not None and mask.ndim == 3:
        mask = mask.reshape(plain.shape)
    plain += added(mask)
    plain += added(None if padding is None else padding[:, None, None])
    scores = qs @ ks.swapaxes(-1, -2) / math.sqrt(layer.head_dim) + total
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    mixed = (weights @ vs).transpose(0, 2, 1, 3).reshape(q.shape)
    return mixed @ state["out_proj.weight"].T + state.get("out_proj.bias", 0.0), weights
