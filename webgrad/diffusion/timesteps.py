"""Numbers as vectors: a time step, or any other number that a network is conditioned by.

In: numbers (n,). Out: their vectors (n, width).
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg
from webgrad import nn

from .activations import activation

__all__ = ["FourierFeatures", "TimestepEmbedding", "sinusoids", "time_of_each"]

LONGEST = 10_000.0  # the longest period, in time steps over 2 π


def sinusoids(
    numbers: wg.Tensor, width: int, *, cosine_first: bool = False, shift: float = 1.0, scale: float = 1.0
) -> wg.Tensor:
    """Sines and cosines of numbers at `width` / 2 frequencies, which fall from 1 geometrically.

    `shift` is taken from the count of the frequencies: with 1 the last of them is 1 / 10000, with 0 it would
    be the next one.

    >>> sinusoids(wg.asarray([0.0, 1.0]), 4).shape
    (2, 4)
    """
    half = width // 2
    places = wg.arange(half, dtype=wg.float32, device=numbers.device)
    frequencies = wg.exp(places * (-math.log(LONGEST) / (half - shift)))
    angles = wg.expand_dims(numbers.astype(wg.float32), -1) * frequencies * scale
    parts = [wg.sin(angles), wg.cos(angles)]
    found: wg.Tensor = wg.concat(parts[::-1] if cosine_first else parts, axis=-1)
    return wg.pad(found, ((0, 0), (0, 1))) if width % 2 else found


def time_of_each(x: wg.Tensor, steps: Any) -> wg.Tensor:
    """A time step for each picture of x, of one for all or of one each."""
    given = steps if isinstance(steps, wg.Tensor) else wg.asarray(steps, device=x.device)
    return wg.broadcast_to(given.reshape(-1), (x.shape[0],))


class TimestepEmbedding(nn.Module):
    """linear_2(activation(linear_1(x)))."""

    def __init__(self, inputs: int, width: int, act_fn: str = "silu", condition: int | None = None) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(inputs, width)
        self.linear_2 = nn.Linear(width, width)
        self.activation = activation(act_fn)
        if condition is not None:
            self.cond_proj = nn.Linear(condition, inputs, bias=False)

    def forward(self, x: wg.Tensor, condition: wg.Tensor | None = None) -> wg.Tensor:
        """x (n, inputs), to which a condition's projection is added."""
        if condition is not None:
            x = x + self.cond_proj(condition)
        found: wg.Tensor = self.linear_2(self.activation(self.linear_1(x)))
        return found


class FourierFeatures(nn.Module):
    """Sines and cosines of a number's logarithm at frequencies that were drawn once."""

    def __init__(self, width: int, scale: float) -> None:
        super().__init__()
        self.register_buffer("weight", wg.random.normal((width,)) * scale)

    def forward(self, numbers: wg.Tensor, cosine_first: bool = False) -> wg.Tensor:
        """The features of numbers (n,): (n, 2 · width)."""
        angles = wg.log(numbers)[:, None] * self.weight[None, :] * (2 * math.pi)
        parts = [wg.sin(angles), wg.cos(angles)]
        found: wg.Tensor = wg.concat(parts[::-1] if cosine_first else parts, axis=-1)
        return found
