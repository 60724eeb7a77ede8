"""Attention by BLAS: blocks of queries over the keys that they see, with few scores in memory.

In: arrays as an attend node takes them, half floats as they are stored. Out: (batches, heads, queries,
columns), wide. A block's scores fit into the cache, and keys that no query of it sees are never read. Blocks
go one after another; their products, and what is between those, are shared out to threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature
from ..native.attending import attend
from ..runtime.threads import cores, share
from .products import multiply

__all__ = ["attention"]

SCORES = 1 << 18  # scores of a block, about: BLAS is slow with fewer rows than these leave
LEAST_QUERIES = 64  # of a block, so that fewer keys are looked at
WORTH_IT = 1 << 16  # scores from which threads share them
MANY_ROWS = 64  # from which BLAS adds them up


@dataclass(frozen=True, slots=True)
class _Block:
    """Queries start..stop of some heads of keys in one batch."""

    batch: int
    heads: slice
    start: int
    stop: int


def attention(sig: Signature, dtype: np.dtype[Any]) -> Callable[..., Array]:
    """The function that computes a node, in a dtype."""
    causal, window, from_end, _ = sig.attributes

    def compute(q: Array, k: Array, v: Array, scale: Array, length: Array, *mask: Array) -> Array:
        batches, heads, queries, _ = q.shape
        group = heads // k.shape[1]
        count = min(max(int(length), 0), k.shape[2])
        result = np.empty((batches, heads, queries, v.shape[3]), dtype)
        shift = 1 + (count - queries if from_end else 0)  # of the key after the last that a query sees

        if dtype == np.float32 and not mask:
            rule = bool(causal), shift, window or 0
            if attend(q, k, v, float(scale), count, rule, result):
                return result

        def seen(query: int) -> tuple[int, int]:
            end = query + shift if causal else count
            return max(end - window, 0) if causal and window else 0, min(max(end, 0), count)

        def block(each: _Block) -> None:
            own = slice(each.heads.start * group, each.heads.stop * group)
            low, high = seen(each.start)[0], seen(each.stop - 1)[1]
            into = result[each.batch, own, each.start : each.stop]
            if low >= high:
                into[...] = 0
                return
            rows = q[each.batch, own, each.start : each.stop].astype(dtype, copy=False) * dtype.type(scale)
            keys, values = (x[each.batch, each.heads, low:high].astype(dtype, copy=False) for x in (k, v))
            folded = (keys.shape[0], group * (each.stop - each.start))
            scores = np.empty((*folded, high - low), dtype)
            multiply(rows.reshape((*folded, -1)), _readable(keys).swapaxes(1, 2), scores)
            parts = scores.reshape((*rows.shape[:2], high - low))
            if mask:
                parts += _part(mask[0], each.batch, own, slice(each.start, each.stop), slice(low, high))
            if causal:
                _hide(parts, low, each.start + shift, window)
            weights, total = _softmax(scores)
            mixed = into if group == 1 else np.empty((*folded, v.shape[3]), dtype)
            multiply(weights, _readable(values), mixed)
            mixed /= total
            if mixed is not into:
                into[...] = mixed.reshape(into.shape)

        for each in _blocks(batches, k.shape[1], group, queries, count, causal):
            block(each)
        return result

    return compute


def _blocks(batches: int, heads: int, group: int, queries: int, keys: int, causal: bool) -> list[_Block]:
    """Blocks of queries; where a head has few scores, of several heads."""
    rows = max(SCORES // max(keys * group, 1), 1)
    side = min(rows, max(queries, 1))
    if causal:  # the more blocks, the fewer keys they see
        side = min(side, max(LEAST_QUERIES, queries // 4))
    together = max(1, min(rows // side, heads))
    return [
        _Block(batch, slice(head, min(head + together, heads)), start, min(start + side, queries))
        for start in range(0, queries, side)
        for batch in range(batches)
        for head in range(0, heads, together)
    ]


def _readable(x: Array) -> Array:
    """x, copied if BLAS could not read its matrices as they lie."""
    return x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x)


def _part(mask: Array, batch: int, *ranges: slice) -> Array:
    """The part of a mask for a block; axes of side 1 stay whole."""
    index = tuple(
        slice(None) if side == 1 else each for side, each in zip(mask.shape[1:], ranges, strict=True)
    )
    whole: Array = mask[batch if mask.shape[0] > 1 else 0]
    return whole[index]


def _hide(scores: Array, low: int, end: int, window: int) -> None:
    """Scores (heads, queries, keys from `low` on) that a query does not see become -inf.

    The first query sees keys before `end`, each further one a key more.
    """
    queries, keys = scores.shape[1:]
    ends = np.arange(queries)[:, None] + (end - low)
    first = min(max(end - low, 0), keys)  # keys before it are seen by all, but for the window
    if first < keys:
        _hide_where(scores[:, :, first:], np.arange(first, keys) >= ends)
    if window:
        last = min(max(end - low + queries - 1 - window, 0), keys)
        _hide_where(scores[:, :, :last], np.arange(last) < ends - window)


def _hide_where(scores: Array, hidden: Array) -> None:
    scores += np.where(hidden, scores.dtype.type(-np.inf), scores.dtype.type(0))


def _softmax(scores: Array) -> tuple[Array, Array]:
    """Weights in the place of scores, and their sums: at least 1 where any key is seen."""
    lines = scores.reshape(-1, scores.shape[2])
    lowest = np.finfo(scores.dtype).min

    def work(parts: Iterator[Array]) -> None:
        with np.errstate(all="ignore"):
            for each in parts:
                largest = each.max(axis=1, keepdims=True)
                np.maximum(largest, lowest, out=largest)
                each -= largest
                np.exp(each, out=each)

    share(work, np.array_split(lines, cores()) if scores.size >= WORTH_IT else [lines])
    if lines.shape[0] < MANY_ROWS:
        total = scores.sum(axis=2, keepdims=True)
    else:  # BLAS adds quicker than NumPy
        total = np.empty((*scores.shape[:2], 1), scores.dtype)
        multiply(scores, np.ones((scores.shape[2], 1), scores.dtype), total)
    return scores, np.maximum(total, scores.dtype.type(0.5))
