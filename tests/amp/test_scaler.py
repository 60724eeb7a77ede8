"""Loss scaling: overflowed steps leave everything as it was, and nothing is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.optim.helpers import DEVICES, parameters
from webgrad import Tensor


def training(kind: str, captured: bool, **options: Any) -> tuple[Any, Any, Any, list[Tensor]]:
    """A step of x → loss, its scaler, optimiser and parameters."""
    params = parameters(kind, [(4, 3), (4,)])
    opt = wg.optim.AdamW(params, lr=0.1)
    scaler = wg.amp.GradScaler(device=params[0].device, **options)

    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        with wg.amp.autocast():
            loss = wg.square(wg.linear(x, params[0], params[1])).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = wg.nn.utils.clip_grad_norm_(params, 1.0)
        scaler.step(opt)
        scaler.update()
        return norm

    return (wg.jit(step) if captured else step), scaler, opt, params


@DEVICES
@pytest.mark.parametrize("captured", [False, True], ids=["plain", "captured"])
def test_an_overflow_is_skipped_and_the_scale_falls(kind: str, captured: bool) -> None:
    step, scaler, opt, params = training(kind, captured, init_scale=1024.0, growth_interval=2)
    good = wg.full((5, 3), 0.1, device=params[0].device)
    bad = wg.full((5, 3), 1e6, device=params[0].device)  # infinite in half precision
    step(good)
    before = [each.numpy() for each in params]
    state = {key: value.numpy() for key, value in opt.state_dict()["state"][0].items()}
    step(bad)
    assert scaler.get_scale() == 512
    assert all(np.array_equal(old, new.numpy()) for old, new in zip(before, params, strict=True))
    for key, value in opt.state_dict()["state"][0].items():
        assert np.array_equal(value.numpy(), state[key]), key
    step(good)
    assert not np.array_equal(before[0], params[0].numpy())
    assert scaler.get_scale() == 512
    step(good)
    assert scaler.get_scale() == 1024  # after two good steps
    assert opt.state_dict()["state"][0]["step"].item() == 3


def test_scaled_steps_are_the_steps() -> None:
    plain, scaled = parameters(shapes=[(3,)]), parameters(shapes=[(3,)])
    first, second = wg.optim.SGD(plain, lr=0.1), wg.optim.SGD(scaled, lr=0.1)
    scaler = wg.amp.GradScaler()
    for _ in range(3):
        first.zero_grad()
        wg.square(plain[0]).sum().backward()
        first.step()
        second.zero_grad()
        scaler.scale(wg.square(scaled[0]).sum()).backward()
        scaler.step(second)
        scaler.update()
    np.testing.assert_allclose(scaled[0].numpy(), plain[0].numpy(), rtol=1e-6)


def test_the_scale_grows_but_not_to_infinity() -> None:
    (w,) = parameters(shapes=[(3,)])
    opt = wg.optim.SGD([w], lr=0.0)
    scaler = wg.amp.GradScaler(init_scale=2.0**127, growth_interval=1)
    w.grad = wg.zeros(3)
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 2.0**127
    scaler.update(new_scale=4.0)
    assert scaler.get_scale() == 4.0


def test_several_losses_and_a_disabled_scaler() -> None:
    one, two = wg.asarray(1.0), wg.asarray(2.0)
    scaler = wg.amp.GradScaler(init_scale=8.0)
    assert [each.item() for each in scaler.scale([one, two])] == [8.0, 16.0]
    off = wg.amp.GradScaler(enabled=False)
    assert not off.is_enabled()
    assert off.scale(one) is one
    assert off.get_scale() == 1.0
    assert off.state_dict() == {}
    (w,) = parameters(shapes=[(3,)])
    opt = wg.optim.SGD([w], lr=1.0)
    before = w.numpy()
    w.grad = wg.ones(3)
    off.unscale_(opt)
    off.step(opt)
    off.update()
    np.testing.assert_allclose(before - w.numpy(), 1.0, rtol=1e-6)


def test_a_saved_scaler_goes_on() -> None:
    step, scaler, _, params = training("cpu", False, init_scale=64.0, growth_interval=3)
    step(wg.full((5, 3), 0.1, device=params[0].device))
    other = wg.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert other.state_dict()["_growth_tracker"] == 1
    with pytest.raises(wg.ArgumentError, match="state is empty"):
        other.load_state_dict({})


def test_what_is_out_of_order_is_refused() -> None:
    (w,) = parameters(shapes=[(3,)])
    opt = wg.optim.SGD([w], lr=1.0)
    scaler = wg.amp.GradScaler()
    with pytest.raises(wg.ArgumentError, match="no optimiser has made a step"):
        scaler.update()
    with pytest.raises(wg.ArgumentError, match="call backward first"):
        scaler.step(opt)
    w.grad = wg.ones(3)
    scaler.unscale_(opt)
    with pytest.raises(wg.ArgumentError, match="unscaled already"):
        scaler.unscale_(opt)
    scaler.step(opt)
    with pytest.raises(wg.ArgumentError, match="called twice"):
        scaler.step(opt)
    with pytest.raises(wg.ArgumentError, match=r"growth_factor 1\.0 must be above 1"):
        wg.amp.GradScaler(growth_factor=1.0)


@pytest.mark.gpu
def test_a_scaler_elsewhere_is_refused() -> None:
    (w,) = parameters("software", shapes=[(3,)])
    with pytest.raises(wg.DeviceError, match="make it with GradScaler"):
        wg.amp.GradScaler(device="cpu").scale(w.sum())
