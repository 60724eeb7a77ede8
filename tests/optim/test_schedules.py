"""Schedules against closed formulas, and against values that PyTorch 2.13 gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.optim import lr_scheduler as schedules

Made = Callable[[wg.optim.Optimizer], schedules.LRScheduler]


def optimizer(lr: float = 0.5, **options: Any) -> wg.optim.SGD:
    """Two groups, the second with a tenth of the rate."""
    first, second = (wg.ones(2, device="cpu").requires_grad_() for _ in range(2))
    return wg.optim.SGD([{"params": [first]}, {"params": [second], "lr": lr / 10}], lr=lr, **options)


def rates(made: Made, steps: int, **options: Any) -> list[float]:
    """The first group's rates; the second's are a tenth."""
    opt = optimizer(**options)
    schedule = made(opt)
    found = [opt.param_groups[0]["lr"]]
    for _ in range(steps):
        schedule.step()
        assert schedule.get_last_lr() == [group["lr"] for group in opt.param_groups]
        found.append(opt.param_groups[0]["lr"])
    return found


def cosine(part: float) -> float:
    return (1 + math.cos(math.pi * part)) / 2


FORMULAS: dict[str, tuple[Made, Callable[[int], float]]] = {
    "step": (lambda opt: schedules.StepLR(opt, 3, 0.5), lambda t: 0.5 * 0.5 ** (t // 3)),
    "milestones": (
        lambda opt: schedules.MultiStepLR(opt, [2, 2, 5], 0.5),
        lambda t: 0.5 * 0.5 ** (2 * (t >= 2) + (t >= 5)),
    ),
    "exponential": (lambda opt: schedules.ExponentialLR(opt, 0.9), lambda t: 0.5 * 0.9**t),
    "constant": (lambda opt: schedules.ConstantLR(opt, 0.5, 3), lambda t: 0.5 * (0.5 if t < 3 else 1)),
    "linear": (
        lambda opt: schedules.LinearLR(opt, 0.1, 0.9, 4),
        lambda t: 0.5 * (0.1 + 0.8 * min(t, 4) / 4),
    ),
    "polynomial": (
        lambda opt: schedules.PolynomialLR(opt, 5, 2.0),
        lambda t: 0.5 * (1 - min(t, 5) / 5) ** 2,
    ),
    "cosine": (lambda opt: schedules.CosineAnnealingLR(opt, 4), lambda t: 0.5 * cosine(t / 4)),
    "cosine to more": (
        lambda opt: schedules.CosineAnnealingLR(opt, 12, eta_min=0.01),
        lambda t: 0.01 + 0.49 * cosine(t / 12),
    ),
    "restarts": (
        lambda opt: schedules.CosineAnnealingWarmRestarts(opt, 3),
        lambda t: 0.5 * cosine(t % 3 / 3),
    ),
    "function": (lambda opt: schedules.LambdaLR(opt, lambda t: 1 / (t + 1)), lambda t: 0.5 / (t + 1)),
    "functions": (
        lambda opt: schedules.MultiplicativeLR(opt, [lambda t: 0.95, lambda t: 0.5]),
        lambda t: 0.5 * 0.95**t,
    ),
    "warm-up": (
        lambda opt: schedules.warmup_cosine(opt, 3, 9, final=0.1),
        lambda t: 0.5 * ((t + 1) / 3 if t < 3 else 0.1 + 0.9 * cosine(min(1, (t - 3) / 6))),
    ),
    "chained": (
        lambda opt: schedules.ChainedScheduler(
            [schedules.ConstantLR(opt, 0.1, 4), schedules.ExponentialLR(opt, 0.9)]
        ),
        lambda t: 0.5 * 0.9**t * (0.1 if t < 4 else 1),
    ),
    "one after another": (
        lambda opt: schedules.SequentialLR(
            opt, [schedules.LinearLR(opt, 0.1, 1.0, 4), schedules.CosineAnnealingLR(opt, 6)], [4]
        ),
        lambda t: 0.5 * (0.1 + 0.9 * t / 4 if t < 4 else cosine((t - 4) / 6)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_rates_are_the_formulas(name: str) -> None:
    made, formula = FORMULAS[name]
    np.testing.assert_allclose(rates(made, 11), [formula(t) for t in range(12)], rtol=1e-9, atol=1e-12)


def test_restarts_become_longer() -> None:
    found = rates(lambda opt: schedules.CosineAnnealingWarmRestarts(opt, 2, 2), 13)
    assert [t for t, rate in enumerate(found) if rate == 0.5] == [0, 2, 6]
    opt = optimizer()
    schedule = schedules.CosineAnnealingWarmRestarts(opt, 2, 2)
    schedule.step(3.5)
    assert schedule.get_last_lr()[0] == pytest.approx(0.5 * cosine(1.5 / 4))


def test_one_cycle_goes_up_and_down_with_its_momentum() -> None:
    opt = optimizer(momentum=0.9)
    schedule = schedules.OneCycleLR(opt, [1.0, 0.5], total_steps=10, pct_start=0.3)
    found, momenta = [], []
    for _ in range(10):
        found.append(schedule.get_last_lr()[0])
        momenta.append(opt.param_groups[0]["momentum"])
        schedule.step()
    assert found[0] == pytest.approx(1 / 25)
    assert found[2] == max(found) == 1.0
    assert found[9] == pytest.approx(1 / 25 / 1e4)
    assert (momenta[0], min(momenta), momenta[9]) == pytest.approx((0.95, 0.85, 0.95))
    with pytest.raises(wg.ArgumentError, match="step 11 of 10: the cycle is over"):
        schedule.step()


def test_one_cycle_changes_betas() -> None:
    (w,) = (wg.ones(2, device="cpu").requires_grad_(),)
    opt = wg.optim.Adam([w])
    schedule = schedules.OneCycleLR(
        opt, 1.0, epochs=3, steps_per_epoch=6, three_phase=True, anneal_strategy="linear"
    )
    found = []
    for _ in range(17):
        schedule.step()
        found.append((opt.param_groups[0]["lr"], *opt.param_groups[0]["betas"]))
    # as PyTorch has them after 4 and 17 steps
    assert found[3] == pytest.approx((0.9127272727272727, 0.8590909090909091, 0.999))
    assert found[16] == pytest.approx((4e-6, 0.95, 0.999))


def test_a_plateau_lets_the_rate_fall() -> None:
    opt = optimizer()
    schedule = schedules.ReduceLROnPlateau(opt, patience=1, cooldown=1, factor=0.5, min_lr=[0.1, 0.04])
    found = []
    for metric in [1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]:
        schedule.step(wg.asarray(metric, dtype=wg.float32))
        found.append(opt.param_groups[0]["lr"])
    # Two bad steps are too many; the one after a fall is not counted, and 0.1 is the least.
    assert found == [0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.1, 0.1, 0.1, 0.1, 0.1]
    assert opt.param_groups[1]["lr"] == 0.04


def test_a_schedule_is_saved_and_goes_on() -> None:
    for name, (made, _) in FORMULAS.items():
        opt = optimizer()
        schedule = made(opt)
        for _ in range(5):
            schedule.step()
        other_opt = optimizer()
        other = made(other_opt)
        other.load_state_dict(schedule.state_dict())
        other_opt.load_state_dict(opt.state_dict())
        for _ in range(4):
            schedule.step()
            other.step()
            assert schedule.get_last_lr() == other.get_last_lr(), name


def test_a_schedule_goes_on_from_a_step() -> None:
    opt = optimizer()
    with pytest.raises(wg.ArgumentError, match="no 'initial_lr'"):
        schedules.ExponentialLR(opt, 0.5, last_epoch=3)
    schedules.ExponentialLR(opt, 0.5)
    opt.param_groups[0]["lr"] = 0.25
    schedule = schedules.ExponentialLR(opt, 0.5, last_epoch=0)
    assert schedule.get_last_lr()[0] == 0.25
    schedule.step()
    assert schedule.get_last_lr()[0] == 0.125


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "no optimiser": (lambda opt: schedules.StepLR(None, 3), "takes an optimiser, not a NoneType"),  # type: ignore[arg-type]
    "steps": (lambda opt: schedules.StepLR(opt, 0), "step_size is 0"),
    "factor": (lambda opt: schedules.ConstantLR(opt, 2.0), "above 0, up to 1"),
    "factor of nothing": (lambda opt: schedules.ConstantLR(opt, 0.0), "above 0, up to 1"),
    "factors": (lambda opt: schedules.LinearLR(opt, 0.0), "the first must be above 0"),
    "functions": (lambda opt: schedules.LambdaLR(opt, [lambda t: 1.0]), "1 entries for 2 groups"),
    "total": (lambda opt: schedules.OneCycleLR(opt, 1.0), "give total_steps, or epochs"),
    "momentum": (lambda opt: schedules.OneCycleLR(opt, 1.0, 9), "say cycle_momentum=False"),
    "strategy": (lambda opt: schedules.OneCycleLR(opt, 1.0, 9, anneal_strategy="no"), "cos or linear"),
    "mode": (lambda opt: schedules.ReduceLROnPlateau(opt, "no"), "min or max"),
    "metric": (lambda opt: schedules.ReduceLROnPlateau(opt).step(), "takes the metric"),
    "none": (lambda opt: schedules.ChainedScheduler([]), "list of schedules is empty"),
    "milestones": (
        lambda opt: schedules.SequentialLR(opt, [schedules.ConstantLR(opt)], [3]),
        "1 schedules need 0 milestones",
    ),
    "another": (
        lambda opt: schedules.ChainedScheduler(
            [schedules.ConstantLR(opt), schedules.ConstantLR(optimizer())]
        ),
        "all be of one optimiser",
    ),
    "warm-up": (lambda opt: schedules.warmup_cosine(opt, 9, 9), "it must be fewer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises((wg.ArgumentError, wg.DTypeError), match=message):
        call(optimizer())


def test_waves_rise_and_fall_with_momentum_the_other_way() -> None:
    opt = wg.optim.SGD([wg.ones(1).requires_grad_()], lr=9.0, momentum=0.5)
    rates = schedules.CyclicLR(opt, 0.1, 0.5, 2, 4, mode="triangular2", base_momentum=0.8, max_momentum=0.9)
    found = []
    for _ in range(9):
        found.append((opt.param_groups[0]["lr"], opt.param_groups[0]["momentum"]))
        opt.step()
        rates.step()
    wanted = [0.1, 0.3, 0.5, 0.4, 0.3, 0.2, 0.1, 0.2, 0.3]
    np.testing.assert_allclose([lr for lr, _ in found], wanted, atol=1e-9)
    np.testing.assert_allclose([m for _, m in found], [0.9 - (each - 0.1) / 4 for each in wanted], atol=1e-9)


def test_waves_of_a_mode_that_is_none_are_refused() -> None:
    opt = wg.optim.SGD([wg.ones(1).requires_grad_()], lr=1.0)
    with pytest.raises(wg.ArgumentError, match="mode is one of"):
        schedules.CyclicLR(opt, 0.1, 0.5, mode="square")
    plain = wg.optim.Adagrad([wg.ones(1).requires_grad_()], lr=1.0)
    with pytest.raises(wg.ArgumentError, match="neither betas nor a momentum"):
        schedules.CyclicLR(plain, 0.1, 0.5)
    assert schedules.CyclicLR(plain, 0.1, 0.5, cycle_momentum=False).get_last_lr() == [0.1]
