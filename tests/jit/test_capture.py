"""jit: what a captured call gives is what the function gives, call after call."""

from __future__ import annotations

import threading
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.jit.helpers import DEVICES, captured, tensor
from webgrad.evaluate.evaluate import plans

Pair = namedtuple("Pair", "left right")

pytestmark = pytest.mark.parametrize("device", DEVICES)


def test_new_values_of_the_same_shape_run_no_python(device: str) -> None:
    runs = 0

    @wg.jit
    def double(x: wg.Tensor) -> wg.Tensor:
        nonlocal runs
        runs += 1
        return x * 2 + x.sum()

    for start in range(5):
        values = np.arange(start, start + 6, dtype=np.float32)
        np.testing.assert_allclose(double(tensor(values, device)).numpy(), values * 2 + values.sum())
    assert runs == 1


def test_after_the_first_call_nothing_is_planned(device: str) -> None:
    step = wg.jit(lambda x: (x @ x).sum())
    step(wg.ones((4, 4), device=device))
    before = plans()
    for _ in range(3):
        assert step(wg.ones((4, 4), device=device).reshape(4, 4)).item() == 64
    assert plans() - before <= 1  # the arguments' own


def test_shapes_dtypes_and_static_arguments_are_captured_apart(device: str) -> None:
    @wg.jit(static="count")
    def repeated(x: wg.Tensor, count: int) -> wg.Tensor:
        for _ in range(count):
            x = x + x
        return x

    assert repeated(tensor([1, 2], device), 3).tolist() == [8, 16]
    assert repeated(tensor([1, 2], device), count=2).tolist() == [4, 8]
    assert repeated(tensor([1, 2, 3], device), 3).tolist() == [8, 16, 24]
    assert repeated(wg.asarray([1], dtype=wg.int32, device=device), 3).tolist() == [8]
    assert captured(repeated).captures == 4
    captured(repeated).clear()
    assert captured(repeated).captures == 0


def test_numbers_may_change(device: str) -> None:
    runs = 0

    @wg.jit
    def scaled(x: wg.Tensor, by: float, plus: int) -> wg.Tensor:
        nonlocal runs
        runs += 1
        return x * by + plus

    for by, plus in ((0.5, 3), (0.5, 0.0 == 1), (2.0, -7), (2.0, 2)):
        result = scaled(tensor([1, 2], device), by, plus)
        np.testing.assert_allclose(result.numpy(), np.array([1, 2], np.float32) * by + plus)
    assert runs == 2  # a bool is no number


def test_equal_numbers_are_not_taken_for_one(device: str) -> None:
    mixed = wg.jit(lambda x, a, b: (x * a) + (x * a * 0.5) * b + x * 0.5)
    for a, b in ((0.5, 0.5), (0.5, 3.0), (2.0, 0.5)):
        expected = 4 * a + 4 * a * 0.5 * b + 4 * 0.5
        assert mixed(tensor([4], device), a, b).item() == expected


def test_nested_arguments_and_results(device: str) -> None:
    @wg.jit
    def swap(pair: Any, more: dict[str, Any], name: str, nothing: None) -> Any:
        assert nothing is None
        return Pair(pair.right, pair.left + more["x"][0]), [name, {"both": pair.left @ pair.right}], 7

    for start in (1.0, 5.0):
        left, right = np.array([start, 2], np.float32), np.array([3, start], np.float32)
        result, rest, seven = swap(
            Pair(tensor(left, device), tensor(right, device)), {"x": [1.5, "unused"]}, "a", None
        )
        assert isinstance(result, Pair)
        np.testing.assert_array_equal(result.left.numpy(), right)
        np.testing.assert_array_equal(result.right.numpy(), left + 1.5)
        assert rest[0] == "a"
        assert rest[1]["both"].item() == left @ right
        assert seven == 7


def test_the_same_tensor_twice_is_not_one_argument(device: str) -> None:
    difference = wg.jit(lambda x, y: x - y)
    x = tensor([1, 2], device)
    assert difference(x, x).tolist() == [0, 0]
    assert difference(x, tensor([5, 5], device)).tolist() == [-4, -3]


def test_a_change_through_one_argument_is_seen_through_the_other(device: str) -> None:
    def add(a: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
        a += 1
        return a + b

    step, x, y = wg.jit(add), tensor([1, 2], device), tensor([10, 20], device)
    assert step(x, y).tolist() == [12, 23]
    for count in (3, 4):
        assert step(x, x).tolist() == [2 * count, 2 * count + 2]
        assert x.tolist() == [count, count + 1]
    assert step(y, x).tolist() == [15, 26]


def test_an_argument_or_a_constant_may_be_the_result(device: str) -> None:
    constant = tensor([9], device)
    either = wg.jit(lambda x, n: (x, n, constant, wg.ones(2, device=device)))
    for value in (1.0, 2.0):
        x, n, same, ones = either(tensor([value], device), value)
        assert [x.item(), n.item(), same.item(), *ones.tolist()] == [value, value, 9, 1, 1]


def test_numpy_arrays_and_empty_tensors(device: str) -> None:
    with_array = wg.jit(lambda x, y: x.to_device("cpu") if x.device.name == "cpu" else x + 0)
    assert with_array(tensor([1], device), np.float32(2)).item() == 1
    empty = wg.jit(lambda x: (x.sum(), x * 2))
    for _ in range(3):
        total, none = empty(wg.zeros((0, 3), device=device))
        assert total.item() == 0
        assert none.shape == (0, 3)


def test_methods_and_functions_inside_of_functions(device: str) -> None:
    class Layer:
        def __init__(self, scale: float) -> None:
            self.weight = tensor([scale], device)

        @wg.jit
        def __call__(self, x: wg.Tensor) -> wg.Tensor:
            return x * self.weight

    one, two = Layer(2), Layer(3)
    outer = wg.jit(lambda x: one(x) + two(x))
    for value in (1.0, 4.0):
        assert one(tensor([value], device)).item() == 2 * value
        assert two(tensor([value], device)).item() == 3 * value
        assert outer(tensor([value], device)).item() == 5 * value


# Elsewhere


def test_threads_share_a_captured_function(device: str) -> None:
    total = wg.zeros(1, device=device)

    @wg.jit
    def add(x: wg.Tensor) -> wg.Tensor:
        nonlocal total
        total += x
        return x * 2

    failures: list[Any] = []

    def work(value: float) -> None:
        results = [add(tensor([value], device)).item() for _ in range(20)]
        failures.extend(each for each in results if each != 2 * value)

    threads = [threading.Thread(target=work, args=(float(each),)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    assert total.item() == 20 * (0 + 1 + 2 + 3)


def test_a_long_graph_is_captured_whole(device: str) -> None:
    @wg.jit
    def long(x: wg.Tensor) -> wg.Tensor:
        for _ in range(1500):  # deeper than Python's functions may call each other
            x = x * 0.5 + 1
        return x

    for value in (0.0, 8.0):
        assert long(tensor([value], device)).item() == 2
