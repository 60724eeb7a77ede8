"""Euler, Euler ancestral, DPM-Solver++ and flow matching: from one level of noise to a lower one.

Euler's x is original + σ · ε. DPM-Solver's is α · original + σ' · ε with α = 1 / √(1 + σ²), σ' = α σ. Flow
matching's is (1 - σ) · original + σ · ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import webgrad as wg

from ...arrays import Array, np
from ..configs import Idle
from .noise_levels import (
    Training,
    check_offset,
    check_steps,
    exponential,
    karras,
    kept_shares,
    levels_of_times,
    original_of,
    times_of,
    times_of_levels,
)
from .rows import Row, Schedule
from .settings import check_settings

__all__ = ["DPMSolver", "Euler", "EulerAncestral", "FlowMatching"]


@dataclass(frozen=True)
class _Levels(Training):
    """The settings that samplers by levels have."""

    timestep_spacing: str = "linspace"
    use_karras_sigmas: bool = False
    use_exponential_sigmas: bool = False
    final_sigmas_type: str = "zero"

    idle: ClassVar[Idle] = {"use_beta_sigmas": (False,)}

    def _last(self, shares: Array) -> float:
        return 0.0 if self.final_sigmas_type == "zero" else float(np.sqrt((1 - shares[0]) / shares[0]))


@dataclass(frozen=True)
class Euler(_Levels):
    """One straight step from each level to the next."""

    interpolation_type: str = "linear"
    sigma_min: float | None = None  # where levels that are spaced anew end and begin
    sigma_max: float | None = None

    idle: ClassVar[Idle] = {**_Levels.idle, "timestep_type": ("discrete",)}

    def schedule(self, steps: int) -> Schedule:
        """The rows of so many steps."""
        shares = kept_shares(self, flat=True)
        times = times_of(self.timestep_spacing, self.num_train_timesteps, steps, self.steps_offset)
        times, levels = self._respaced(shares, times, levels_of_times(shares, times))
        after = [*levels[1:], self._last(shares)]
        rows = [
            self._row(time, level, following)
            for time, level, following in zip(times.tolist(), levels.tolist(), after, strict=True)
        ]
        widest = float(levels.max())
        leading = self.timestep_spacing not in ("linspace", "trailing")
        return Schedule(
            tuple(rows),
            start=math.hypot(widest, 1.0) if leading else widest,
            noised=[(1.0, float(each)) for each in levels],
        )

    def _respaced(self, shares: Array, times: Array, levels: Array) -> tuple[Array, Array]:
        if not (self.use_karras_sigmas or self.use_exponential_sigmas):
            return times, levels
        first = float(levels[0]) if self.sigma_max is None else self.sigma_max
        last = float(levels[-1]) if self.sigma_min is None else self.sigma_min
        if first < last:
            raise wg.ModelFileError(
                f"levels of noise fall from sigma_max to sigma_min, not {first} to {last}"
            )
        spaced = karras if self.use_karras_sigmas else exponential
        levels = spaced(first, last, len(levels))
        return times_of_levels(shares, levels), levels

    def _row(self, time: float, level: float, following: float) -> Row:
        return _euler_row(self.prediction_type, time, level, following, 0.0)


@dataclass(frozen=True)
class EulerAncestral(Euler):
    """A step to a lower level than the next one, and noise up to it."""

    def _row(self, time: float, level: float, following: float) -> Row:
        lower = following**2 / level
        up = math.sqrt(max(following**2 - lower**2, 0.0))
        return _euler_row(self.prediction_type, time, level, lower, up)


def _euler_row(kind: str, time: float, level: float, following: float, noise: float) -> Row:
    """x moves along (x - original) / level."""
    entering = 1 / math.hypot(level, 1.0)
    # The network sees entering · x, whose picture and noise have these shares.
    x, prediction = original_of(kind, entering, level * entering)
    ratio = following / level
    return Row(
        time,
        original_x=x * entering,
        original_prediction=prediction,
        by_x=ratio,
        by_original=1 - ratio,
        by_noise=noise,
        entering=entering,
    )


@dataclass(frozen=True)
class DPMSolver(_Levels):
    """DPM-Solver++ of the first and second order: the original as a line through the last two predictions."""

    solver_order: int = 2
    algorithm_type: str = "dpmsolver++"
    solver_type: str = "midpoint"
    lower_order_final: bool = True
    euler_at_final: bool = False
    lambda_min_clipped: float = -math.inf

    idle: ClassVar[Idle] = {
        **_Levels.idle,
        "thresholding": (False,),
        "dynamic_thresholding_ratio": (),
        "sample_max_value": (),
        "variance_type": (),
        "use_lu_lambdas": (False,),
        "use_flow_sigmas": (False,),
        "flow_shift": (),
        "use_dynamic_shifting": (False,),
        "time_shift_type": (),
    }

    def schedule(self, steps: int, begin: int = 0) -> Schedule:
        """The rows of so many steps, of which the first `begin` are not made."""
        check_steps(steps, self.num_train_timesteps - 1)
        shares = kept_shares(self, flat=True)
        times, levels = self._levels(shares, steps)
        every = [*levels.tolist(), self._last(shares)]
        rows = [self._row(every, at, time, at == begin) for at, time in enumerate(times.tolist())]
        kept = [1 / math.hypot(each, 1.0) for each in levels.tolist()]
        noised = [(each, each * level) for each, level in zip(kept, levels.tolist(), strict=True)]
        return Schedule(tuple(rows), noised=noised)

    def _levels(self, shares: Array, steps: int) -> tuple[Array, Array]:
        logs = 0.5 * np.log(shares / (1 - shares))
        trained = self.num_train_timesteps - int(np.searchsorted(logs[::-1], self.lambda_min_clipped))
        check_steps(steps, trained)
        if self.timestep_spacing == "trailing":
            stride = self.num_train_timesteps / steps
            times = np.round(np.arange(trained, 0, -stride))[:steps] - 1
        else:
            times = times_of(self.timestep_spacing, trained, steps + 1, 0)[:-1]
            times = np.round(times) + (self.steps_offset if self.timestep_spacing == "leading" else 0)
            check_offset(self.steps_offset, float(times[0]), steps, self.num_train_timesteps)
        if not (self.use_karras_sigmas or self.use_exponential_sigmas):
            return times, levels_of_times(shares, times)
        ends = np.sqrt((1 - shares[[-1, 0]]) / shares[[-1, 0]])
        spaced = karras if self.use_karras_sigmas else exponential
        levels = spaced(float(ends[0]), float(ends[1]), steps)
        times = times_of_levels(shares, levels)
        rounds = self.use_karras_sigmas and self.beta_schedule != "squaredcos_cap_v2"
        return np.round(times) if rounds else np.trunc(times), levels

    def _row(self, levels: list[float], at: int, time: float, is_first: bool) -> Row:
        level, following = levels[at], levels[at + 1]
        is_last = at == len(levels) - 2
        ends_low = is_last and (
            self.euler_at_final or (self.lower_order_final and len(levels) < 16) or following == 0
        )
        # The last level may be that of sigma_min itself.
        step = math.inf if following == 0 else max(math.log(level / following), 0.0)
        second = self.solver_order == 2 and not is_first and at > 0 and not ends_low and step > 0
        alpha, beta = _picture(level), _picture(following)
        original = original_of(self.prediction_type, alpha, alpha * level)
        scatters = self.algorithm_type == "sde-dpmsolver++"
        rest = (following * beta) / (level * alpha) * (math.exp(-step) if scatters else 1.0)
        drawn = -math.expm1(-2 * step if scatters else -step)
        noise = following * beta * math.sqrt(-math.expm1(-2 * step)) if scatters else 0.0
        slope = 0.0
        if second:
            ratio = math.log(levels[at - 1] / level) / step
            slope = beta * _slope(self.solver_type, step, drawn, scatters) / ratio
        return Row(
            time,
            *original,
            by_x=rest,
            by_original=beta * drawn + slope,
            by_before=-slope,
            by_noise=noise,
        )


def _picture(level: float) -> float:
    """The picture's share at a level of noise over picture."""
    return 1 / math.hypot(level, 1.0)


