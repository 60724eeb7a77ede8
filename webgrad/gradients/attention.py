"""Attention with every score in memory: for heads too large for one kernel, and for gradients.

In: the inputs and attributes of an attend node. Out: its result, or the gradients of its inputs.
"""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..functions.array.elementwise import exp, maximum, where
from ..functions.array.reductions import converted, fold, shift_of, widened
from ..ops import primitives
from ..tensor import Tensor

LOWEST = -3.4028234e38


def composed(inputs: list[Tensor], attributes: tuple[Any, ...], kept: Tensor | None = None) -> Tensor:
    """The result of the attend node; `kept` are factors of its weights, where some are dropped."""
    v = widened(inputs[2])
    weights, total = _weights(inputs, attributes)
    weights = weights if kept is None else weights * kept
    values = where(_is_there(v, inputs[4]), v, 0.0)
    return _mixed(weights, values) / total


def _is_there(keys: Tensor, length: Tensor) -> Tensor:
    """A mask (keys, 1) of the keys below the length."""
    count = keys.shape[2]
    at = Tensor(primitives.iota(count, dtypes.int32, keys.node.sig.device))
    return (at < length).reshape((count, 1))


def _mixed(weights: Tensor, values: Tensor) -> Tensor:
    """(b, h, l, s) @ (b, g, s, w), each head of values shared by equally many of weights."""
    batches, heads, queries, keys = weights.shape
    shared = values.shape[1]
    mixed = weights.reshape((batches, shared, heads // shared * queries, keys)) @ values
    return mixed.reshape((batches, heads, queries, values.shape[3]))


def _gathered(weights: Tensor, rows: Tensor, shared: int) -> Tensor:
    """(b, h, l, s) and (b, h, l, w): for each of the shared heads its (b, g, s, w)."""
    batches, heads, queries, keys = weights.shape
    grouped = (batches, shared, heads // shared * queries)
    return weights.reshape((*grouped, keys)).mT @ rows.reshape((*grouped, rows.shape[3]))


def _weights(inputs: list[Tensor], attributes: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """The weights of every value in every result before normalisation, and their sums."""
    q, k = (widened(each) for each in inputs[:2])
    scale, length = inputs[3], inputs[4]
    causal, window, from_end, _ = attributes
    queries, keys = q.shape[2], k.shape[2]
    device = q.node.sig.device
    scores = converted(_mixed(q, k.mT), q.dtype) * converted(scale, q.dtype)
    if len(inputs) > 5:
        scores = scores + inputs[5]
    at = Tensor(primitives.iota(keys, dtypes.int32, device))
    place = Tensor(primitives.iota(queries, dtypes.int32, device)).reshape((queries, 1))
    if from_end:
        place = place + (length - queries)
    seen = at < length
    if causal:
        seen = seen & (at <= place)
        if window:
            seen = seen & (at > place - window)
    shown = maximum(where(seen, scores, LOWEST), LOWEST)
    weights = where(seen & (scores > -math.inf), exp(shown - shift_of(shown, (3,))), 0.0)
    return weights, maximum(fold("sum", weights, (3,), keepdims=True), 0.5)


def attended(g: Tensor, attributes: tuple[Any, ...], *inputs: Tensor) -> tuple[Any, ...]:
    """The gradients of queries, keys, values and the mask. Scores are computed again, and stored."""
    wide = widened(g)
    q, k, v = (widened(each) for each in inputs[:3])
    scale = converted(inputs[3], q.dtype)
    weights, total = _weights(list(inputs), attributes)
    share = weights / total
    there = _is_there(k, inputs[4])
    of_values = where(there, _gathered(share, wide, v.shape[1]), 0.0)
    of_share = _mixed(wide, where(there, v, 0.0).mT)
    # Not the sum of g * y, which is the same but for rounding: a weight of 1 must have a difference of 0.
    of_scores = share * (of_share - fold("sum", share * of_share, (3,), keepdims=True))
    found: list[Any] = [
        converted(_mixed(of_scores, where(there, k, 0.0)) * scale, inputs[0].dtype),
        converted(_gathered(of_scores, q, k.shape[1]) * scale, inputs[1].dtype),
        converted(of_values, inputs[2].dtype),
        None,
        None,
    ]
    return (*found, *(_summed_to_mask(of_scores, each) for each in inputs[5:]))


def _summed_to_mask(of_scores: Tensor, mask: Tensor) -> Tensor:
    axes = tuple(at for at, size in enumerate(mask.shape) if size == 1 != of_scores.shape[at])
    return converted(fold("sum", of_scores, axes, keepdims=True), mask.dtype)
