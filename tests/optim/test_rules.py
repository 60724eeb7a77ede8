"""Every optimiser against its formula in NumPy, on the cpu and a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import webgrad as wg
from tests.optim.helpers import DEVICES, Array, drawn, parameters, trained
from tests.optim.reference import RULES

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1, "betas": (0.5, 0.9)}),
    ("Adam", {"betas": (0.0, 0.0), "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.6)}),  # never trusted: its longest average is 4
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.05, 0.2)}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adafactor", {"d": 2.0, "eps": (1e-8, 1e-2), "beta2_decay": -0.5, "maximize": True}),
    ("Lion", {"lr": 0.1, "weight_decay": 0.1}),
    ("LAMB", {"lr": 0.1, "weight_decay": 0.1}),
    ("LAMB", {"maximize": True}),
]


def expected(name: str, options: dict[str, Any], starts: list[Array], steps: int, idle: Any = ()) -> Any:
    """What the formula makes of drawn gradients."""
    results = []
    for at, start in enumerate(starts):
        p, state = start.astype(np.float64), dict[str, Any]()
        for step in range(steps):
            if (step, at) not in idle:
                p = RULES[name](p, drawn(100 * step + at, start.shape).astype(np.float64), state, **options)
        results.append(p)
    return results


@DEVICES
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_steps_are_the_formulas(name: str, options: dict[str, Any], kind: str) -> None:
    params = parameters(kind)
    starts = [each.numpy() for each in params]
    # Parameters without a gradient: their counts stay behind. On GPUs each such step is compiled anew.
    idle = {(1, 1), (2, 1), (3, 0)} if kind == "cpu" or (name, options) == ("Adam", {}) else set()
    trained(getattr(wg.optim, name)(params, **options), 6, idle=idle)
    for got, want in zip(params, expected(name, options, starts, 6, idle), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=2e-6)


def test_every_optimiser_has_a_formula() -> None:
    apart = ("LBFGS", "Muon", "Optimizer", "lr_scheduler")  # tests of their own
    names = {name for name in wg.optim.__all__ if name not in apart}
    assert names == set(RULES) == {name for name, _ in CASES}


@pytest.mark.parametrize("steps", [1, 2, 5, 6, 200])
def test_corrections_keep_their_digits(steps: int) -> None:
    # Of 1 - 0.999^t in float32 only half of the digits would be left at the first steps.
    for name, options in (("Adam", {"lr": 1.0}), ("RAdam", {"lr": 1.0})):
        p = wg.zeros((), device="cpu").requires_grad_()
        opt = getattr(wg.optim, name)([p], **options)
        q, state = np.zeros(()), dict[str, Any]()
        for _ in range(steps):
            p.grad = wg.asarray(0.5, device="cpu")
            opt.step()
            q = RULES[name](q, np.float64(0.5), state, **options)
        np.testing.assert_allclose(p.item(), q, rtol=2e-6)


@DEVICES
@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16], ids=str)
def test_half_parameters_have_float32_state(kind: str, dtype: Any) -> None:
    params = parameters(kind, dtype=dtype)
    starts = [each.numpy().astype(np.float32) for each in params]
    opt = wg.optim.Adam(params, lr=0.1)
    assert {each.dtype for state in opt.state.values() for each in state.values()} == {wg.float32}
    trained(opt, 1)
    for at, (got, start) in enumerate(zip(params, starts, strict=True)):
        assert got.dtype is dtype
        gradient = wg.asarray(drawn(at, start.shape), dtype, device="cpu").numpy().astype(np.float64)
        want = RULES["Adam"](start.astype(np.float64), gradient, {}, lr=0.1)
        np.testing.assert_allclose(got.numpy().astype(np.float64), want, rtol=1e-2, atol=2e-3)


def test_nothing_bad_happens_to_nan_inf_and_empty_parameters() -> None:
    params = [
        wg.asarray(each, device="cpu").requires_grad_()
        for each in (np.arange(1, 4, dtype=np.float32), np.zeros(0, np.float32))
    ]
    opt = wg.optim.AdamW(params, lr=0.1)
    params[0].grad = wg.asarray([np.nan, np.inf, 0.0], dtype=wg.float32, device="cpu")
    params[1].grad = wg.zeros(0, device="cpu")
    opt.step()
    assert np.isnan(params[0].numpy()).tolist() == [True, True, False]
    assert params[1].shape == (0,)


@settings(max_examples=20)
@given(
    lr=st.floats(1e-4, 0.5),
    momentum=st.floats(0.01, 0.99),
    dampening=st.floats(0, 0.9),
    weight_decay=st.floats(0, 0.5),
    steps=st.integers(1, 4),
)
def test_sgd_with_any_settings(
    lr: float, momentum: float, dampening: float, weight_decay: float, steps: int
) -> None:
    options: dict[str, Any] = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
    }
    params = parameters("cpu", [(3, 2)])
    starts = [each.numpy() for each in params]
    trained(wg.optim.SGD(params, **options), steps)
    np.testing.assert_allclose(
        params[0].numpy(), expected("SGD", options, starts, steps)[0], rtol=1e-4, atol=1e-5
    )
