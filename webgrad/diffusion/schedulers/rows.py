"""A scheduler's steps as rows of numbers: every sampler here is linear in what a step knows.

In: a picture x, the network's prediction, the originals that were predicted before, noise. Out: the next x.

    original = clip(original_x · x + original_prediction · prediction)
    next     = by_x · x + by_prediction · prediction + by_original · original + by_before · before
               + by_noise · noise

A sampler that knows more than one step before has more of these, and may keep predictions instead of
originals. So a step is one function, captured once; what differs between steps and samplers is the row, whose
numbers are computed on the host in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import webgrad as wg

__all__ = ["NUMBERS", "Row", "Schedule", "next_picture"]

# What a captured step takes of a row, in this order
NUMBERS = (
    "original_x",
    "original_prediction",
    "by_x",
    "by_prediction",
    "by_original",
    "by_before",
    "by_noise",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One step."""

    timestep: float  # what the network is told
    original_x: float
    original_prediction: float
    by_x: float = 0.0
    by_prediction: float = 0.0
    by_original: float = 0.0
    by_before: float = 0.0
    by_noise: float = 0.0
    entering: float = 1.0  # what x is multiplied by for the network

    @property
    def numbers(self) -> list[float]:
        """What a captured step takes, by `NUMBERS`."""
        return [getattr(self, name) for name in NUMBERS]


@dataclass(frozen=True, slots=True)
class Schedule:
    """All steps from noise to a picture."""

    rows: tuple[Row, ...]
    start: float = 1.0  # the standard deviation of the noise that everything begins with
    clip: float | None = None  # the largest absolute value of an original
    keeps_prediction: bool = False  # whether what comes before is a prediction, not an original
    # For each step, by what those before the one before count; from newer to older
    earlier: Sequence[tuple[float, ...]] = field(default=())
    # For each step, what a picture and noise are multiplied by to be where that step begins.
    noised: Sequence[tuple[float, float]] = field(default=())


def next_picture(
    x: wg.Tensor,
    prediction: wg.Tensor,
    before: wg.Tensor,
    noise: wg.Tensor | None,
    numbers: Sequence[float],
    clip: float | None = None,
    older: Sequence[wg.Tensor] = (),
    shares: Sequence[float] = (),
) -> tuple[wg.Tensor, wg.Tensor]:
    """The next x, and the original that this step predicts, which is most samplers' next `before`.

    `older` are what was `before` in steps before the last one, and `shares` by what they count.
    """
    row = dict(zip(NUMBERS, numbers, strict=True))
    original = x * row["original_x"] + prediction * row["original_prediction"]
    if clip is not None:
        original = wg.clip(original, -clip, clip)
    found = x * row["by_x"] + prediction * row["by_prediction"]
    found = found + original * row["by_original"] + before * row["by_before"]
    for each, share in zip(older, shares, strict=True):
        found = found + each * share
    return (found if noise is None else found + noise * row["by_noise"]), original
