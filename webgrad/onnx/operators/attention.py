"""Attention of the standard: Attention, FlexAttention, LinearAttention, RotaryEmbedding, TensorScatter.

Heads are an axis of their own in here, (batch, heads, positions, columns). What webgrad's fused attention
can do goes there; a cap on scores, or scores as an output, is composed of products and maps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from ...arrays import np
from ..types import type_of
from .table import Call, operator

__all__ = ["Bias", "attended", "by_head", "composed", "joined", "seen_keys", "tensor_scatter", "together"]


# Heads


def by_head(x: Any, heads: int) -> Any:
    """(batch, positions, heads · columns) as (batch, heads, positions, columns)."""
    samples, positions, columns = x.shape
    return x.reshape((samples, positions, heads, columns // heads)).permute(0, 2, 1, 3)


def together(x: Any) -> Any:
    """(batch, heads, positions, columns) as (batch, positions, heads · columns)."""
    samples, heads, positions, columns = x.shape
    return x.permute(0, 2, 1, 3).reshape((samples, positions, heads * columns))


def joined(past: Any, x: Any) -> Any:
    """What was there, then what comes, along the positions."""
    return x if past is None or not past.shape[2] else wg.concat([past, x], axis=2)


# Masks


def seen_keys(
    queries: int, keys: int, offset: Any, left: int = -1, right: int = -1, device: Any = None
) -> Any:
    """Which keys each query sees: those from `left` before its position to `right` behind, -1: all.

    `offset` is the position of the first query: a number, or a tensor of one for each sample.
    """
    ahead = wg.asarray(
        np.arange(keys, dtype=np.int32) - np.arange(queries, dtype=np.int32)[:, None], device=device
    )
    ahead = ahead - (
        offset.astype(wg.int32).reshape((-1, 1, 1, 1)) if isinstance(offset, wg.Tensor) else offset
    )
    found = ahead <= right if right >= 0 else wg.ones_like(ahead, dtype=wg.bool)
    return found & (ahead >= -left) if left >= 0 else found


@dataclass(frozen=True, slots=True)
class Bias:
    """What is added to scores: numbers, and minus infinity where a key is not seen; either may be None."""

    numbers: Any = None
    seen: Any = None

    @property
    def mask(self) -> Any:
        """Both in one."""
        if self.numbers is None or self.seen is None:
            return self.seen if self.numbers is None else self.numbers
        return wg.where(self.seen, self.numbers, -math.inf)

    def and_seen(self, seen: Any) -> Bias:
        """With fewer keys seen."""
        return Bias(self.numbers, seen if self.seen is None else self.seen & seen)


def _bias_of(mask: Any, keys: int) -> Bias:
    """A mask as files give it: what it does not reach to is not seen."""
    if mask is None:
        return Bias()
    missing = keys - mask.shape[-1] if mask.ndim else 0
    is_bool = mask.dtype.kind == "b"
    if missing > 0:
        widths = [(0, 0)] * (mask.ndim - 1) + [(0, missing)]
        mask = wg.pad(mask, widths, constant_values=False if is_bool else -math.inf)
    return Bias(None, mask) if is_bool else Bias(mask)


# Scores


def _products(q: Any, k: Any) -> Any:
    """q @ k.mT, where heads of k may serve several of q."""
    samples, heads, queries, columns = q.shape
    grouped = q.reshape((samples, k.shape[1], heads // k.shape[1] * queries, columns))
    return (grouped @ k.mT).reshape((samples, heads, queries, k.shape[2]))


def _weighted(weights: Any, v: Any) -> Any:
    samples, heads, queries, keys = weights.shape
    grouped = weights.reshape((samples, v.shape[1], heads // v.shape[1] * queries, keys))
    return (grouped @ v).reshape((samples, heads, queries, v.shape[3]))


def _softmax(scores: Any) -> Any:
    """Softmax along keys; 0 for a query that sees none."""
    largest = wg.max(scores, axis=-1, keepdims=True)
    powers = wg.exp(scores - wg.where(wg.isneginf(largest), 0.0, largest))
    total = wg.sum(powers, axis=-1, keepdims=True)
    return powers / wg.where(total == 0, 1.0, total)


def composed(
    q: Any, k: Any, v: Any, bias: Bias, scale: float, softcap: float = 0.0, sink: Any = None
) -> tuple[Any, list[Any]]:
    """Attention of products and maps; and scores as they come, capped, with the bias, and as weights.

    `sink` is one more score for each head, of a key that has no value.
    """
    root = math.sqrt(scale) if scale > 0 else 1.0
    wide = [each.astype(each.dtype.wide, copy=False) for each in (q, k, v)]
    raw = _products(wide[0] * root, wide[1] * root) if scale > 0 else _products(wide[0] * scale, wide[1])
    capped = wg.tanh(raw / softcap) * softcap if softcap else raw
    total = capped if bias.mask is None else _added(capped, bias)
    if sink is None:
        weights = _softmax(total)
    else:
        column = wg.broadcast_to(sink.reshape((1, -1, 1, 1)).astype(total.dtype), (*total.shape[:3], 1))
        weights = wg.softmax(wg.concat([total, column], axis=-1))[..., :-1]
    return _weighted(weights, wide[2]).astype(q.dtype, copy=False), [raw, capped, total, weights]


def _added(scores: Any, bias: Bias) -> Any:
    if bias.numbers is not None:
        scores = scores + bias.numbers
    return scores if bias.seen is None else wg.where(bias.seen, scores, -math.inf)


def attended(
    q: Any, k: Any, v: Any, bias: Bias, scale: float | None = None, offset: int | None = None
) -> Any:
    """Attention in one kernel; with an offset it is causal, and the first query has that position."""
    queries, keys = q.shape[2], k.shape[2]
    is_wide = q.dtype.itemsize == 8  # of which GPUs have no such kernel
    if offset is not None and (is_wide or offset not in (0, keys - queries)):
        bias, offset = bias.and_seen(seen_keys(queries, keys, offset, right=0, device=q.device)), None
    factor = 1.0 / math.sqrt(q.shape[3]) if scale is None else scale
    if is_wide:
        return composed(q, k, v, bias, factor)[0]
    options = (bias.mask, 0.0, offset is not None, factor, q.shape[1] != k.shape[1])
    return wg.scaled_dot_product_attention(q, k, v, *options, length=keys if offset else None)


# Attention


def _attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    lengths: Any = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int = 0,
    left_window_size: int = -1,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    call: Call,
) -> Any:
    """`lengths` says how many keys of each sample there are; `softmax_precision` is at least float32 here."""
    is_flat = q.ndim == 3
    if is_flat:
        q, k, v = by_head(q, q_num_heads), by_head(k, kv_num_heads), by_head(v, kv_num_heads)
    past = 0 if past_key is None else past_key.shape[2]
    k, v = joined(past_key, k), joined(past_value, v)
    queries, keys = q.shape[2], k.shape[2]
    bias = _bias_of(mask, keys)
    right = 0 if is_causal else right_window_size
    offset = past if lengths is None else lengths - queries
    is_plain = right == 0 and left_window_size < 0 and lengths is None and call.outputs < 4 and not softcap
    if lengths is not None:
        bias = bias.and_seen(seen_keys(1, keys, lengths - 1, right=0, device=q.device))
    if not is_plain and (right >= 0 or left_window_size >= 0):
        bias = bias.and_seen(seen_keys(queries, keys, offset, left_window_size, right, q.device))
    if not softcap and call.outputs < 4:
        y = attended(q, k, v, bias, scale, past if is_plain else None)
        return (together(y) if is_flat else y), k, v
    factor = 1.0 / math.sqrt(q.shape[3]) if scale is None else scale
    y, scores = composed(q, k, v, bias, factor, softcap)
    return (together(y) if is_flat else y), k, v, scores[qk_matmul_output_mode].astype(q.dtype, copy=False)


operator("Attention", 23)(_attention)


# Others


@operator("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    prob_mod: Any = None,
    scale: float | None = None,
    score_mod: Any = None,
    softmax_precision: int | None = None,
    call: Call,
) -> Any:
    """Attention with scores, or weights, changed by graphs."""
    factor = 1.0 / math.sqrt(q.shape[3]) if scale is None else scale
    if score_mod is None and prob_mod is None:
        return attended(q, k, v, Bias(), factor)
    stage = q.dtype.wide if softmax_precision is None else type_of(softmax_precision).webgrad
    wide = [each.astype(stage, copy=False) for each in (q, k, v)]
    scores = _changed(_products(wide[0] * factor, wide[1]), score_mod, call)
    weights = _changed(wg.softmax(scores), prob_mod, call)
    return _weighted(weights, wide[2]).astype(v.dtype, copy=False)


def _changed(x: Any, graph: Any, call: Call) -> Any:
    return x if graph is None else call.tensor(call.run(graph, [x])[0])


@operator("LinearAttention", 27)
def linear_attention(
    query: Any,
    key: Any,
    value: Any,
    past_state: Any = None,
    decay: Any = None,
    beta: Any = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> Any:
    """A state (batch, heads, keys, values) to which every position adds k ⊗ v, read by q."""
    q, k, v = (
        by_head(each, heads).astype(wg.float32)
        for each, heads in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads))
    )
    samples, _, positions, columns = q.shape
    factor = scale or 1.0 / math.sqrt(columns)
    gates = None if decay is None else wg.exp(by_head(decay, kv_num_heads).astype(wg.float32))
    rates = None if beta is None else by_head(beta, beta.shape[-1]).astype(wg.float32)
    shape = (samples, kv_num_heads, columns, v.shape[3])
    state = wg.zeros(shape, wg.float32, device=q.device) if past_state is None else past_state
    state, read = state.astype(wg.float32), []
    for at in range(positions):
        now = slice(at, at + 1)
        if gates is not None:
            state = state * gates[:, :, now].mT
        new = v[:, :, now]
        if rates is not None:
            new = rates[:, :, now] * (new - k[:, :, now] @ state)
        state = state + k[:, :, now].mT * new
        read.append(_weighted(q[:, :, now], state) * factor)
    kind = query.dtype if past_state is None else past_state.dtype
    return together(wg.concat(read, axis=2)).astype(query.dtype), state.astype(kind)


@operator("RotaryEmbedding", 23)
def rotary_embedding(
    x: Any,
    cos_cache: Any,
    sin_cache: Any,
    position_ids: Any = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    """Pairs of columns rotated; how many pairs there are, the caches say, or the attribute."""
    pairs = rotary_embedding_dim // 2 or cos_cache.shape[-1]
    cos_cache, sin_cache = cos_cache[..., :pairs], sin_cache[..., :pairs]
    heads = by_head(x, num_heads) if x.ndim == 3 else x
    if position_ids is not None:
        cos_cache, sin_cache = (wg.take(each, position_ids, axis=0) for each in (cos_cache, sin_cache))
    cos, sin = (wg.expand_dims(each, 1) for each in (cos_cache, sin_cache))
    y = wg.apply_rotary(heads, cos, sin, bool(interleaved))
    return together(y) if x.ndim == 3 else y


@operator("TensorScatter", 24)
def tensor_scatter(
    cache: Any, update: Any, write_indices: Any = None, *, axis: int = -2, mode: str = "linear"
) -> Any:
    """A cache with what is new, from an index of each sample on; circular: from the end back to the start."""
    place = axis % cache.ndim
    size, count = cache.shape[place], update.shape[place]
    shape = [1] * cache.ndim
    shape[place] = size
    at = wg.arange(size, dtype=wg.int32, device=cache.device).reshape(shape)
    if write_indices is not None:
        at = at - write_indices.astype(wg.int32).reshape((-1, *[1] * (cache.ndim - 1)))
    if mode == "circular":
        at = wg.remainder(at, size)
    inside = (at >= 0) & (at < count)
    index = wg.broadcast_to(wg.clip(at, 0, count - 1), cache.shape)
    return wg.where(inside, wg.take_along_axis(update, index, axis=place), cache)
