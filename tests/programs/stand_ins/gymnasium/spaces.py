"""What can be observed, and done."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Box", "Discrete"]


class _Space:
    shape: tuple[int, ...]
    dtype: Any

    def seed(self, seed: int | None = None) -> None:
        """Draw the same again."""
        self.rng = np.random.default_rng(seed)


class Box(_Space):
    """Numbers between bounds."""

    def __init__(self, low: float, high: float, shape: tuple[int, ...], dtype: Any = np.float32) -> None:
        self.low, self.high = np.full(shape, low, np.float32), np.full(shape, high, np.float32)
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.seed(0)

    def sample(self) -> Any:
        """Numbers at random."""
        return self.rng.uniform(self.low, self.high).astype(np.float32)


class Discrete(_Space):
    """One of some numbers."""

    def __init__(self, n: int) -> None:
        self.n, self.shape, self.dtype = n, (), np.dtype(np.int64)
        self.seed(0)

    def sample(self) -> int:
        """One of them at random."""
        return int(self.rng.integers(self.n))
