"""Schedulers: how noise becomes a picture in some number of steps, by diffusers' names and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import webgrad as wg

from ..configs import read_config
from .continuous import DDPMWuerstchen
from .levels import DPMSolver, Euler, EulerAncestral, FlowMatching
from .multistep import PNDM
from .noise_levels import Training
from .rows import Row, Schedule, next_picture
from .stepwise import DDIM, DDPM, LCM

__all__ = [
    "DDIM",
    "DDPM",
    "LCM",
    "PNDM",
    "DDPMWuerstchen",
    "DPMSolver",
    "Euler",
    "EulerAncestral",
    "FlowMatching",
    "Row",
    "Schedule",
    "next_picture",
    "schedule_from",
    "scheduler_named",
    "scheduler_of",
]

# by the names of published settings
BY_CLASS: Mapping[str, Any] = {
    "DDPMScheduler": DDPM,
    "DDPMWuerstchenScheduler": DDPMWuerstchen,
    "DDIMScheduler": DDIM,
    "EulerDiscreteScheduler": Euler,
    "EulerAncestralDiscreteScheduler": EulerAncestral,
    "DPMSolverMultistepScheduler": DPMSolver,
    "LCMScheduler": LCM,
    "PNDMScheduler": PNDM,
    "FlowMatchEulerDiscreteScheduler": FlowMatching,
}


# What diffusers takes a setting for that a file does not name, where the default here is another one
_UNSAID: Mapping[str, Mapping[str, Any]] = {"PNDMScheduler": {"skip_prk_steps": False}}


def scheduler_of(settings: Mapping[str, Any], source: str) -> Any:
    """The scheduler that a file of settings describes."""
    name = str(settings.get("_class_name"))
    if name not in BY_CLASS:
        raise wg.ModelFileError(f"{source}: there is no scheduler {name}, only {', '.join(BY_CLASS)}")
    try:
        return read_config(BY_CLASS[name], {**_UNSAID.get(name, {}), **settings}, source, BY_CLASS[name].idle)
    except wg.ModelFileError as error:
        text = str(error)
        raise wg.ModelFileError(text if text.startswith(source) else f"{source}: {text}") from None


def schedule_from(scheduler: Any, steps: int, begin: int) -> Schedule:
    """The rows of so many steps, of which the first `begin` are not made: nothing is known of those."""
    knows_before = isinstance(scheduler, DPMSolver | PNDM)
    found: Schedule = scheduler.schedule(steps, begin) if knows_before else scheduler.schedule(steps)
    return found


def scheduler_named(name: str, like: Any) -> Any:
    """The scheduler of a name, for a network that was trained as the settings of another one say.

    >>> like = wg.diffusion.EulerAncestral(num_train_timesteps=300, timestep_spacing="trailing")
    >>> found = wg.diffusion.scheduler_named("dpm-solver", like)
    >>> type(found).__name__, found.num_train_timesteps, found.timestep_spacing
    ('DPMSolver', 300, 'trailing')
    """
    wanted = "".join(letter for letter in name.casefold() if letter.isalnum())
    known = {each.__name__: each for each in BY_CLASS.values()}
    found = [kind for title, kind in known.items() if wanted == title.casefold()]
    if not found:
        raise wg.ArgumentError(f"there is no scheduler {name!r}, only {', '.join(known)}")
    [kind] = found
    if kind is type(like):
        return like
    if not (issubclass(kind, Training) and isinstance(like, Training)):
        raise wg.ArgumentError(
            f"{kind.__name__} is not for a network that was trained for {type(like).__name__}"
        )
    return kind(**_settings_in_common(kind, like))


def _settings_in_common(kind: Any, like: Any) -> dict[str, Any]:
    """What a kind takes over from another scheduler; originals are clipped only where that one does."""
    known = {each.name for each in fields(kind)}
    unsaid = {"clip_sample": False} if "clip_sample" in known else {}
    given = {each.name: getattr(like, each.name) for each in fields(like) if each.name in known}
    return unsaid | given
