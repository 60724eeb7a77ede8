"""How many kernels a step over many parameters takes: pinned for devices with 48, 16 and 8 bindings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.optim.helpers import parameters
from tests.schedule.graphs import INTEGRATED, PORTABLE, SOFTWARE, assert_valid, launches, planned
from webgrad import Tensor
from webgrad.device_profile import DeviceProfile

pytestmark = pytest.mark.golden

# (optimiser, settings): kernels for 4, 20 and 60 parameters of different shapes
COUNTS: dict[str, tuple[str, dict[str, Any], dict[str, tuple[int, int, int]]]] = {
    "sgd": ("SGD", {}, {"software": (1, 2, 4), "integrated": (1, 4, 12), "portable": (2, 10, 30)}),
    "momentum": (
        "SGD",
        {"momentum": 0.9},
        {"software": (1, 3, 7), "integrated": (2, 7, 20), "portable": (4, 20, 60)},
    ),
    "adam": ("Adam", {}, {"software": (2, 5, 11), "integrated": (3, 11, 31), "portable": (5, 21, 61)}),
    "adamw": ("AdamW", {}, {"software": (2, 5, 11), "integrated": (3, 11, 31), "portable": (5, 21, 61)}),
    "lion": ("Lion", {}, {"software": (1, 3, 7), "integrated": (2, 7, 20), "portable": (4, 20, 60)}),
}
PROFILES = {"software": SOFTWARE, "integrated": INTEGRATED, "portable": PORTABLE}


def shapes(count: int) -> list[tuple[int, ...]]:
    every: list[tuple[int, ...]] = []
    for number in range(count):
        every += [[(64 + number, 64), (64 + number,), (3, 5, number + 2), (16, 16)][number % 4]]
    return every


def stepped(monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any], count: int) -> list[Tensor]:
    """What a step changes, not computed yet."""
    params = parameters("cpu", shapes(count))
    opt = getattr(wg.optim, name)(params, **options)
    for each in params:
        each.grad = wg.asarray(np.ones(each.shape, np.float32), device="cpu")
    with monkeypatch.context() as patched:
        patched.setattr(wg, "eval", lambda *tensors: None)
        opt.step()
    clocks = [clock for clocks in opt._clocks for clock in clocks.values()]
    numbers = [clock.numbers for clock in clocks]
    found = [*params, *(each for state in opt.state.values() for each in state.values()), *numbers]
    return [each for each in found if each.node.storage is None]


@pytest.mark.parametrize("device", PROFILES)
@pytest.mark.parametrize("name", COUNTS)
def test_kernels_of_a_step(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, options, counts = COUNTS[name]
    found = []
    for count in (4, 20, 60):
        plan = planned(*stepped(monkeypatch, made, options, count), profile=PROFILES[device])
        assert_valid(plan)
        found.append(len(plan.bundles))
    assert tuple(found) == counts[device]


@pytest.mark.parametrize("device", PROFILES)
def test_every_kernel_can_be_bound(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profile: DeviceProfile = PROFILES[device]
    roots = stepped(monkeypatch, "AdamW", {"amsgrad": True}, 5)
    for each in launches(*roots, profile=profile):
        assert len(each.bound) <= profile.max_storage_buffers, each.kernel.name


def test_gradients_of_different_depths_are_used_in_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two layers the gradients are there one after another: the updates wait for the last."""
    params = parameters("cpu", [(6, 4), (6,), (3, 6), (3,)])
    opt = wg.optim.AdamW(params)
    x = wg.asarray(np.ones((5, 4), np.float32), device="cpu")
    wg.square(wg.linear(wg.relu(wg.linear(x, *params[:2])), *params[2:])).mean().backward()
    gradients = [each.grad for each in params if each.grad is not None]
    before = len(planned(*gradients).bundles)
    monkeypatch.setattr(wg, "eval", lambda *tensors: None)
    opt.step()
    plan = planned(*gradients, *params, *(each for state in opt.state.values() for each in state.values()))
    assert_valid(plan)
    assert len(plan.bundles) <= before + 2  # the numbers of the step, and all parameters
    assert len(plan.bundles[-1]) == 4
