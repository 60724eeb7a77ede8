"""Attention with NumPy in float64, one head at a time: what tests compare with."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["attended", "by_head", "rotated", "softmax", "together"]


def softmax(x: Any) -> Any:
    """Along the last axis; zeros where nothing is seen."""
    largest = x.max(-1, keepdims=True)
    powers = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def by_head(x: Any, heads: int) -> Any:
    """(batch, positions, heads · columns) as (batch, heads, positions, columns)."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def together(x: Any) -> Any:
    """The heads beside each other again."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attended(
    q: Any,
    k: Any,
    v: Any,
    added: Any = 0.0,
    seen: Any = True,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Any:
    """What each query of (batch, heads, positions, columns) gets, and its weights."""
    shared = q.shape[1] // k.shape[1]
    k, v = (each.astype(np.float64).repeat(shared, 1) for each in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if softcap:
        scores = np.tanh(scores / softcap) * softcap
    weights = softmax(np.where(seen, scores + added, -np.inf))
    return weights @ v, weights


def rotated(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """Pairs of columns turned by angles; the rest as it is."""
    count = 2 * cos.shape[-1]
    pairs = (
        (slice(0, count, 2), slice(1, count, 2))
        if interleaved
        else (slice(count // 2), slice(count // 2, count))
    )
    y = x.copy()
    a, b = x[..., pairs[0]], x[..., pairs[1]]
    y[..., pairs[0]], y[..., pairs[1]] = a * cos - b * sin, b * cos + a * sin
    return y
