"""Schedulers: how noise becomes a picture in some number of steps, by diffusers' names and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import webgrad as wg

from ..configs import read_config
from .continuous import DDPMWuerstchen
from .levels import DPMSolver, Euler, EulerAncestral, FlowMatching
from .multistep import PNDM
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


def scheduler_of(settings: Mapping[str, Any], source: str) -> Any:
    """The scheduler that a file of settings describes."""
    name = str(settings.get("_class_name"))
    if name not in BY_CLASS:
        raise wg.ModelFileError(f"{source}: there is no scheduler {name}, only {', '.join(BY_CLASS)}")
    try:
        return read_config(BY_CLASS[name], settings, source, BY_CLASS[name].idle)
    except wg.ModelFileError as error:
        text = str(error)
        raise wg.ModelFileError(text if text.startswith(source) else f"{source}: {text}") from None


def schedule_from(scheduler: Any, steps: int, begin: int) -> Schedule:
    """The rows of so many steps, of which the first `begin` are not made: nothing is known of those."""
    knows_before = isinstance(scheduler, DPMSolver | PNDM)
    found: Schedule = scheduler.schedule(steps, begin) if knows_before else scheduler.schedule(steps)
    return found
