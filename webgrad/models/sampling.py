"""Choosing the next token, on the device: only its number is ever read.

In: logits (vocabulary,), and a `Sampling`. Out: one token. What it is chosen by (the likeliest k, say) is
part of a captured step's structure; the numbers are run-time numbers, so changing them captures nothing anew.
Draws are the largest of the logits with Gumbel noise added, which chooses by their probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, NamedTuple

import webgrad as wg

__all__ = ["Kind", "Sampling", "choose"]


class Kind(NamedTuple):
    """What a choice is made of: the structure of its kernels."""

    draws: bool
    top_k: bool
    top_p: bool
    min_p: bool
    penalty: bool


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. Temperature 0 takes the likeliest; 0, 1, 0 and 1 switch the others off."""

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise wg.ArgumentError(f"{each.name} is a number, not {value!r}")
        bounds = {
            "temperature": (self.temperature >= 0, "0 or more"),
            "top_k": (
                self.top_k >= 0 and self.top_k == int(self.top_k),
                "an integer; 0 takes all tokens",
            ),
            "top_p": (0 < self.top_p <= 1, "above 0 and at most 1"),
            "min_p": (0 <= self.min_p < 1, "from 0 to below 1"),
            "repetition_penalty": (self.repetition_penalty > 0, "above 0; 1 is none"),
        }
        for name, (fits, told) in bounds.items():
            if not fits:
                raise wg.ArgumentError(f"{name} must be {told}, not {getattr(self, name)!r}")

    @property
    def kind(self) -> Kind:
        """What is switched on."""
        draws = self.temperature > 0
        return Kind(
            draws,
            draws and self.top_k > 0,
            draws and self.top_p < 1,
            draws and self.min_p > 0,
            self.repetition_penalty != 1,
        )

    @property
    def numbers(self) -> tuple[float, int, float, float, float]:
        """The numbers that a step takes, in the order of `choose`."""
        return (
            float(self.temperature or 1.0),
            int(self.top_k),
            float(self.top_p),
            math.log(self.min_p) if self.min_p > 0 else 0.0,
            float(self.repetition_penalty),
        )


def choose(
    logits: wg.Tensor, kind: Kind, numbers: Any, seen: wg.Tensor, generator: wg.random.Generator
) -> wg.Tensor:
    """The next token, 0-d of int32. `seen` (vocabulary,) is 1 where a token was in the text so far."""
    temperature, top_k, top_p, log_min_p, penalty = numbers
    logits = logits.astype(wg.float32, copy=False)
    if kind.penalty:
        weakened = wg.where(logits > 0, logits / penalty, logits * penalty)
        logits = wg.where(seen > 0, weakened, logits)
    if not kind.draws:
        return wg.argmax(logits).astype(wg.int32)
    logits = logits / temperature
    if kind.top_k or kind.top_p:
        logits = wg.where(logits >= _least(logits, kind, top_k, top_p), logits, -math.inf)
    if kind.min_p:
        logits = wg.where(logits >= logits.max() + log_min_p, logits, -math.inf)
    noise = -wg.log(-wg.log(generator.uniform(logits.shape, low=1e-20, high=1.0, device=logits.device)))
    return wg.argmax(logits + noise).astype(wg.int32)


def _least(logits: wg.Tensor, kind: Kind, top_k: Any, top_p: Any) -> wg.Tensor:
    """The smallest logit that may be taken, of those sorted by size.

    Of the likeliest k those are taken whose predecessors have less than p of the probability between them.
    """
    ordered = wg.sort(logits, descending=True)
    place = wg.arange(ordered.shape[0], dtype=wg.int32, device=logits.device)
    kept = place < top_k if kind.top_k else place >= 0
    if kind.top_p:
        weights = wg.where(kept, wg.exp(ordered - ordered[0]), 0.0)
        before = wg.cumulative_sum(weights) - weights
        kept = wg.logical_and(kept, before < top_p * weights.sum())
    return wg.where(kept, ordered, math.inf).min()
