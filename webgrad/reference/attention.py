"""Attention by NumPy with few calls: what the row's definition does, for arrays that are not half floats.

In: a node's signature. Out: a function of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature

__all__ = ["attention"]


def attention(sig: Signature) -> Callable[..., Array]:
    """The function of a node; queries that see no key give 0."""
    causal, window, from_end, _ = sig.attributes

    def attend(q: Array, k: Array, v: Array, scale: Array, length: Array, *mask: Array) -> Array:
        queries, keys = q.shape[2], k.shape[2]
        count = min(max(int(length), 0), keys)
        if k.shape[1] != q.shape[1]:
            k, v = (np.repeat(each, q.shape[1] // each.shape[1], axis=1) for each in (k, v))
        if count < keys:
            v = np.where(np.arange(keys)[:, None] < count, v, v.dtype.type(0))
        scores = np.matmul(q, k.swapaxes(2, 3))
        scores *= scale
        if mask:
            scores = scores + mask[0]
        if causal or count < keys:
            np.copyto(scores, -np.inf, where=_unseen(queries, keys, count, causal, window, from_end))
        lowest = np.finfo(scores.dtype).min
        scores -= np.maximum.reduce(scores, axis=3, keepdims=True, initial=lowest)
        weights = np.exp(scores, scores)
        result: Array = np.matmul(weights, v)
        result /= np.maximum(np.add.reduce(weights, axis=3, keepdims=True), weights.dtype.type(0.5))
        return result

    return attend


@lru_cache(64)
def _unseen(queries: int, keys: int, count: int, causal: bool, window: int, from_end: bool) -> Any:
    """True where a query does not see a key."""
    key = np.arange(keys)
    place = np.arange(queries)[:, None] + (count - queries if from_end else 0)
    unseen = np.broadcast_to(key >= count, (queries, keys))
    if causal:
        unseen = unseen | (key > place) | (key <= place - (window or keys + queries))
    return unseen
