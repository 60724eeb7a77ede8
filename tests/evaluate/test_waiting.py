"""Work that failed keeps no other work from being done, and says so to nobody but who asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import backlog_of
from tests.runtime.helpers import bench
from webgrad.config import MemoryBudget
from webgrad.errors import OutOfMemoryError, WebgradError
from webgrad.graph.node import backlog

DEVICES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu), pytest.param("short", marks=pytest.mark.gpu)]


class Place(NamedTuple):
    """A device, and rows of two floats for which it has no room: no kernel takes them, or its memory is
    `short`, which is known only when the queue runs.
    """

    device: Any
    rows: int
    short: bool = False


@pytest.fixture(params=DEVICES, scope="module")
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "cpu":
        return Place(wg.open_device("cpu"), 1 << 40)
    if request.param == "gpu":
        return Place(bench().device, 1 << 30)
    return Place(bench(memory=MemoryBudget(bytes=16 << 20)).device, 1 << 23, short=True)


@pytest.fixture(autouse=True)
def small_backlog() -> Iterator[None]:
    with backlog_of(100, 1 << 60):
        yield


def failing(place: Place) -> list[wg.Tensor]:
    """A tensor that cannot be computed, behind ones that it is made of."""
    device, rows, short = place
    small = wg.ones(2, device=device) + 1
    large = wg.broadcast_to(small, (rows, 2)) * wg.arange(2, device=device)
    return [small, wg.tanh(large)] if short else [small, large, wg.tanh(large)]


def failed(place: Place) -> list[wg.Tensor]:
    """The same, of which the last was asked for."""
    made = failing(place)
    refused(made[-1].numpy)
    return made


def refused(ask: Callable[[], Any]) -> str:
    with pytest.raises(WebgradError) as caught:
        ask()
    return str(caught.value)


def increased(x: wg.Tensor, times: int = 1000) -> list[float]:
    """What a loop gives that fills the backlog."""
    for _ in range(times):
        x = x + 1
    found: list[float] = x.tolist()
    return found


def test_other_work_goes_on_and_the_error_comes_again(place: Place) -> None:
    x = wg.ones(3, device=place.device)
    made = failed(place)
    for _ in range(2):
        assert increased(x) == [1001.0] * 3
        wg.eval()
        assert wg.jit(lambda x: x * 3)(x).tolist() == [3.0] * 3
        assert "test_waiting.py" in refused(made[-1].numpy)
    assert made[0].tolist() == [2.0, 2.0]


def test_gradients_go_on(place: Place) -> None:
    made = failed(place)
    w = wg.ones(3, device=place.device).requires_grad_()
    for _ in range(100):
        (w * w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [200.0] * 3
    refused(made[-1].numpy)


def test_a_gradient_that_failed_harms_no_other(place: Place) -> None:
    device, rows, _ = place
    large = wg.broadcast_to(wg.ones(2, device=device), (rows, 2))
    gradient = wg.grad(lambda x: (x * x).sum())(large)
    del large  # it waits too, and nobody was told that there is no room for it
    refused(gradient.numpy)
    w = wg.ones(2, device=device).requires_grad_()
    (w * 3).sum().backward()
    wg.eval()
    assert increased(wg.ones(3, device=device)) == [1001.0] * 3
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]
    refused(gradient.numpy)


def test_what_waits_beside_it_is_computed(place: Place) -> None:
    device = place.device
    before = [wg.ones(2, device=device) * each for each in range(20)]
    made = failed(place)
    after = [made[0] * each for each in range(20)]
    wg.eval()
    assert all(each.node.storage is not None for each in [*before, made[0], *after])
    assert [each.tolist() for each in before] == [[each, each] for each in range(20)]
    assert [each.tolist() for each in after] == [[2 * each, 2 * each] for each in range(20)]


def test_eval_says_once_what_nobody_was_told(place: Place) -> None:
    x = wg.ones(3, device=place.device)
    made = failing(place)
    assert increased(x) == [1001.0] * 3  # the backlog is computed, and nobody is told
    assert wg.jit(lambda x: x * 3)(x).tolist() == [3.0] * 3
    if made[-1].node.storage is None:  # else it waits in the queue of a GPU
        refused(wg.eval)
    wg.eval()
    assert made[0].node.storage is not None
    refused(made[-1].numpy)


def test_a_loop_over_what_failed_is_told_where_it_fills_the_backlog(place: Place) -> None:
    x = failed(place)[-1]
    refused(lambda: increased(x))
    assert len(backlog.made) <= 200


def test_other_results_of_a_pure_function_are_computed(place: Place) -> None:
    device, rows, _ = place

    @wg.pure
    def both(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        return x * 2, wg.broadcast_to(x, (rows, 2)) * wg.arange(2, device=device)

    small, large = both(wg.ones(2, device=device))
    assert small.tolist() == [2.0, 2.0]
    refused(large.numpy)


@pytest.mark.gpu
def test_it_succeeds_when_there_is_room() -> None:
    device = bench(memory=MemoryBudget(bytes=16 << 20)).device
    ballast = wg.asarray(np.zeros(12 << 18, np.float32), device=device)
    x = wg.arange(6 << 18, device=device) * 2
    with pytest.raises(OutOfMemoryError):
        x.numpy()
    wg.eval()
    assert (wg.ones(3, device=device) + 1).tolist() == [2.0] * 3
    del ballast
    np.testing.assert_array_equal(x.numpy(), np.arange(6 << 18) * 2)
