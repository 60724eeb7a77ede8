"""Keys and values of the positions that a model has seen, on its device.

In: the keys and values of new positions, and queries. Out: what the queries attend to. There is room for
more positions than are used, so that a position is a run-time number, and a longer text is no new plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import webgrad as wg

from .settings import Settings

__all__ = ["Cache", "Places"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where new tokens stand: their positions, (n,) of int32, and how many positions there are with them."""

    positions: wg.Tensor
    length: Any

    @classmethod
    def after(cls, position: Any, count: int, device: Any) -> Places:
        """The next `count` places from a position on, which is a number or a 0-d tensor."""
        return cls(wg.arange(count, dtype=wg.int32, device=device) + position, position + count)


class Cache:
    """Keys and values of one layer, side by side so that both are one write: (room, 2, heads, columns)."""

    def __init__(self, settings: Settings, room: int, device: Any, dtype: wg.DType = wg.float32) -> None:
        shape = (room, 2, settings.key_heads, settings.head_width)
        self.stored = wg.zeros(shape, dtype=dtype, device=device)

    def write(self, places: Places, keys: wg.Tensor, values: wg.Tensor) -> None:
        """Put new keys and values, (n, heads, columns), at their places."""
        self.stored[places.positions] = wg.stack([keys, values], axis=1).astype(self.stored.dtype, copy=False)

    def attended(
        self, places: Places, queries: wg.Tensor, scale: float, window: int | None = None
    ) -> wg.Tensor:
        """What each query, (n, heads, columns), makes of the values up to its place: (n, heads · columns)."""
        keys, values = (self.stored[:, part].permute(1, 0, 2) for part in range(2))
        attended = wg.scaled_dot_product_attention(
            queries.permute(1, 0, 2),
            keys,
            values,
            is_causal=True,
            scale=scale,
            enable_gqa=True,
            window=window,
            length=places.length,
        )
        return attended.permute(1, 0, 2).reshape(queries.shape[0], -1)

    def grow(self, room: int) -> None:
        """Make room for more positions; what is there stays."""
        old = self.stored
        larger = wg.zeros((room, *old.shape[1:]), dtype=old.dtype, device=old.device)
        larger[: old.shape[0]] = old
        self.stored = larger  # only now: Ctrl-C may come at any time
