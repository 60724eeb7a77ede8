"""Steps on the cpu are captured after two: what changes between them is seen, and nothing is kept alive."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator
from typing import Any
from weakref import ref

import numpy as np
import pytest

import webgrad as wg
from webgrad.evaluate.evaluate import plans
from webgrad.optim.optimizer import PLAIN_STEPS

STEPS = PLAIN_STEPS + 3


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    before = wg.default_device()
    wg.set_default_device("cpu")
    yield
    wg.set_default_device(before)


def parameter(*values: float) -> wg.Tensor:
    return wg.asarray(np.asarray(values, np.float32)).requires_grad_()


def take(optimiser: Any, *parameters: wg.Tensor, **options: Any) -> float:
    """A step on the sum of squares; gives the loss."""
    optimiser.zero_grad()
    loss = sum(((each * each).sum() for each in parameters), start=wg.zeros(()))
    loss.backward()
    optimiser.step(**options)
    return float(loss.item())


def taken(optimiser: Any, *parameters: wg.Tensor, steps: int = STEPS) -> list[Any]:
    for _ in range(steps):
        take(optimiser, *parameters)
    return [each.tolist() for each in parameters]


@pytest.mark.parametrize("kind", [wg.optim.SGD, wg.optim.Adam, wg.optim.AdamW, wg.optim.NAdam])
def test_captured_steps_are_plain_ones(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = parameter(1.0, -2.0, 3.0), parameter(1.0, -2.0, 3.0)
    found = taken(kind([one], lr=0.1), one, steps=8)
    monkeypatch.setattr("webgrad.optim.optimizer.PLAIN_STEPS", 100)
    np.testing.assert_allclose(found, taken(kind([other], lr=0.1), other, steps=8), rtol=1e-6)


def test_parameters_are_computed_when_they_are_taken() -> None:
    """Beginnings of weights are no part of the first step, which is planned and compiled like the others."""
    weight = wg.random.normal((3, 4)).requires_grad_()
    wg.optim.SGD([weight])
    assert weight.node.storage is not None


def test_the_loss_and_gradients_have_one_plan_in_all_steps() -> None:
    weight = parameter(1.0, 2.0)
    optimiser = wg.optim.SGD([weight], lr=0.1, momentum=0.9)
    for _ in range(PLAIN_STEPS):
        take(optimiser, weight)
    before = plans()
    take(optimiser, weight)
    assert plans() - before == 1  # of the step, which is captured now


def test_the_loss_is_of_the_values_before_the_step() -> None:
    x = parameter(1.0)
    optimiser = wg.optim.SGD([x], lr=0.25)
    losses = [take(optimiser, x) for _ in range(STEPS)]
    assert losses == [0.25**each for each in range(STEPS)]


def test_settings_and_schedules_are_seen() -> None:
    x = parameter(1.0)
    optimiser = wg.optim.SGD([x], lr=0.25)
    taken(optimiser, x)
    before = x.item()
    optimiser.param_groups[0]["lr"] = 0.0
    assert taken(optimiser, x) == [[before]]
    optimiser.param_groups[0].update(lr=0.5, weight_decay=1.0)
    take(optimiser, x)
    assert x.item() == pytest.approx(before * (1 - 0.5 * 3))


def test_groups_that_come_later_and_parameters_that_go() -> None:
    x, y, z = parameter(1.0), parameter(1.0), parameter(1.0)
    optimiser = wg.optim.SGD([x], lr=0.25)
    taken(optimiser, x)
    optimiser.add_param_group({"params": [y], "lr": 0.5})
    take(optimiser, x, y)
    assert y.tolist() == [0.0]
    assert x.item() == 0.5 ** (STEPS + 1)
    optimiser.param_groups[1]["params"] = []
    optimiser.add_param_group({"params": [z], "lr": 0.25})
    take(optimiser, x, y, z)
    assert (y.tolist(), z.tolist()) == ([0.0], [0.5])


def test_a_parameter_without_a_gradient_is_skipped() -> None:
    def run() -> list[Any]:
        x, y = parameter(1.0), parameter(1.0)
        optimiser = wg.optim.Adam([x, y], lr=0.1)
        for at in range(8):
            take(optimiser, *((x, y) if at % 3 else (x,)))
        return [x.tolist(), y.tolist(), optimiser.state_dict()["state"][1]["step"].item()]

    found = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webgrad.optim.optimizer.PLAIN_STEPS", 100)
        np.testing.assert_allclose(np.asarray(found, object)[2], run()[2])
        np.testing.assert_allclose(found[1], run()[1], rtol=1e-6)


def test_steps_that_are_skipped() -> None:
    x = parameter(1.0)
    optimiser = wg.optim.SGD([x], lr=0.25)
    taken(optimiser, x)
    before = x.item()
    take(optimiser, x, skip=wg.asarray(True))
    assert x.item() == before
    take(optimiser, x, skip=wg.asarray(False))
    assert x.item() == before / 2


def test_copies_and_pickles_go_on() -> None:
    x = parameter(1.0, 2.0)
    optimiser = wg.optim.Adam([x], lr=0.1)
    taken(optimiser, x)
    copied, pickled = copy.deepcopy(optimiser), pickle.loads(pickle.dumps(optimiser))
    (want,) = taken(optimiser, x)
    for each in (copied, pickled):
        (own,) = each.param_groups[0]["params"]
        assert own is not x
        np.testing.assert_allclose(taken(each, own)[0], want, rtol=1e-6)


def test_an_optimiser_and_its_parameters_go_without_the_garbage_collector() -> None:
    x = parameter(1.0)
    optimiser = wg.optim.Adam([x], lr=0.1)
    taken(optimiser, x)
    gone = ref(optimiser), ref(x)
    gc.collect()
    gc.disable()
    try:
        del optimiser, x
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()


def test_gradients_and_views_stay_what_they_were() -> None:
    x = parameter(1.0, 2.0)
    view = x.detach()[:1]
    optimiser = wg.optim.SGD([x], lr=0.25)
    for at in range(STEPS):
        take(optimiser, x)
        gradient = x.grad
        assert gradient is not None
        assert gradient.tolist() == [2 * 0.5**at, 4 * 0.5**at]
        assert view.tolist() == [0.5 ** (at + 1)]
