"""Optimisers and schedules against torch.optim: the same gradients give the same parameters, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.torch.checking import close, torch

STEPS = 5
SHAPES = [(4, 3), (3,), (), (2, 3, 2)]
# (name, arguments) of torch.optim; those that webgrad does not have are left out, and counted below
TABLE: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.2, "amsgrad": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adamax", {"lr": 0.01}),
    ("Adamax", {"lr": 0.01, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.01}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "momentum_decay": 0.01}),
    ("RAdam", {"lr": 0.01}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1, "betas": (0.9, 0.5)}),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.01}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.05, 0.2), "maximize": True}),
    ("ASGD", {"lr": 0.01}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 2.0, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "d": 2.0, "eps": (1e-8, 1e-2), "maximize": True}),
]
HERE = TABLE


def arrays(seed: int) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    return [np.asarray(random.standard_normal(shape), np.float32) for shape in SHAPES]


def complex_arrays(seed: int) -> list[np.ndarray[Any, Any]]:
    return [re + np.complex64(1j) * im for re, im in zip(arrays(seed), arrays(seed + 50), strict=True)]


Drawn = Callable[[int], list[np.ndarray[Any, Any]]]


def parameters(draw: Drawn = arrays) -> tuple[list[Any], list[Any]]:
    """The same values as parameters of webgrad and of torch."""
    return [wg.nn.Parameter(each) for each in draw(0)], [
        torch.nn.Parameter(torch.tensor(each)) for each in draw(0)
    ]


def give_gradients(ours: list[Any], theirs: list[Any], step: int, draw: Drawn = arrays) -> None:
    for mine, other, array in zip(ours, theirs, draw(step + 1), strict=True):
        mine.grad, other.grad = wg.asarray(array), torch.tensor(array)


def agree(ours: list[Any], theirs: list[Any], when: str) -> None:
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        close(f"parameter {number} {when}", mine.detach().numpy(), other.detach().numpy())


@pytest.mark.parametrize(("name", "options"), HERE, ids=lambda each: str(each))
def test_steps_are_torchs(name: str, options: dict[str, Any]) -> None:
    ours, theirs = parameters()
    mine, other = getattr(wg.optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    for step in range(STEPS):
        give_gradients(ours, theirs, step)
        mine.step()
        other.step()
        agree(ours, theirs, f"after step {step + 1}")


@pytest.mark.parametrize(
    ("name", "options"), [each for each in HERE if each[0] != "Adafactor"], ids=lambda each: str(each)
)
def test_steps_of_complex_numbers_are_torchs(name: str, options: dict[str, Any]) -> None:
    ours, theirs = parameters(complex_arrays)
    mine, other = getattr(wg.optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    for step in range(STEPS):
        give_gradients(ours, theirs, step, complex_arrays)
        mine.step()
        other.step()
        agree(ours, theirs, f"after step {step + 1}")


def test_groups_and_parameters_without_gradients() -> None:
    ours, theirs = parameters()
    made = []
    for library, values in ((wg.optim, ours), (torch.optim, theirs)):
        groups: Any = [{"params": values[:2]}, {"params": values[2:], "lr": 0.05, "weight_decay": 0.1}]
        made.append(library.AdamW(groups, lr=0.01))
    for step in range(STEPS):
        give_gradients(ours, theirs, step)
        ours[1].grad = theirs[1].grad = None
        if step == 2:
            for each in made:
                each.param_groups[0]["lr"] = 0.2
        for each in made:
            each.step()
        agree(ours, theirs, f"after step {step + 1}")


@pytest.mark.parametrize("draw", [arrays, complex_arrays])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
def test_clipping_by_norm(norm_type: float, draw: Drawn) -> None:
    ours, theirs = parameters(draw)
    give_gradients(ours, theirs, 0, draw)
    mine = wg.nn.utils.clip_grad_norm_(ours, 0.7, norm_type=norm_type)
    other = torch.nn.utils.clip_grad_norm_(theirs, 0.7, norm_type=norm_type)
    close("norm", mine.numpy(), other.numpy())
    agree([each.grad for each in ours], [each.grad for each in theirs], "'s gradient")


def test_clipping_by_value() -> None:
    ours, theirs = parameters()
    give_gradients(ours, theirs, 0)
    wg.nn.utils.clip_grad_value_(ours, 0.5)
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    agree([each.grad for each in ours], [each.grad for each in theirs], "'s gradient")


SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda library, optimiser: library.StepLR(optimiser, 3, gamma=0.5),
    "MultiStepLR": lambda library, optimiser: library.MultiStepLR(optimiser, [2, 5, 5, 9], gamma=0.3),
    "ExponentialLR": lambda library, optimiser: library.ExponentialLR(optimiser, 0.9),
    "CosineAnnealingLR": lambda library, optimiser: library.CosineAnnealingLR(optimiser, 8, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda library, optimiser: library.CosineAnnealingWarmRestarts(
        optimiser, 4, 2
    ),
    "LinearLR": lambda library, optimiser: library.LinearLR(optimiser, 0.2, 0.8, total_iters=6),
    "ConstantLR": lambda library, optimiser: library.ConstantLR(optimiser, 0.5, total_iters=4),
    "PolynomialLR": lambda library, optimiser: library.PolynomialLR(optimiser, 9, power=2.0),
    "OneCycleLR": lambda library, optimiser: library.OneCycleLR(optimiser, 0.5, total_steps=15),
    "CyclicLR": lambda library, optimiser: library.CyclicLR(
        optimiser, 0.01, 0.2, 3, 4, "triangular2", base_momentum=0.7
    ),
    "CyclicLR by steps": lambda library, optimiser: library.CyclicLR(
        optimiser, 0.01, 0.2, 3, mode="exp_range", gamma=0.9
    ),
    "CyclicLR by a function": lambda library, optimiser: library.CyclicLR(
        optimiser, 0.01, 0.2, 3, scale_fn=lambda step: 1 / (1 + step), scale_mode="iterations"
    ),
    "LambdaLR": lambda library, optimiser: library.LambdaLR(optimiser, lambda step: 1 / (1 + step)),
    "SequentialLR": lambda library, optimiser: library.SequentialLR(
        optimiser,
        [library.LinearLR(optimiser, 0.1, total_iters=4), library.CosineAnnealingLR(optimiser, 10)],
        milestones=[4],
    ),
    "ChainedScheduler": lambda library, optimiser: library.ChainedScheduler(
        [library.ConstantLR(optimiser, 0.1, 3), library.ExponentialLR(optimiser, 0.8)]
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about the epoch of SequentialLR
@pytest.mark.parametrize("name", list(SCHEDULES))
def test_schedules_are_torchs(name: str) -> None:
    ours, theirs = parameters()
    mine, other = wg.optim.SGD(ours, lr=0.1, momentum=0.9), torch.optim.SGD(theirs, lr=0.1, momentum=0.9)
    our_schedule = SCHEDULES[name](wg.optim.lr_scheduler, mine)
    their_schedule = SCHEDULES[name](torch.optim.lr_scheduler, other)
    for step in range(14):
        for key in ("lr", "momentum"):
            np.testing.assert_allclose(
                float(mine.param_groups[0][key]),
                other.param_groups[0][key],
                rtol=1e-6,
                err_msg=f"{key}, {step}",
            )
        for each in (mine, our_schedule, other, their_schedule):
            each.step()


def test_reduce_on_plateau() -> None:
    ours, theirs = parameters()
    mine, other = wg.optim.SGD(ours, lr=0.1), torch.optim.SGD(theirs, lr=0.1)
    our_schedule = wg.optim.lr_scheduler.ReduceLROnPlateau(mine, factor=0.5, patience=1, cooldown=1)
    their_schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(other, factor=0.5, patience=1, cooldown=1)
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0):
        our_schedule.step(loss)
        their_schedule.step(loss)
        assert float(mine.param_groups[0]["lr"]) == pytest.approx(other.param_groups[0]["lr"])


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}], ids=str)
def test_muon_is_torchs_to_the_rounding_of_its_products(options: dict[str, Any]) -> None:
    shapes = [(6, 4), (3, 5)]
    starts = [
        np.random.default_rng(at).standard_normal(shape).astype(np.float32) for at, shape in enumerate(shapes)
    ]
    ours, theirs = (
        [wg.nn.Parameter(each) for each in starts],
        [torch.nn.Parameter(torch.tensor(each)) for each in starts],
    )
    mine, other = wg.optim.Muon(ours, lr=0.1, **options), torch.optim.Muon(theirs, lr=0.1, **options)
    for step in range(STEPS):
        for at, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            gradient = np.random.default_rng(10 * step + at).standard_normal(a.shape).astype(np.float32)
            a.grad, b.grad = wg.asarray(gradient), torch.tensor(gradient)
        mine.step()
        other.step()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), atol=2e-2)


def valley(x: Any) -> Any:
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


@pytest.mark.parametrize(
    "options",
    [
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "lr": 0.5, "history_size": 3, "max_iter": 7},
        {"lr": 0.5, "history_size": 2, "max_eval": 9},
    ],
    ids=str,
)
def test_lbfgs_takes_torchs_steps(options: dict[str, Any]) -> None:
    start = np.array([-1.2, 1.0, 0.5, 2.0])
    mine, other = wg.asarray(start).requires_grad_(), torch.nn.Parameter(torch.tensor(start))
    ours, theirs = wg.optim.LBFGS([mine], **options), torch.optim.LBFGS([other], **options)

    def closure(optimiser: Any, x: Any) -> Callable[[], Any]:
        def evaluate() -> Any:
            optimiser.zero_grad()
            loss = valley(x)
            loss.backward()
            return loss

        return evaluate

    for _ in range(3):
        losses = ours.step(closure(ours, mine)), theirs.step(closure(theirs, other))
        np.testing.assert_allclose(float(losses[0]), losses[1].item(), rtol=1e-9)
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), atol=1e-8)
        for key in ("func_evals", "n_iter"):
            assert ours.state[mine][key] == theirs.state[other][key]
