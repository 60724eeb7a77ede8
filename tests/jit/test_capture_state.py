"""jit: what a function changes, draws and names is what it has at each call."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import webgrad as wg
from tests.jit.helpers import DEVICES, captured, tensor

pytestmark = pytest.mark.parametrize("device", DEVICES)


def test_a_cache_is_written_at_a_place_that_changes(device: str) -> None:
    cache = wg.zeros((8, 4), device=device)

    @wg.jit
    def write(x: wg.Tensor, at: int) -> wg.Tensor:
        cache[at] = x * 2
        return cache.sum()

    expected = np.zeros((8, 4), np.float32)
    for at in (0, 3, 7, 3, 1):
        row = np.arange(4, dtype=np.float32) + at
        expected[at] = row * 2
        assert write(tensor(row, device), at).item() == expected.sum()
        np.testing.assert_array_equal(cache.numpy(), expected)
    assert captured(write).captures == 1


def test_parameters_change_and_are_seen_by_others(device: str) -> None:
    weight = tensor([1.0, 2.0], device)

    @wg.jit
    def train(rate: float) -> wg.Tensor:
        nonlocal weight
        loss = (weight * weight).sum()
        weight -= rate * 2 * weight
        return loss

    use = wg.jit(lambda x: (x * weight).sum())
    expected = np.array([1.0, 2.0])
    for rate in (0.25, 0.125, 0.25, 0.25):
        assert train(rate).item() == (expected**2).sum()
        expected = expected - rate * 2 * expected
        np.testing.assert_array_equal(weight.numpy(), expected)
        assert use(tensor([1, 10], device)).item() == expected @ [1, 10]
    weight *= 0
    assert use(tensor([1, 10], device)).item() == 0
    assert train(0.5).item() == 0


def test_who_holds_the_old_value_keeps_it(device: str) -> None:
    cache = wg.zeros((4, 3), device=device)

    @wg.jit
    def write(at: int) -> None:
        cache[at] = 1.0

    write(0)
    copies = [cache.clone()]
    views = [cache.reshape(12) + 0]
    for at in range(1, 4):
        write(at)
        copies.append(cache.clone())
        views.append(cache.reshape(12) + 0)
    for count, (copy, view) in enumerate(zip(copies, views, strict=True), 1):
        assert copy.sum().item() == 3 * count
        assert view.sum().item() == 3 * count


def test_an_argument_may_be_changed(device: str) -> None:
    @wg.jit
    def add_one(x: wg.Tensor) -> wg.Tensor:
        before = x * 1
        x += 1
        return before

    x = tensor([1, 2], device)
    for count in range(3):
        assert add_one(x).tolist() == [1 + count, 2 + count]
        assert x.tolist() == [2 + count, 3 + count]


def test_tensors_that_share_a_value_go_apart(device: str) -> None:
    first = tensor([1.0], device)
    second = first.clone()

    @wg.jit
    def step() -> wg.Tensor:
        nonlocal first
        first += 1
        return first * 10 + second

    assert [step().item() for _ in range(3)] == [21, 31, 41]
    assert second.item() == 1


def test_a_lazy_tensor_is_state_too(device: str) -> None:
    total = wg.zeros(3, device=device) + 1  # not computed yet

    @wg.jit
    def add(x: wg.Tensor) -> None:
        nonlocal total
        total += x

    for _ in range(3):
        add(wg.ones(3, device=device))
    assert total.tolist() == [4, 4, 4]


def test_what_cannot_be_computed_elsewhere_does_no_harm(device: str) -> None:
    huge = wg.broadcast_to(wg.ones((16, 1), device=device), (16, 1 << 40 if device == "cpu" else 1 << 27)) * 1
    total = wg.zeros(2, device=device) + 1  # waits, as that does

    @wg.jit
    def add(x: wg.Tensor) -> None:
        nonlocal total
        total += x

    for _ in range(3):
        add(tensor([1, 2], device))
    assert total.tolist() == [4, 7]
    with pytest.raises(wg.WebgradError, match="while computing"):
        wg.eval(huge)


def test_random_numbers_are_drawn_anew(device: str) -> None:
    noisy = wg.jit(lambda x: x + wg.random.uniform((4,), device=device))
    x = wg.zeros(4, device=device)
    wg.random.seed(3)
    ours = [noisy(x).tolist() for _ in range(3)]
    wg.random.seed(3)
    assert ours == [(x + wg.random.uniform((4,), device=device)).tolist() for _ in range(3)]


def test_what_died_is_captured_anew(device: str) -> None:
    holder = {"w": tensor([2.0], device)}
    use = wg.jit(lambda x: x * holder["w"])
    assert use(tensor([3], device)).item() == 6
    holder["w"] = tensor([5.0], device)
    gc.collect()
    assert use(tensor([3], device)).item() == 15
    holder["w"] = tensor([5.0, 6.0], device)
    assert use(tensor([3], device)).tolist() == [15, 18]


def test_names_may_be_given_to_others(device: str) -> None:
    weight, rate, runs = tensor([2.0], device), 0.5, 0

    @wg.jit
    def scaled(x: wg.Tensor) -> wg.Tensor:
        nonlocal runs
        runs += 1
        return x * weight * rate

    x = tensor([3.0], device)
    assert [scaled(x).item() for _ in range(3)] == [3, 3, 3]
    old, weight = weight, tensor([4.0], device)  # the old one lives on
    assert [scaled(x).item() for _ in range(3)] == [6, 6, 6]
    rate = 2.0
    assert [scaled(x).item() for _ in range(3)] == [24, 24, 24]
    assert (runs, old.item(), captured(scaled).captures) == (3, 2, 3)
