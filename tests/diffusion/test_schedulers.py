"""Samplers: what every one of them must do, whatever its formulas, and DDIM's by its own definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.diffusion.schedulers import (
    BY_CLASS,
    next_picture,
    schedule_from,
    scheduler_named,
    scheduler_of,
)
from webgrad.diffusion.schedulers.noise_levels import kept_shares, times_of

EXACT = {"clip_sample": False}
ANCESTRAL = ("DDPM", "DDPMWuerstchen", "EulerAncestral")
SAMPLERS: dict[str, Any] = {each.__name__: each for each in BY_CLASS.values()}
KNOW_ORIGINALS = [each for each in SAMPLERS if each not in (*ANCESTRAL, "PNDM")]


def run(scheduler: Any, steps: int, original: Any, noise: Any) -> Any:
    """Where a network that knows the original leads."""
    schedule = scheduler.schedule(steps)
    by_picture, by_noise = schedule.noised[0]
    x = wg.asarray(original * by_picture + noise * by_noise)
    before = wg.zeros(x.shape, dtype=x.dtype)
    for row in schedule.rows:
        # The prediction from which a step concludes the original.
        prediction = (wg.asarray(original) - x * row.original_x) / row.original_prediction
        x, before = next_picture(x, prediction, before, None, row.numbers, schedule.clip)
        assert np.abs(before.numpy() - original).max() < 1e-9
    return x.numpy()


@pytest.mark.parametrize("steps", [1, 2, 7, 30])
@pytest.mark.parametrize("kind", ["epsilon", "sample", "v_prediction"])
@pytest.mark.parametrize("name", KNOW_ORIGINALS)
def test_a_network_that_knows_the_original_leads_to_it(name: str, kind: str, steps: int) -> None:
    settings: dict[str, Any] = {} if name == "FlowMatching" else {"prediction_type": kind}
    if name in ("DDIM", "LCM"):
        settings |= EXACT
    random = np.random.default_rng(0)
    original, noise = random.standard_normal((2, 3, 4))
    found = run(SAMPLERS[name](**settings), steps, original, noise)
    assert np.abs(found - original).max() < (0.06 if name == "LCM" else 1e-6) * np.abs(original).max()


@pytest.mark.parametrize("name", ANCESTRAL)
def test_the_last_step_of_ancestral_samplers_adds_no_noise(name: str) -> None:
    rows = SAMPLERS[name]().schedule(9).rows
    assert [row.by_noise > 0 for row in rows] == [True] * 8 + [False]


def test_ddim_by_its_definition() -> None:
    scheduler = SAMPLERS["DDIM"](**EXACT)
    shares, schedule = kept_shares(scheduler), scheduler.schedule(10)
    x, noise = 0.7, -0.4
    row = schedule.rows[3]
    kept, before = shares[int(row.timestep)], shares[int(row.timestep) - 100]
    original = (x - math.sqrt(1 - kept) * noise) / math.sqrt(kept)
    wanted = math.sqrt(before) * original + math.sqrt(1 - before) * noise
    given = [wg.asarray(each, dtype=wg.float64) for each in (x, noise, 0.0)]
    found, predicted = next_picture(given[0], given[1], given[2], None, row.numbers)
    assert found.item() == pytest.approx(wanted)
    assert predicted.item() == pytest.approx(original)


def test_what_is_clipped_is_the_original() -> None:
    given = [wg.asarray([each], dtype=wg.float64) for each in (5.0, 3.0, 0.0)]
    numbers = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    found, original = next_picture(given[0], given[1], given[2], None, numbers, 2.0)
    assert (found.item(), original.item()) == (2.0, 2.0)


@pytest.mark.parametrize("spacing", ["linspace", "leading", "trailing"])
@pytest.mark.parametrize("count", [1, 3, 999, 1000])
def test_times_fall_and_are_those_of_training(spacing: str, count: int) -> None:
    times = times_of(spacing, 1000, count)
    assert len(times) == count
    assert (np.diff(times) < 0).all()
    assert 0 <= times.min() <= times.max() <= 999


def test_an_offset_beyond_the_steps_of_training() -> None:
    with pytest.raises(wg.ArgumentError, match="steps_offset 1 leads 1000 steps beyond the last of 1000"):
        SAMPLERS["DDIM"](steps_offset=1).schedule(1000)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("steps", [0, -1, 1001, 2.5, "2", None, True])
def test_a_number_of_steps_that_cannot_be(name: str, steps: int) -> None:
    with pytest.raises(wg.ArgumentError, match=r"steps are 1 to \d+"):
        SAMPLERS[name]().schedule(steps)


def test_an_unknown_scheduler_is_refused_by_name() -> None:
    with pytest.raises(wg.ModelFileError, match="there is no scheduler OtherScheduler"):
        scheduler_of({"_class_name": "OtherScheduler"}, "here")


@pytest.mark.parametrize("begin", [0, 3])
def test_pndm_with_the_same_noise_in_all_predictions_is_ddim(begin: int) -> None:
    """Whatever older predictions count for, together they count as one; the second step goes nowhere."""
    schedule = SAMPLERS["PNDM"](set_alpha_to_one=True).schedule(10, begin)
    assert len(schedule.rows) == 11
    steps = {each.timestep: each for each in SAMPLERS["DDIM"](**EXACT).schedule(10).rows}
    x, noise = 0.7, -0.4
    for at, row in enumerate(schedule.rows[begin:]):
        shares = row.by_prediction + row.by_before + sum(schedule.earlier[begin + at])
        other = steps[row.timestep]
        original = other.original_x * x + other.original_prediction * noise
        wanted = x if at == 1 else other.by_prediction * noise + other.by_original * original
        x = row.by_x * x + shares * noise
        assert x == pytest.approx(wanted)


def test_pndm_with_other_steps_before_is_refused_when_it_is_read() -> None:
    with pytest.raises(wg.ModelFileError, match=r"here\.json: PNDM is here with skip_prk_steps=True"):
        scheduler_of({"_class_name": "PNDMScheduler"}, "here.json")


@pytest.mark.parametrize("begin", [0, 1, 4])
def test_the_first_step_that_is_made_knows_none_before(begin: int) -> None:
    for name in ("DPMSolver", "PNDM"):
        schedule = schedule_from(SAMPLERS[name](), 9, begin)
        assert schedule.rows[begin].by_before == 0
        assert not any(schedule.earlier[begin] if schedule.earlier else ())
        assert schedule.rows[begin + 1].by_before != 0


@pytest.mark.parametrize("name", ["ddim", "DDPM", "lcm"])
def test_a_scheduler_by_name_clips_only_where_the_other_one_does(name: str) -> None:
    for like in ("PNDM", "Euler"):
        assert scheduler_named(name, SAMPLERS[like]()).schedule(4).clip is None
    assert scheduler_named(name, SAMPLERS["DDIM"](clip_sample_range=2.0)).schedule(4).clip == 2.0


@pytest.mark.parametrize("name", ["euler", "PNDM", "dpm-solver", "ddim"])
def test_a_scheduler_by_name_goes_through_the_same_times(name: str) -> None:
    like = SAMPLERS["EulerAncestral"](timestep_spacing="trailing", beta_start=0.001)
    found = scheduler_named(name, like)
    assert (found.timestep_spacing, found.beta_start) == ("trailing", 0.001)
    assert [found.schedule(4).rows[at].timestep for at in (0, -1)] == [999, 249]


BETAS = [
    {"trained_betas": [0.1]}, {"trained_betas": [0.1] * 999 + ["x"]}, {"trained_betas": "x"},
    {"trained_betas": [1.5] * 1000}, {"beta_start": "x"}, {"beta_start": float("nan")}, {"beta_start": 0.0},
    {"beta_end": 5}, {"beta_end": 1.0}, {"num_train_timesteps": None}, {"num_train_timesteps": 0},
    {"num_train_timesteps": 100_000}, {"beta_schedule": "other"}, {"prediction_type": "flow"},
    {"rescale_betas_zero_snr": 1}, {"num_train_timesteps": 1, "rescale_betas_zero_snr": True},
    {"steps_offset": -1}, {"steps_offset": 0.5}, {"timestep_spacing": []},
]  # fmt: skip
OWN: dict[str, list[dict[str, Any]]] = {
    "DDIMScheduler": [{"eta": "x"}, {"eta": 2}, {"clip_sample_range": "a"}, {"clip_sample_range": 0}],
    "DDPMScheduler": [{"variance_type": "learned"}, {"clip_sample": "no"}],
    "LCMScheduler": [
        *({"original_inference_steps": each} for each in ("a", 2000, 0, 10**12)),
        {"timestep_scaling": float("inf")},
    ],
    "EulerDiscreteScheduler": [{"interpolation_type": "log_linear"}, {"final_sigmas_type": 0}],
    "DPMSolverMultistepScheduler": [{"solver_order": 3}, {"solver_type": "x"}, {"lambda_min_clipped": "x"}],
    "FlowMatchEulerDiscreteScheduler": [{"shift": 0}, {"shift": "3"}, {"num_train_timesteps": None}],
}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [*(("DDIMScheduler", each) for each in BETAS), *((kind, each) for kind in OWN for each in OWN[kind])],
)
def test_settings_that_cannot_be_are_refused_when_they_are_read(kind: str, settings: dict[str, Any]) -> None:
    named = "|".join(["betas", *settings])
    with pytest.raises(wg.ModelFileError, match=rf"^here\.json.*({named})"):
        scheduler_of({"_class_name": kind, **settings}, "here.json")


def test_what_follows_of_no_picture_at_all_is_refused() -> None:
    settings = {"rescale_betas_zero_snr": True, "timestep_spacing": "trailing"}
    with pytest.raises(wg.ModelFileError, match=r"prediction_type is epsilon, .* rescale_betas_zero_snr"):
        SAMPLERS["DDIM"](**settings).schedule(4)
    with pytest.raises(wg.ModelFileError, match="rescale_betas_zero_snr of PNDM"):
        SAMPLERS["PNDM"](rescale_betas_zero_snr=True)


@pytest.mark.parametrize("name", ["Euler", "EulerAncestral", "DPMSolver"])
@pytest.mark.parametrize("spaced", [{"use_karras_sigmas": True}, {"use_exponential_sigmas": True}, {}])
@pytest.mark.parametrize("steps", [1, 2, 25, 999])
def test_a_last_level_that_is_the_one_before(name: str, spaced: dict[str, Any], steps: int) -> None:
    rows = SAMPLERS[name](final_sigmas_type="sigma_min", **spaced).schedule(steps).rows
    assert np.isfinite([row.numbers for row in rows]).all()


def test_times_of_dpm_solver_that_training_has_not() -> None:
    solver = SAMPLERS["DPMSolver"]
    with pytest.raises(wg.ArgumentError, match="steps_offset 900 leads 5 steps beyond the last of 1000"):
        solver(timestep_spacing="leading", steps_offset=900).schedule(5)
    with pytest.raises(wg.ArgumentError, match="steps are 1 to 0 here, not 5"):
        solver(timestep_spacing="trailing", lambda_min_clipped=99.0).schedule(5)


@pytest.mark.parametrize("spaced", ["use_karras_sigmas", "use_exponential_sigmas"])
def test_levels_that_are_spaced_anew_end_where_settings_say(spaced: str) -> None:
    scheduler = SAMPLERS["Euler"](**{spaced: True}, sigma_min=0.25, sigma_max=20.0)
    levels = [noise for _, noise in scheduler.schedule(6).noised]
    assert (levels[0], levels[-1]) == (pytest.approx(20.0), pytest.approx(0.25))
    with pytest.raises(wg.ModelFileError, match=r"fall from sigma_max to sigma_min, not 1\.0 to 2\.0"):
        SAMPLERS["Euler"](**{spaced: True}, sigma_min=2.0, sigma_max=1.0).schedule(6)
