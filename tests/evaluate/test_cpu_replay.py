"""Captured calls on the cpu: what stays between them is looked up once, and seen when it changes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import numpy as np
import pytest

import webgrad as wg
from webgrad.evaluate.cpu_replay import HostReplay
from webgrad.jit.capture import Jit
from webgrad.native.compiler import is_available

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def needs_native() -> Iterator[None]:
    if not is_available():
        pytest.skip("no native code here: llvmlite is not installed, or switched off")
    before = wg.default_device()
    wg.set_default_device("cpu")
    yield
    wg.set_default_device(before)


def replay_of(function: Any) -> HostReplay:
    """What runs the last capture of a function, which has been called twice."""
    assert isinstance(function, Jit)
    *_, variants = function._captures.values()
    recorded = variants[0].parts[0].recorded
    assert isinstance(recorded, HostReplay)
    return recorded


def test_weights_are_looked_up_once_and_seen_when_they_are_others() -> None:
    weights = [wg.asarray(np.full(3, each, np.float32)) for each in (1.0, 2.0, 3.0)]
    total = wg.jit(lambda x: x + weights[0] + weights[1] * weights[2])
    x = wg.zeros(3)
    for _ in range(3):
        assert total(x).tolist() == [7.0] * 3
    known = replay_of(total)._addresses
    assert len(known) == 3
    assert total(x).tolist() == [7.0] * 3
    assert replay_of(total)._addresses is known
    weights[1][...] = wg.full((3,), 5.0)
    for _ in range(2):
        assert total(x).tolist() == [16.0] * 3
    weights[0] += 1.0
    assert total(x).tolist() == [17.0] * 3
    assert total(wg.ones(3)).tolist() == [18.0] * 3


def test_a_weight_whose_node_gets_other_storage_is_seen() -> None:
    weight = wg.asarray(np.full(5, 2.0, np.float32))
    scaled = wg.jit(lambda x: x * weight)
    x = wg.ones(5)
    for _ in range(3):
        assert scaled(x).tolist() == [2.0] * 5
    weight.node.storage = np.full(5, 4.0, np.float32)
    for _ in range(2):
        assert scaled(x).tolist() == [4.0] * 5


def test_weights_that_another_captured_function_trains() -> None:
    weight = wg.asarray(np.zeros(1000, np.float32))

    @wg.jit
    def train() -> None:
        nonlocal weight
        weight += 1.0

    used = wg.jit(lambda x: x + weight)
    for each in range(1, 6):
        train()
        assert used(wg.zeros(1000)).tolist() == [each] * 1000


def test_arrays_are_not_kept_alive() -> None:
    weight = wg.asarray(np.ones(50000, np.float32))
    scaled = wg.jit(lambda x: x * weight)
    for _ in range(3):
        scaled(wg.ones(50000))
    gone = ref(weight.node.storage)
    weight[...] = wg.zeros(50000)
    wg.eval(weight)
    gc.collect()
    assert gone() is None
    assert scaled(wg.ones(50000)).sum().item() == 0


def test_a_weight_that_is_no_contiguous_array_of_its_own() -> None:
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    weight, number = wg.asarray(np.zeros((4, 3), np.float32)), wg.asarray(np.float32(0))
    wg.eval(weight, number)
    weight.node.storage, number.node.storage = table.T, np.float32(3)
    total = wg.jit(lambda x: x + weight * number)
    for _ in range(4):
        np.testing.assert_array_equal(total(wg.ones((4, 3))).numpy(), 1 + 3 * table.T)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(dtype: Any) -> None:
    values = (np.arange(6) + 1j * np.arange(6)[::-1]).astype(dtype)
    weight = wg.asarray(values)
    product = wg.jit(lambda x: (x * weight, x.real))
    for _ in range(3):
        found, real = product(wg.asarray(values))
        np.testing.assert_allclose(found.numpy(), values * values, rtol=1e-6)
        np.testing.assert_array_equal(real.numpy(), values.real)


def test_steps_of_numpy_among_native_ones() -> None:
    weight = wg.asarray(np.asarray([3.0, 1.0, 2.0], np.float32))
    ordered = wg.jit(lambda x: wg.sort(x * weight) + weight)
    for each in (1.0, 2.0, 3.0):
        found = ordered(wg.full((3,), each)).tolist()
        assert found == [each + 3.0, 2 * each + 1.0, 3 * each + 2.0]


def test_it_can_be_watched() -> None:
    weight = wg.asarray(np.ones(8, np.float32))
    scaled = wg.jit(lambda x: wg.exp(x) * weight)
    want = scaled(wg.ones(8)).tolist()
    scaled(wg.ones(8))
    with wg.profile() as profile:
        assert scaled(wg.ones(8)).tolist() == want
    assert "exp" in str(profile)
    assert scaled(wg.ones(8)).tolist() == want


def test_native_code_leaves_no_warning_behind() -> None:
    divided = wg.jit(lambda x, y: x / y)
    with np.errstate(all="raise"):
        for _ in range(3):
            assert divided(wg.ones(8), wg.zeros(8)).tolist() == [np.inf] * 8
            assert (np.ones(8) * 2).sum() == 16
