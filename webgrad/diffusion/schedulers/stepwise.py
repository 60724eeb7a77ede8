"""DDPM, DDIM and LCM: samplers that go from one step of training to an earlier one.

With x = √ᾱ · original + √(1 - ᾱ) · ε, each of them computes the original and ε, and mixes them anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import webgrad as wg

from ...arrays import Array, np
from ..configs import Idle
from .noise_levels import Training, check_steps, kept_shares, original_of, times_of
from .rows import Row, Schedule

__all__ = ["DDIM", "DDPM", "LCM"]


@dataclass(frozen=True)
class _Stepwise(Training):
    """The settings that all three have."""

    clip_sample: bool = True
    clip_sample_range: float = 1.0
    timestep_spacing: str = "leading"

    idle: ClassVar[Idle] = {
        "thresholding": (False,),
        "dynamic_thresholding_ratio": (),
        "sample_max_value": (),
    }

    def _schedule(self, rows: list[Row], shares: Array, times: Array) -> Schedule:
        kept = [shares[int(time)] for time in times]
        return Schedule(
            tuple(rows),
            clip=self.clip_sample_range if self.clip_sample else None,
            noised=[(math.sqrt(each), math.sqrt(1 - each)) for each in kept],
        )


@dataclass(frozen=True)
class DDPM(_Stepwise):
    """Ancestral sampling: the mean of what may have been before, and noise of a fixed variance."""

    variance_type: str = "fixed_small"

    def schedule(self, steps: int) -> Schedule:
        """The rows of so many steps."""
        shares = kept_shares(self)
        times = np.round(times_of(self.timestep_spacing, self.num_train_timesteps, steps, self.steps_offset))
        every = [*times.astype(int).tolist(), None]
        rows = []
        for time, following in pairwise(every):
            kept = float(shares[time])
            before = 1.0 if following is None else float(shares[following])
            ratio = kept / before
            small = max((1 - before) / (1 - kept) * (1 - ratio), 1e-20)
            spread = {"fixed_small": small, "fixed_small_log": small, "fixed_large": 1 - ratio}
            rows.append(
                Row(
                    float(time),
                    *original_of(self.prediction_type, math.sqrt(kept), math.sqrt(1 - kept)),
                    by_x=math.sqrt(ratio) * (1 - before) / (1 - kept),
                    by_original=math.sqrt(before) * (1 - ratio) / (1 - kept),
                    by_noise=math.sqrt(spread[self.variance_type]) if time > 0 else 0.0,
                )
            )
        return self._schedule(rows, shares, times)


@dataclass(frozen=True)
class DDIM(_Stepwise):
    """The same noise all the way; `eta` from 0 to 1 is the share of new noise, 1 is as DDPM."""

    set_alpha_to_one: bool = True
    eta: float = 0.0

    def schedule(self, steps: int) -> Schedule:
        """The rows of so many steps."""
        shares = kept_shares(self)
        times = np.round(times_of(self.timestep_spacing, self.num_train_timesteps, steps, self.steps_offset))
        stride = self.num_train_timesteps // steps
        last = 1.0 if self.set_alpha_to_one else float(shares[0])
        rows = []
        for time in times.astype(int):
            kept = float(shares[time])
            before = float(shares[time - stride]) if time >= stride else last
            spread = self.eta**2 * (1 - before) / (1 - kept) * (1 - kept / before)
            picture, noise = math.sqrt(kept), math.sqrt(1 - kept)
            by_noise0 = math.sqrt(max(1 - before - spread, 0.0))
            # ε of what the network says, not of an original that was clipped
            x, prediction = _noise_of(self.prediction_type, picture, noise)
            rows.append(
                Row(
                    float(time),
                    *original_of(self.prediction_type, picture, noise),
                    by_x=by_noise0 * x,
                    by_prediction=by_noise0 * prediction,
                    by_original=math.sqrt(before),
                    by_noise=math.sqrt(spread),
                )
            )
        return self._schedule(rows, shares, times)


def _noise_of(kind: str, picture: float, noise: float) -> tuple[float, float]:
    """How ε follows from x and the prediction of a kind."""
    if kind == "epsilon":
        return 0.0, 1.0
    if kind == "sample":
        return 1 / noise, -picture / noise
    return noise, picture


@dataclass(frozen=True)
class LCM(_Stepwise):
    """Latent consistency: each step predicts the original, which noise of the next level is put on."""

    beta_start: float = 0.00085
    beta_end: float = 0.012
    beta_schedule: str = "scaled_linear"
    clip_sample: bool = False
    original_inference_steps: int = 50
    timestep_scaling: float = 10.0

    idle: ClassVar[Idle] = {**_Stepwise.idle, "set_alpha_to_one": ()}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.original_inference_steps > self.num_train_timesteps:
            raise wg.ModelFileError(
                f"original_inference_steps are {self.original_inference_steps}, more than the "
                f"{self.num_train_timesteps} num_train_timesteps"
            )

    def schedule(self, steps: int) -> Schedule:
        """The rows of so many steps."""
        check_steps(steps, self.original_inference_steps)
        shares = kept_shares(self)
        stride = self.num_train_timesteps // self.original_inference_steps
        every = (np.arange(1, self.original_inference_steps + 1) * stride - 1)[::-1]
        times = every[np.floor(np.linspace(0, len(every), steps, endpoint=False)).astype(int)]
        rows = []
        for at, time in enumerate(times):
            kept = float(shares[time])
            scaled = float(time) * self.timestep_scaling
            skip = 0.25 / (scaled**2 + 0.25)
            out = scaled / math.sqrt(scaled**2 + 0.25)
            is_last = at == len(times) - 1
            before = 1.0 if is_last else float(shares[times[at + 1]])
            rows.append(
                Row(
                    float(time),
                    *original_of(self.prediction_type, math.sqrt(kept), math.sqrt(1 - kept)),
                    by_x=math.sqrt(before) * skip,
                    by_original=math.sqrt(before) * out,
                    by_noise=math.sqrt(1 - before),
                )
            )
        return self._schedule(rows, shares, times)