def _slope(kind: str, step: float, drawn: float, scatters: bool) -> float:
    """What the line's slope counts for, for a step of logarithms of levels."""
    if kind == "midpoint":
        return 0.5 * drawn
    return 1 - drawn / (2 * step if scatters else step)


@dataclass(frozen=True)
class FlowMatching:
    """Straight lines between noise and picture; the network predicts noise - picture."""

    num_train_timesteps: int = 1000
    shift: float = 1.0
    use_karras_sigmas: bool = False
    use_exponential_sigmas: bool = False

    idle: ClassVar[Idle] = {
        "use_dynamic_shifting": (False,),
        "base_shift": (),
        "max_shift": (),
        "base_image_seq_len": (),
        "max_image_seq_len": (),
        "invert_sigmas": (False,),
        "use_beta_sigmas": (False,),
        "time_shift_type": (),
        "stochastic_sampling": (False,),
    }

    def __post_init__(self) -> None:
        check_settings(self)

    def schedule(self, steps: int) -> Schedule:
        """The rows of so many steps."""
        check_steps(steps, self.num_train_timesteps)
        ends = self._shifted(np.asarray([1.0, 1 / self.num_train_timesteps]))
        levels = self._shifted(np.linspace(ends[0], ends[1], steps))
        if self.use_karras_sigmas or self.use_exponential_sigmas:
            spaced = karras if self.use_karras_sigmas else exponential
            levels = spaced(float(levels[0]), float(levels[-1]), steps)
        every = [*levels.tolist(), 0.0]
        rows = [
            Row(
                every[at] * self.num_train_timesteps,
                original_x=1.0,
                original_prediction=-every[at],
                by_x=1.0,
                by_prediction=every[at + 1] - every[at],
            )
            for at in range(steps)
        ]
        return Schedule(tuple(rows), noised=[(1 - each, each) for each in every[:-1]])

    def _shifted(self, levels: Array) -> Array:
        found: Array = self.shift * levels / (1 + (self.shift - 1) * levels)
        return found
