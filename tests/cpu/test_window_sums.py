"""Sums of products over samples and places: every cut gives what one product gives, in any threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import graph_of
from webgrad.cpu import window_sums
from webgrad.cpu.groups import summed_axes
from webgrad.cpu.window_sums import WindowSum
from webgrad.runtime import threads

Array = np.ndarray[Any, Any]


def operands(samples: int, dtype: Any = np.float32) -> tuple[Array, Array, Array]:
    """(m, samples, places…), windows (samples, places…, channels, kernel…), and their product."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(samples, 3, 9, 8)).astype(dtype)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    a = generator.normal(size=(samples, 5, 7, 7)).astype(dtype).transpose(1, 0, 2, 3)
    return a, windows, np.einsum("onhw,nhwckl->ockl", a.astype(np.float64), windows).reshape(5, 18)


@pytest.mark.parametrize("samples", [1, 2, 33])
@pytest.mark.parametrize("block", [1 << 17, 500, 1])
def test_blocks(samples: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_sums, "BLOCK", block)
    monkeypatch.setattr(window_sums, "PLACES", max(1, block // 100))
    a, windows, expected = operands(samples)
    out = np.full((5, 18), np.nan, np.float32)
    WindowSum(windows.shape, (5, 18), 3)(a, windows, out)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_nothing_to_sum() -> None:
    a, windows, _ = operands(1)
    out = np.full((5, 18), np.nan, np.float32)
    WindowSum((0, 7, 7, 3, 3, 2), (5, 18), 3)(a[:, :0], windows[:0], out)
    assert not out.any()


def test_halves_are_summed_in_float32() -> None:
    a, windows, expected = operands(8, np.float16)
    out = np.empty((5, 18), np.float32)
    WindowSum(windows.shape, (5, 18), 3)(a, windows, out)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_sums, "BLOCK", 1000)
    a, windows, _ = operands(40)
    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "cores", lambda count=count: count)
        results.append(WindowSum(windows.shape, (5, 18), 3)(a, windows, np.empty((5, 18), np.float32)))
    assert all((each == results[0]).all() for each in results)


def test_such_sums_are_found_in_a_graph() -> None:
    x, weight = wg.ones((2, 3, 8, 8)), wg.ones((4, 3, 3, 3))
    gradient = wg.grad(lambda w: wg.conv2d(x, w).sum())(weight)
    graph = graph_of(gradient)
    (product,) = [each for each in graph.order() if graph.sigs[each].kind == "contract"]
    (view,) = graph.inputs[graph.inputs[product][1]]
    assert summed_axes(graph, product, view) == 3
    plain = graph_of(wg.ones((3, 4)) @ wg.ones((4, 5)))
    (product,) = [each for each in plain.order() if plain.sigs[each].kind == "contract"]
    assert summed_axes(plain, product, plain.inputs[product][1]) == 0
