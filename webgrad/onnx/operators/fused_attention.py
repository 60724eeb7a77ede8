"""Attention of com.microsoft: Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding …

Keys and values of earlier calls come as `past` and go as `present`. A buffer that both share has room for
more than there is; how much there is, is then said by another input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg

from .attention import Bias, attended, by_head, composed, joined, seen_keys, tensor_scatter, together
from .table import Call, operator

MICROSOFT = "com.microsoft"

# Masks


def _padding(mask: Any, samples: int, queries: int, keys: int, value: float) -> Any:
    """A mask in one of its forms as numbers to add: `value` where a key is not seen."""
    if mask is None:
        return None
    if mask.ndim == 4:  # of a longer sequence, whose last queries these are
        seen = mask[:, :, keys - queries : keys, :keys] > 0
    elif mask.ndim == 3:
        seen = wg.expand_dims(mask > 0, 1)
    elif mask.ndim == 2:
        seen = (mask > 0).reshape((mask.shape[0], 1, 1, mask.shape[1]))
    else:  # where each sample's keys end; then, of twice as many numbers, where they begin
        place = wg.arange(keys, dtype=wg.int32, device=mask.device)
        ends = mask[:samples].astype(wg.int32).reshape((-1, 1, 1, 1))
        seen = place < ends
        if mask.shape[0] == 2 * samples:
            seen = seen & (place >= mask[samples:].astype(wg.int32).reshape((-1, 1, 1, 1)))
    if seen.shape[-1] < keys:
        seen = wg.pad(seen, [(0, 0)] * 3 + [(0, keys - seen.shape[-1])], constant_values=True)
    return wg.where(seen, 0.0, value)


def _total(*numbers: Any) -> Bias:
    """Numbers to add, those that there are."""
    found = [each for each in numbers if each is not None]
    return Bias(sum(found[1:], start=found[0])) if found else Bias()


def _extended(past: Any, new: Any, there: Any) -> tuple[Any, Any]:
    """What is attended to, and what is handed on: of a shared buffer, `there` of it filled, all of it."""
    if there is None or past is None:
        whole = joined(past, new)
        return whole, whole
    start, end = int(there.reshape(-1)[0]), int(there.reshape(-1)[0]) + new.shape[2]
    seen = joined(past[:, :, :start], new)
    return seen, wg.concat([seen, past[:, :, end:]], axis=2)


# Self attention, with the projection of its input


@operator("Attention", domain=MICROSOFT, host="past_sequence_length")
def attention(
    x: Any,
    weights: Any,
    bias: Any = None,
    mask: Any = None,
    past: Any = None,
    attention_bias: Any = None,
    past_sequence_length: Any = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] = (),
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
    call: Call,
) -> Any:
    if do_rotary:
        raise wg.ModelFileError(
            "com.microsoft's Attention with do_rotary=1 is not there: use GroupQueryAttention"
        )
    projected = x @ weights if bias is None else x @ weights + bias
    sizes = list(qkv_hidden_sizes) or [projected.shape[-1] // 3] * 3
    parts = wg.split(projected, [sizes[0], sizes[0] + sizes[1]], axis=-1)
    q, k, v = (by_head(each, num_heads) for each in parts)
    there = past_sequence_length if past_present_share_buffer else None
    (k, all_keys), (v, all_values) = (
        _extended(None if past is None else past[at], each, there) for at, each in enumerate((k, v))
    )
    padding = _padding(mask, x.shape[0], q.shape[2], k.shape[2], mask_filter_value)
    offset = k.shape[2] - q.shape[2] if unidirectional else None
    y = together(attended(q, k, v, _total(padding, attention_bias), scale or None, offset))
    return y if call.outputs < 2 else (y, wg.stack([all_keys, all_values]))


# Attention of projected queries, keys and values


def _heads(query: Any, key: Any, value: Any, bias: Any, heads: int) -> list[Any]:
    """Queries, keys and values by head, in each of the forms in which they come, biases added."""
    if query.ndim == 5:  # (batch, positions, heads, 3, columns)
        return [query[:, :, :, at].permute(0, 2, 1, 3) for at in range(3)]
    columns = query.shape[-1]
    if bias is not None:
        query = query + bias[:columns]
    q = by_head(query, heads)
    if key.ndim == 5:
        return [q, *(key[:, :, :, at].permute(0, 2, 1, 3) for at in range(2))]
    if key.ndim == 4:
        return [q, key, value]
    if bias is not None:
        key, value = key + bias[columns : 2 * columns], value + bias[2 * columns :]
    return [q, by_head(key, heads), by_head(value, heads)]


@operator("MultiHeadAttention", domain=MICROSOFT, host="past_sequence_length")
def multi_head_attention(
    query: Any,
    key: Any = None,
    value: Any = None,
    bias: Any = None,
    key_padding_mask: Any = None,
    attention_bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    past_sequence_length: Any = None,
    cache_indirection: Any = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
    call: Call,
) -> Any:
    if cache_indirection is not None:
        raise wg.ModelFileError(
            "attention with cache_indirection, for beams that share a buffer, is not there"
        )
    q, k, v = _heads(query, key, value, bias, num_heads)
    fresh = k.shape[2]
    (k, all_keys), (v, all_values) = (
        _extended(past, each, past_sequence_length) for past, each in ((past_key, k), (past_value, v))
    )
    padding = _padding(key_padding_mask, q.shape[0], q.shape[2], k.shape[2], mask_filter_value)
    total, offset = _total(padding, attention_bias), k.shape[2] - fresh
    if call.outputs < 4:
        y = attended(q, k, v, total, scale or None, offset if unidirectional else None)
        return together(y), all_keys, all_values
    if unidirectional:
        total = total.and_seen(seen_keys(q.shape[2], k.shape[2], offset, right=0, device=q.device))
    y, scores = composed(q, k, v, total, scale or 1.0 / math.sqrt(q.shape[3]))
    return together(y), all_keys, all_values, scores[3]


@operator("DecoderMaskedMultiHeadAttention", domain=MICROSOFT, host="past_sequence_length beam_width")
def decoder_attention(
    query: Any,
    key: Any = None,
    value: Any = None,
    mask_index: Any = None,
    attention_bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    past_sequence_length: Any = None,
    beam_width: Any = None,
    cache_indirection: Any = None,
    bias: Any = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    call: Call,
) -> Any:
    """One query for each sample; a packed one is split in three."""
    if key is None:
        query, key, value = wg.split(query, 3, axis=-1)
    if beam_width is None or int(beam_width.reshape(-1)[0]) == 1:
        cache_indirection = None
    there = past_sequence_length if past_present_share_buffer else None
    if key.ndim == 4:
        past_key = past_value = None
    given = (query, key, value, bias, mask_index, attention_bias, past_key, past_value, there)
    how = {"mask_filter_value": mask_filter_value, "num_heads": num_heads, "scale": scale}
    return multi_head_attention(*given, cache_indirection, call=call, **how)


@operator("GroupQueryAttention", domain=MICROSOFT, host="total_sequence_length")
def group_query_attention(
    query: Any,
    key: Any,
    value: Any,
    past_key: Any,
    past_value: Any,
    seqlens_k: Any,
    total_sequence_length: Any,
    cos_cache: Any = None,
    sin_cache: Any = None,
    position_ids: Any = None,
    attention_bias: Any = None,
    head_sink: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    q_norm_weight: Any = None,
    k_norm_weight: Any = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
    call: Call,
) -> Any:
    """Samples of different lengths: `seqlens_k` says where each sample's last key is."""
    if sliding_window_cache or k_quant_type != "NONE" or v_quant_type != "NONE":
        raise wg.ModelFileError("GroupQueryAttention with a quantised or sliding cache is not there")
    q, k, v = _grouped(query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None:
        q = wg.rms_norm(q, None, q_norm_weight, qk_norm_epsilon)
        k = wg.rms_norm(k, None, k_norm_weight, qk_norm_epsilon)
    queries, total = q.shape[2], int(total_sequence_length.reshape(-1)[0])
    last = seqlens_k.astype(wg.int32).reshape((-1,))
    start = None if queries == total else last + (1 - queries)
    if do_rotary:
        cos, sin = _angles(cos_cache, sin_cache, position_ids, start, queries)
        q, k = (wg.apply_rotary(each, cos, sin, bool(rotary_interleaved)) for each in (q, k))
    k, v = (_updated(past, each, start, last, total) for past, each in ((past_key, k), (past_value, v)))
    bias = Bias(None if attention_bias is None else _widened(attention_bias, k.shape[2]))
    factor, window = scale or 1.0 / math.sqrt(q.shape[3]), local_window_size
    is_plain = not softcap and head_sink is None and smooth_softmax <= 0 and not qk_output
    if is_plain and causal and (start is None or q.shape[0] == 1):
        how = (bias.mask, 0.0, True, factor, num_heads != kv_num_heads)
        reach = window if window > 0 else None
        length = None if start is None else (last + 1).reshape(())  # `total` may be what there is room for
        y = wg.scaled_dot_product_attention(q, k, v, *how, window=reach, length=length)
        return together(y), k, v
    if causal:
        offset = 0 if start is None else start
        left = window - 1 if window > 0 else -1
        bias = bias.and_seen(seen_keys(queries, k.shape[2], offset, left, 0, q.device))
    else:
        bias = bias.and_seen(seen_keys(1, k.shape[2], last, right=0, device=q.device))
    if is_plain:
        return together(attended(q, k, v, bias, factor)), k, v
    sink = wg.zeros((num_heads,), device=q.device) if head_sink is None and smooth_softmax > 0 else head_sink
    y, scores = composed(q, k, v, bias, factor, softcap, sink)
    shown = scores[3] if qk_output == 2 else wg.where(bias.seen, scores[2], 0.0)
    return together(y), k, v, shown.astype(q.dtype)


def _grouped(query: Any, key: Any, value: Any, heads: int, shared: int) -> list[Any]:
    """Queries, keys and values by head; without keys they are all in `query`."""
    if key is None:
        columns = query.shape[-1] // (heads + 2 * shared)
        query, key, value = wg.split(query, [heads * columns, (heads + shared) * columns], axis=-1)
    return [by_head(query, heads), by_head(key, shared), by_head(value, shared)]


def _angles(cos: Any, sin: Any, positions: Any, start: Any, queries: int) -> tuple[Any, Any]:
    """The rows of caches at the positions of queries, with an axis for heads."""
    if positions is None:
        positions = wg.arange(queries, dtype=wg.int32, device=cos.device)
        positions = positions.reshape((1, -1)) if start is None else start.reshape((-1, 1)) + positions
    found = [wg.expand_dims(wg.take(each, positions, axis=0), 1) for each in (cos, sin)]
    return found[0], found[1]


def _updated(past: Any, new: Any, start: Any, last: Any, total: int) -> Any:
    """Keys or values, the new ones from `start` of each sample to `last`; zeros where there is more room."""
    room = max(total, 0 if past is None else past.shape[2])
    if room == new.shape[2]:
        return new
    if start is None or past is None or not past.shape[2]:
        return wg.pad(new, [(0, 0), (0, 0), (0, room - new.shape[2]), (0, 0)])
    if past.shape[2] < room:
        past = wg.pad(past, [(0, 0), (0, 0), (0, room - past.shape[2]), (0, 0)])
    there = wg.arange(room, dtype=wg.int32, device=new.device).reshape((-1, 1)) <= last.reshape((-1, 1, 1, 1))
    return wg.where(there, tensor_scatter(past, new, start, axis=2), 0.0)


def _widened(numbers: Any, keys: int) -> Any:
    """Numbers to add to scores, for as many keys as there is room for."""
    missing = keys - numbers.shape[-1]
    return wg.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, missing)]) if missing > 0 else numbers


@operator("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(
    x: Any,
    position_ids: Any,
    cos_cache: Any,
    sin_cache: Any,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Any:
    """One position is that of every sample's first; else each has its own."""
    columns = x.shape[-1]
    pairs = cos_cache.shape[-1]
    heads = num_heads or columns // (2 * pairs)
    wide = x if x.ndim == 4 else by_head(x, heads)
    if position_ids.size == 1:
        start = position_ids.reshape((1,)).astype(wg.int32)
        cos, sin = _angles(cos_cache, sin_cache, None, start, wide.shape[2])
    else:
        cos, sin = _angles(cos_cache, sin_cache, position_ids, None, wide.shape[2])
    y = wg.apply_rotary(wide, cos, sin, bool(interleaved))
    return y if x.ndim == 4 else together(y)
