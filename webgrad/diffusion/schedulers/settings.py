"""Settings of schedulers, checked when they are read, so that no step meets one that cannot be.

In: a record of settings. Out: nothing, or a ModelFileError with the setting's name and value. Types are those
of the record's annotations; choices and ranges are rows here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import webgrad as wg

from ..configs import MOST

__all__ = ["check_settings"]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "bool": (bool, type(None)),  # which files have for False
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "str": (str,),
}
_CHOICES: Mapping[str, Sequence[Any]] = {
    "beta_schedule": ("linear", "scaled_linear", "squaredcos_cap_v2", "sigmoid"),
    "prediction_type": ("epsilon", "sample", "v_prediction"),
    "timestep_spacing": ("linspace", "leading", "trailing"),
    "final_sigmas_type": ("zero", "sigma_min"),
    "interpolation_type": ("linear",),
    "variance_type": ("fixed_small", "fixed_small_log", "fixed_large"),
    "solver_order": (1, 2),
    "algorithm_type": ("dpmsolver++", "sde-dpmsolver++"),
    "solver_type": ("midpoint", "heun"),
}
_STEPS = MOST["num_train_timesteps"]
_SMALL, _LARGE = 1e-6, 1e6
_RANGES: Mapping[str, tuple[float, float]] = {  # both ends are allowed
    "num_train_timesteps": (1, _STEPS),
    "original_inference_steps": (1, _STEPS),
    "steps_offset": (0, _STEPS),
    "beta_start": (0, 1),
    "beta_end": (0, 1),
    "eta": (0, 1),
    "clip_sample_range": (_SMALL, _LARGE),
    "timestep_scaling": (_SMALL, _LARGE),
    "shift": (_SMALL, _LARGE),
    "sigma_min": (_SMALL, _LARGE),
    "sigma_max": (_SMALL, _LARGE),
    "lambda_min_clipped": (-math.inf, 100),
}


def check_settings(record: Any) -> None:
    """Raise for a setting of another type, of none of its choices, or out of its range."""
    for each in fields(record):
        value = getattr(record, each.name)
        problem = _problem(each.name, str(each.type), value)
        if problem:
            title = type(record).__name__
            raise wg.ModelFileError(f"{each.name} of {title} is {value!r:.80}, and {problem}")


def _problem(name: str, kind: str, value: Any) -> str:
    """What a value should be and is not."""
    if not _is_of(value, kind):
        return f"it is to be of the type {kind}"
    if name in _CHOICES and value not in _CHOICES[name]:
        return f"there is only {', '.join(map(str, _CHOICES[name]))}"
    if name in _RANGES and value is not None:
        least, most = _RANGES[name]
        return "" if least <= value <= most else f"it is to be from {least:,} to {most:,}"
    return ""


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value is of an annotation's type; a bool is no number."""
    types = _TYPES.get(kind)
    return types is None or (isinstance(value, types) and (bool in types or not isinstance(value, bool)))
