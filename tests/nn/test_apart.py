"""Modules that are called without gradients: their plan is found whatever the program does around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.evaluate.evaluate import clear_plans, plans

nn = wg.nn


@pytest.fixture(autouse=True)
def _on_the_cpu() -> Iterator[None]:
    before = wg.default_device()
    wg.set_default_device("cpu")
    clear_plans()
    yield
    wg.set_default_device(before)


def _deep() -> Any:
    wg.random.seed(1)
    return nn.Sequential(*[each for _ in range(8) for each in (nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU())])


@wg.no_grad()
def _grown(model: Any, count: int) -> Any:
    """Rows, each made of the last three by the model: what waits is never read in between."""
    rows = wg.ones((3, 4))
    for _ in range(count):
        rows = wg.concat([rows, model(rows[-3:] * 0.5)[-1:]])
    return rows


def test_a_growing_program_makes_the_plan_of_a_module_once() -> None:
    model = _deep()
    rows = _grown(model, 1)
    assert rows.shape == (4, 4)
    made = plans()
    found = _grown(model, 6)
    # of each length the few nodes around the model, but not the model
    assert plans() - made <= 12
    assert found.node.inputs == () or len(found.node.inputs) == 2
    again = model.forward  # plain calls, with nothing computed apart
    with wg.no_grad():
        wanted = wg.ones((3, 4))
        for _ in range(6):
            wanted = wg.concat([wanted, again(wanted[-3:] * 0.5)[-1:]])
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


def test_what_a_long_call_gives_is_computed() -> None:
    model = _deep()
    x = wg.ones((2, 4)) + 1
    with wg.no_grad():
        found = model(x)
    assert found.node.storage is not None
    assert x.node.storage is not None


def test_what_waits_as_before() -> None:
    model, x = _deep(), wg.ones((2, 4))
    assert model(x).node.storage is None  # gradients may go through it
    with wg.no_grad():
        assert nn.Linear(4, 4)(x).node.storage is None  # few operations
        wg.compute_apart("text", [None, {"found": 3}])

    @wg.jit
    def captured(x: wg.Tensor) -> wg.Tensor:
        with wg.no_grad():
            found: wg.Tensor = model(x)
            return found

    np.testing.assert_allclose(captured(x).numpy(), model(x).numpy(), rtol=1e-5)
