"""PNDM: the noise of the next step out of the last four predictions, as linear multistep methods have it.

With x = √ᾱ · original + √(1 - ᾱ) · ε. The second step goes over the first one again with the mean of both
predictions, so there is a step more than is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import webgrad as wg

from ...arrays import Array, np
from ..configs import Idle
from .noise_levels import Training, kept_shares, original_of, times_of
from .rows import Row, Schedule

__all__ = ["PNDM"]

# By how many predictions there are: what the newest and the older ones count for
_WEIGHTS: Mapping[int, Sequence[float]] = {
    1: (1.0,),
    2: (3 / 2, -1 / 2),
    3: (23 / 12, -16 / 12, 5 / 12),
    4: (55 / 24, -59 / 24, 37 / 24, -9 / 24),
}
OLDEST = 4  # how many steps back a prediction may be


@dataclass(frozen=True)
class PNDM(Training):
    """Linear multistep with up to four predictions; the Runge-Kutta steps before it are left out."""

    skip_prk_steps: bool = True
    set_alpha_to_one: bool = False
    timestep_spacing: str = "leading"

    idle: ClassVar[Idle] = {"clip_sample": (False,)}  # which old files have, and nobody obeys

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.skip_prk_steps:
            raise wg.ModelFileError("PNDM is here with skip_prk_steps=True, without the Runge-Kutta steps")
        if self.prediction_type not in ("epsilon", "v_prediction"):
            raise wg.ModelFileError(f"there is no prediction_type {self.prediction_type!r} of PNDM")
        if self.rescale_betas_zero_snr:
            raise wg.ModelFileError("there is no rescale_betas_zero_snr of PNDM")

    def schedule(self, steps: int, begin: int = 0) -> Schedule:
        """The rows of so many steps, of which the first `begin` are not made."""
        shares = kept_shares(self)
        found = times_of(self.timestep_spacing, self.num_train_timesteps, steps, self.steps_offset)
        times = np.round(found).astype(int).tolist()
        times = [*times[:2], *times[1:]]
        moves = self._moves(shares, times, begin, self.num_train_timesteps // steps)
        rows, earlier = [], []
        for at, time in enumerate(times):
            kept = math.sqrt(shares[time]), math.sqrt(1 - shares[time])
            by_x, by_predictions = _combined(moves[: max(at - begin, 0) + 1])
            rows.append(
                Row(
                    float(time),
                    *original_of(self.prediction_type, *kept),
                    by_x=by_x,
                    by_prediction=by_predictions[0],
                    by_before=by_predictions[1],
                )
            )
            earlier.append(tuple(by_predictions[2:]))
        noised = [(math.sqrt(shares[time]), math.sqrt(1 - shares[time])) for time in times]
        return Schedule(tuple(rows), noised=noised, earlier=earlier, keeps_prediction=True)

    def _moves(
        self, shares: Array, times: Sequence[int], begin: int, stride: int
    ) -> list[tuple[float, float]]:
        """What x and a prediction are multiplied by in each step that is made."""
        found = []
        for number, time in enumerate(times[begin:]):
            start = time + stride if number == 1 else time  # the second one makes the first one's move again
            found.append(self._move(shares, start, start - stride))
        return found

    def _move(self, shares: Array, time: int, following: int) -> tuple[float, float]:
        kept = float(shares[time])
        last = 1.0 if self.set_alpha_to_one else float(shares[0])
        before = float(shares[following]) if following >= 0 else last
        by_x = math.sqrt(before / kept)
        by_noise = (kept - before) / (kept * math.sqrt(1 - before) + math.sqrt(kept * (1 - kept) * before))
        if self.prediction_type == "epsilon":
            return by_x, by_noise
        return by_x + by_noise * math.sqrt(1 - kept), by_noise * math.sqrt(kept)


def _combined(moves: Sequence[tuple[float, float]]) -> tuple[float, list[float]]:
    """By what x and the predictions, from the newest, count in the last of these steps."""
    at, (by_x, by_prediction) = len(moves) - 1, moves[-1]
    found = [0.0] * (OLDEST + 1)
    if at == 1:  # from where the first step began, which x and its prediction say
        first_x, first_prediction = moves[0]
        mean = by_prediction / 2
        return by_x / first_x, [mean, mean - by_x / first_x * first_prediction, *found[2:]]
    counted = [each for each in range(at, -1, -1) if each != 1][:OLDEST]
    for step, weight in zip(counted, _WEIGHTS[len(counted)], strict=True):
        found[at - step] = by_prediction * weight
    return by_x, found
