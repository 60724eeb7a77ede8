"""How much noise a picture has at each of the time steps that a network was trained on.

In: a scheduler's settings. Out: arrays of float64: ᾱ, the square of a picture's share of a noisy one, for
each step of training; and which of these steps, or levels between them, sampling goes through.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from .settings import check_settings

__all__ = [
    "Training",
    "check_offset",
    "check_steps",
    "exponential",
    "karras",
    "kept_shares",
    "levels_of_times",
    "original_of",
    "times_of",
    "times_of_levels",
]


@dataclass(frozen=True)
class Training:
    """The settings that say how a network was trained."""

    num_train_timesteps: int = 1000
    beta_start: float = 0.0001
    beta_end: float = 0.02
    beta_schedule: str = "linear"
    trained_betas: Any = None
    rescale_betas_zero_snr: bool = False
    prediction_type: str = "epsilon"
    steps_offset: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        kept_shares(self)


LEAST = 1e-30  # of a picture's share after training's last step
FLAT = 2.0**-24  # of the last share where no picture is to be left: sigma stays finite


def kept_shares(config: Training, *, flat: bool = False) -> Array:
    """ᾱ after each step of training; `flat` has the last one a little above 0 where it would be 0."""
    betas = _betas(config)
    shares: Array = np.cumprod(1.0 - betas)
    if min(betas.tolist()) <= 0 or max(betas.tolist()) >= 1 or shares[0] >= 1 or not shares[-1] > LEAST:
        raise wg.ModelFileError(
            f"the betas of {type(config).__name__} are to be between 0 and 1, and to leave some of the "
            f"picture after {config.num_train_timesteps} steps: {betas[0]} … {betas[-1]}"
        )
    if not config.rescale_betas_zero_snr:
        return shares
    if len(shares) < 2:
        raise wg.ModelFileError("rescale_betas_zero_snr is True, which needs more than 1 num_train_timesteps")
    roots = np.sqrt(shares)
    roots = (roots - roots[-1]) * (roots[0] / (roots[0] - roots[-1]))
    shares = roots**2
    if flat:
        shares[-1] = FLAT
    return shares


def _betas(config: Training) -> Array:
    """The share of noise that each step of training adds."""
    count, start, end = config.num_train_timesteps, config.beta_start, config.beta_end
    if config.trained_betas is not None:
        return _trained_betas(config.trained_betas, count)
    if config.beta_schedule == "linear":
        return np.linspace(start, end, count)
    if config.beta_schedule == "scaled_linear":
        return np.linspace(start**0.5, end**0.5, count) ** 2
    if config.beta_schedule == "squaredcos_cap_v2":
        return cosine_betas(count)
    return np.asarray(1 / (1 + np.exp(-np.linspace(-6, 6, count))) * (end - start) + start)  # sigmoid


def _trained_betas(given: Any, count: int) -> Array:
    """Shares that a file lists itself, one for each step."""
    is_list = isinstance(given, list | tuple) and len(given) == count
    if not is_list or not all(type(each) in (int, float) and 0 < each < 1 for each in given):
        raise wg.ModelFileError(
            f"trained_betas are as many numbers between 0 and 1 as there are num_train_timesteps, {count}, "
            f"and not {given!r:.80}"
        )
    return np.asarray(given, np.float64)


def cosine_betas(count: int, offset: float = 0.008, largest: float = 0.999) -> Array:
    """Steps after which the picture's share is a squared cosine of the time."""
    angles = (np.arange(count + 1) / count + offset) / (1 + offset) * (math.pi / 2)
    shares = np.cos(angles) ** 2
    return np.asarray(np.minimum(1 - shares[1:] / shares[:-1], largest))


def check_steps(count: Any, most: int) -> None:
    """Raise for a number of steps that cannot be."""
    is_whole = hasattr(count, "__index__") and not isinstance(count, bool)
    if not is_whole or not 1 <= count <= most:
        raise wg.ArgumentError(f"steps are 1 to {most} here, not {count!r}")


def times_of(spacing: str, trained: int, count: int, offset: int = 0) -> Array:
    """Which steps of training sampling goes through, from the noisiest."""
    check_steps(count, trained)
    if spacing == "linspace":
        return np.linspace(0, trained - 1, count)[::-1]
    if spacing == "leading":
        found = (np.arange(count) * (trained // count))[::-1] + float(offset)
        check_offset(offset, float(found[0]), count, trained)
        return found
    return np.round(np.arange(trained, 0, -trained / count))[:count] - 1.0  # trailing


def check_offset(offset: int, first: float, count: int, trained: int) -> None:
    """Raise where an offset has led the first of so many steps beyond those of training."""
    if first >= trained:
        raise wg.ArgumentError(f"steps_offset {offset} leads {count} steps beyond the last of {trained}")


def levels_of_times(shares: Array, times: Array) -> Array:
    """Noise over picture at times, which may lie between two steps of training."""
    levels = np.sqrt((1 - shares) / shares)
    return np.interp(times, np.arange(len(levels)), levels)


def times_of_levels(shares: Array, levels: Array) -> Array:
    """The times of levels of noise, by the logarithms of those of training."""
    logs = 0.5 * np.log((1 - shares) / shares)
    return np.interp(np.log(np.maximum(levels, 1e-10)), logs, np.arange(len(logs)))


def karras(largest: float, smallest: float, count: int) -> Array:
    """Levels whose seventh roots are evenly spaced."""
    return np.linspace(largest ** (1 / 7), smallest ** (1 / 7), count) ** 7


def exponential(largest: float, smallest: float, count: int) -> Array:
    """Levels whose logarithms are evenly spaced."""
    return np.exp(np.linspace(math.log(largest), math.log(smallest), count))


def original_of(kind: str, picture: float, noise: float) -> tuple[float, float]:
    """How the original follows from x = picture · original + noise · ε and the prediction of a kind."""
    if kind == "sample":
        return 0.0, 1.0
    if kind == "v_prediction":
        return picture, -noise
    if picture == 0:
        raise wg.ModelFileError(
            "prediction_type is epsilon, of which no original follows where noise is all there is: "
            "rescale_betas_zero_snr is True"
        )
    return 1 / picture, -noise / picture
