"""Würstchen's sampler: ancestral steps between times from 1 to 0, along a squared cosine.

With x = √ᾱ · original + √(1 - ᾱ) · ε, as of DDPM; the network is told the time itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from ..configs import Idle
from .noise_levels import check_steps, original_of
from .rows import Row, Schedule

__all__ = ["DDPMWuerstchen"]

MOST_STEPS = 1000
SHARES = (0.0001, 0.9999)  # what a picture's squared share is kept between


@dataclass(frozen=True)
class DDPMWuerstchen:
    """Ancestral sampling with a continuous time; a `scaler` above 1 stays longer with much noise."""

    scaler: float = 1.0
    s: float = 0.008

    idle: ClassVar[Idle] = {}

    def schedule(self, steps: int) -> Schedule:
        """The rows of so many steps, evenly spaced."""
        check_steps(steps, MOST_STEPS)
        return self.of_times([1 - at / steps for at in range(steps + 1)])

    def of_times(self, times: Sequence[float]) -> Schedule:
        """The rows of steps between times, the last of which is where sampling ends."""
        shares = [self._share(each) for each in times]
        rows = [
            _row(time, kept, before, ends=following == 0)
            for (time, following), (kept, before) in zip(pairwise(times), pairwise(shares), strict=True)
        ]
        return Schedule(tuple(rows), noised=[(math.sqrt(each), math.sqrt(1 - each)) for each in shares[:-1]])

    def _share(self, time: float) -> float:
        """ᾱ at a time."""
        if self.scaler > 1:
            time = 1 - (1 - time) ** self.scaler
        elif self.scaler < 1:
            time = time**self.scaler
        angles = [(each + self.s) / (1 + self.s) * math.pi / 2 for each in (time, 0.0)]
        share = (math.cos(angles[0]) / math.cos(angles[1])) ** 2
        return min(max(share, SHARES[0]), SHARES[1])


def _row(time: float, kept: float, before: float, ends: bool) -> Row:
    """From ᾱ = `kept` to that of the time before it."""
    ratio = kept / before
    spread = (1 - ratio) * (1 - before) / (1 - kept)
    return Row(
        time,
        *original_of("epsilon", math.sqrt(kept), math.sqrt(1 - kept)),
        by_x=math.sqrt(1 / ratio),
        by_prediction=-math.sqrt(1 / ratio) * (1 - ratio) / math.sqrt(1 - kept),
        by_noise=0.0 if ends else math.sqrt(spread),
    )
