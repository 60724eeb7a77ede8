"""Every scheduler step for step against diffusers', with the same noise and a network of one line."""

from __future__ import annotations

import math
import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest

import webgrad as wg
from tests.diffusers.models import diffusers, torch
from webgrad.diffusion.schedulers import next_picture, schedule_from, scheduler_of

STABLE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}
CASES: list[tuple[str, dict[str, Any], int]] = [
    ("DDPMScheduler", {}, 10),
    (
        "DDPMScheduler",
        {
            "variance_type": "fixed_large",
            "clip_sample": False,
            "timestep_spacing": "trailing",
            "prediction_type": "v_prediction",
        },
        7,
    ),
    ("DDPMScheduler", {"beta_schedule": "squaredcos_cap_v2", "prediction_type": "sample"}, 13),
    ("DDPMScheduler", {"beta_schedule": "sigmoid", "timestep_spacing": "linspace"}, 1),
    ("DDIMScheduler", {}, 10),
    (
        "DDIMScheduler",
        {"set_alpha_to_one": False, "steps_offset": 1, "clip_sample": False, **STABLE},
        20,
    ),
    (
        "DDIMScheduler",
        {
            "prediction_type": "v_prediction",
            "timestep_spacing": "trailing",
            "rescale_betas_zero_snr": True,
            "clip_sample": False,
        },
        9,
    ),
    ("EulerDiscreteScheduler", {}, 10),
    ("EulerDiscreteScheduler", {"timestep_spacing": "leading", "steps_offset": 1, **STABLE}, 30),
    ("EulerDiscreteScheduler", {"timestep_spacing": "trailing"}, 1),
    ("EulerDiscreteScheduler", {"use_karras_sigmas": True, "prediction_type": "v_prediction"}, 12),
    ("EulerDiscreteScheduler", {"use_exponential_sigmas": True, "final_sigmas_type": "sigma_min"}, 12),
    ("EulerDiscreteScheduler", {"use_karras_sigmas": True, "sigma_min": 0.1, "sigma_max": 30.0}, 12),
    ("EulerDiscreteScheduler", {"use_exponential_sigmas": True, "sigma_min": 0.02}, 10),
    ("EulerDiscreteScheduler", {"sigma_min": 0.1, "sigma_max": 5.0}, 9),
    ("EulerAncestralDiscreteScheduler", {"timestep_spacing": "trailing"}, 4),
    ("EulerAncestralDiscreteScheduler", {"prediction_type": "v_prediction"}, 10),
    ("DPMSolverMultistepScheduler", {}, 10),
    ("DPMSolverMultistepScheduler", {}, 20),
    ("DPMSolverMultistepScheduler", {"use_karras_sigmas": True, **STABLE}, 25),
    (
        "DPMSolverMultistepScheduler",
        {
            "algorithm_type": "sde-dpmsolver++",
            "solver_type": "heun",
            "timestep_spacing": "leading",
            "steps_offset": 1,
            "final_sigmas_type": "sigma_min",
        },
        12,
    ),
    (
        "DPMSolverMultistepScheduler",
        {
            "solver_type": "heun",
            "timestep_spacing": "trailing",
            "prediction_type": "v_prediction",
            "euler_at_final": True,
        },
        18,
    ),
    ("DPMSolverMultistepScheduler", {"solver_order": 1}, 5),
    ("LCMScheduler", {}, 4),
    ("LCMScheduler", {"prediction_type": "sample"}, 8),
    ("PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1, **STABLE}, 50),
    ("PNDMScheduler", {"skip_prk_steps": True, "set_alpha_to_one": True}, 7),
    (
        "PNDMScheduler",
        {"skip_prk_steps": True, "prediction_type": "v_prediction", "timestep_spacing": "trailing"},
        9,
    ),
    ("PNDMScheduler", {"skip_prk_steps": True, "timestep_spacing": "linspace"}, 3),
    ("PNDMScheduler", {"skip_prk_steps": True}, 1),
    ("FlowMatchEulerDiscreteScheduler", {}, 10),
    ("FlowMatchEulerDiscreteScheduler", {"shift": 3.0}, 28),
]
TOLERANCE = 1e-4
# diffusers makes arrays of torch's tensors in a way that NumPy has given up
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def network(x: Any, time: float) -> Any:
    return np.tanh(x * 0.7) + 0.1 * math.sin(time * 0.01)


@pytest.mark.parametrize(("name", "settings", "count"), CASES)
def test_steps(name: str, settings: dict[str, Any], count: int) -> None:
    theirs = getattr(diffusers, name)(**settings)
    theirs.set_timesteps(count)
    schedule = scheduler_of({**theirs.config, "_class_name": name}, name).schedule(count)
    assert schedule.start == pytest.approx(float(getattr(theirs, "init_noise_sigma", 1.0)), rel=1e-4)
    compare(theirs, schedule, 0)


@pytest.mark.parametrize("begin", [1, 2, 5])
@pytest.mark.parametrize(("name", "settings", "count"), [each for each in CASES if each[2] > 8])
def test_steps_after_those_that_a_picture_stands_for(
    name: str, settings: dict[str, Any], count: int, begin: int
) -> None:
    """What several steps know of each other, they do not know of steps that were not made."""
    theirs = getattr(diffusers, name)(**settings)
    theirs.set_timesteps(count)
    if hasattr(theirs, "set_begin_index"):
        theirs.set_begin_index(begin)
    scheduler = scheduler_of({**theirs.config, "_class_name": name}, name)
    compare(theirs, schedule_from(scheduler, count, begin), begin)


def compare(theirs: Any, schedule: Any, begin: int) -> None:
    """Step for step, from one of them on."""
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 5)) * schedule.start
    earlier = schedule.earlier or [()] * len(schedule.rows)
    wanted, before = torch.tensor(x), [np.zeros((2, 5)) for _ in range(1 + len(earlier[0]))]
    module = sys.modules[type(theirs).__module__]
    rows = list(zip(schedule.rows, earlier, theirs.timesteps, strict=True))
    for row, shares, time in rows[begin:]:
        assert row.timestep == pytest.approx(float(time), rel=1e-4, abs=0.01)
        noise = random.standard_normal((2, 5))
        scaled = theirs.scale_model_input(wanted, time) if hasattr(theirs, "scale_model_input") else wanted
        prediction = torch.tensor(network(scaled.numpy(), float(time)))
        with mock.patch.object(module, "randn_tensor", lambda *a, n=noise, **k: torch.tensor(n), create=True):
            wanted = theirs.step(prediction, time, wanted).prev_sample
        ours = network(x * row.entering, row.timestep)
        given = [wg.asarray(each, dtype=wg.float64) for each in (x, ours, before[0], noise)]
        older = [wg.asarray(each, dtype=wg.float64) for each in before[1:]]
        found = next_picture(
            given[0], given[1], given[2], given[3], row.numbers, schedule.clip, older, shares
        )
        x, original = (each.numpy() for each in found)
        before = [ours if schedule.keeps_prediction else original, *before[:-1]]
        assert np.abs(x - wanted.numpy()).max() < TOLERANCE * float(abs(wanted).max())


@pytest.mark.parametrize(("name", "settings", "count"), CASES)
def test_where_a_picture_with_noise_begins(name: str, settings: dict[str, Any], count: int) -> None:
    theirs = getattr(diffusers, name)(**settings)
    theirs.set_timesteps(count)
    schedule = scheduler_of({**theirs.config, "_class_name": name}, name).schedule(count)
    picture, noise = torch.full((1, 1), 2.0), torch.full((1, 1), 3.0)
    for place in range(count):
        time = theirs.timesteps[place : place + 1]
        if hasattr(theirs, "set_begin_index"):
            theirs.set_begin_index(place)
        add = theirs.scale_noise if hasattr(theirs, "scale_noise") else None
        wanted = add(picture, time, noise) if add else theirs.add_noise(picture, noise, time)
        by_picture, by_noise = schedule.noised[place]
        assert 2 * by_picture + 3 * by_noise == pytest.approx(float(wanted), rel=1e-4)
