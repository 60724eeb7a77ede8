"""Steps inside of captured functions: rates are those of the call, and state goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.optim.helpers import DEVICES, drawn, parameters
from tests.selection import every
from webgrad import Tensor

NAMES = ["SGD", "Adam", "AdamW", "RMSprop", "Lion"]


def training(kind: str, name: str, **options: Any) -> tuple[Any, Any, list[Tensor]]:
    """A step, its optimiser, and its parameters."""
    params = parameters(kind, [(4, 3), (4,)])
    opt = getattr(wg.optim, name)(params, **options)

    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = wg.square(wg.linear(x, params[0], params[1])).mean()
        loss.backward()
        opt.step()
        return loss

    return step, opt, params


def inputs(params: list[Tensor], at: int) -> Tensor:
    return wg.asarray(drawn(at, (5, 3)), device=params[0].device)


@DEVICES
@pytest.mark.parametrize("name", every(2, NAMES))
def test_a_captured_step_is_the_step(kind: str, name: str) -> None:
    plain, plain_opt, plain_params = training(kind, name, lr=0.05)
    step, opt, params = training(kind, name, lr=0.05)
    captured: Any = wg.jit(step)
    for at in range(5):
        if at == 3:  # as a schedule does
            opt.param_groups[0]["lr"] = plain_opt.param_groups[0]["lr"] = 0.5
        captured(inputs(params, at))
        plain(inputs(params, at))
    assert captured.captures == 1
    for a, b in zip(params, plain_params, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_a_rate_of_zero_is_seen() -> None:
    step, opt, params = training("cpu", "Adam", lr=0.1)
    captured = wg.jit(step)
    captured(inputs(params, 0))
    opt.param_groups[0]["lr"] = 0
    before = params[0].numpy()
    captured(inputs(params, 1))
    assert np.array_equal(params[0].numpy(), before)
    assert opt.state_dict()["state"][0]["step"].item() == 2


def test_betas_that_a_cycle_changes_are_seen() -> None:
    runs = []
    for wrap in (wg.jit, lambda step: step):
        step, opt, params = training("cpu", "Adam", lr=0.1)
        rates = wg.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=6)
        wrapped = wrap(step)
        for at in range(5):
            wrapped(inputs(params, at))
            rates.step()
        runs.append(params[0].numpy())
        assert getattr(wrapped, "captures", 1) == 1
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-5, atol=1e-6)


def test_a_setting_that_means_other_arithmetic_is_seen() -> None:
    step, opt, params = training("cpu", "SGD", lr=0.1)
    captured = wg.jit(step)
    captured(inputs(params, 0))
    before = params[0].numpy()
    opt.param_groups[0]["maximize"] = True
    loss = captured(inputs(params, 1)).item()
    assert captured(inputs(params, 1)).item() > loss
    assert not np.array_equal(params[0].numpy(), before)


def test_a_parameter_without_a_gradient_in_a_captured_step_stays_behind() -> None:
    params = parameters("cpu", [(3,), (3,)])
    opt = wg.optim.Adam(params, lr=0.1)

    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = (params[0] * x).sum()
        loss.backward()
        opt.step()
        return loss

    captured = wg.jit(step)
    before = params[1].numpy()
    for _ in range(3):
        captured(wg.ones(3, device="cpu"))
    assert np.array_equal(params[1].numpy(), before)
    assert [opt.state_dict()["state"][at]["step"].item() for at in (0, 1)] == [3, 0]
    params[1].grad = wg.ones(3, device="cpu")
    opt.step()  # its first: a whole rate
    np.testing.assert_allclose(before - params[1].numpy(), 0.1, rtol=1e-4)


@pytest.mark.gpu
def test_nothing_is_made_after_the_third_step() -> None:
    step, opt, params = training("software", "AdamW", lr=0.05)
    device = params[0].device
    batches = [inputs(params, at) for at in range(10)]
    for captured in (wg.jit(step), step):
        for at in range(3):
            captured(batches[at])
        wg.synchronize(device)
        before = wg.stats(device)
        for at in range(3, 10):
            captured(batches[at])
            opt.param_groups[0]["lr"] *= 0.9
        wg.synchronize(device)
        after = wg.stats(device)
        for name in ("pipelines_compiled", "buffers_created", "host_round_trips"):
            assert after[name] == before[name], name
