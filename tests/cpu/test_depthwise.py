"""Sums over windows: what a plain sum of products gives, for every arrangement of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.cpu.helpers import apply, drawn, fold
from webgrad.cpu.depthwise import sum_windows, window_sum
from webgrad.graph.node import Node
from webgrad.graph.snapshot import snapshot, walk
from webgrad.ops import primitives

Array = np.ndarray[Any, Any]
Sides = tuple[int, ...]


def windows(x: Array, kernel: Sides, stride: Sides, dilation: Sides) -> Array:
    """(N, C, …) as a view (N, C, 1, kernel…, places…)."""
    steps = x.strides[2:]
    places = [
        (side - apart * (size - 1) - 1) // step + 1
        for side, size, step, apart in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    inner = [each * apart for each, apart in zip(steps, dilation, strict=True)]
    outer = [each * step for each, step in zip(steps, stride, strict=True)]
    shape = (*x.shape[:2], 1, *kernel, *places)
    return np.lib.stride_tricks.as_strided(x, shape, (*x.strides[:2], 0, *inner, *outer), writeable=False)


CASES: list[tuple[Sides, Sides, Sides, Sides, int]] = [
    ((2, 3, 9, 10), (3, 3), (1, 1), (1, 1), 1),
    ((1, 4, 9, 10), (2, 3), (1, 1), (2, 3), 2),
    ((2, 2, 9, 11), (3, 3), (2, 1), (1, 1), 1),
    ((2, 2, 9, 11), (3, 3), (2, 3), (1, 1), 3),
    ((3, 5, 20), (4,), (1,), (2,), 1),
    ((2, 2, 5, 6, 7), (2, 2, 3), (1, 1, 1), (1, 1, 1), 1),
    ((1, 2, 3, 3), (3, 3), (1, 1), (1, 1), 1),
    ((0, 2, 4, 4), (3, 3), (1, 1), (1, 1), 1),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("arrange", ["plain", "channels last", "backwards", "repeated"])
def test_like_a_plain_sum(case: Any, dtype: Any, arrange: str) -> None:
    shape, kernel, stride, dilation, outputs = case
    generator = np.random.default_rng(1)
    x = generator.normal(size=shape).astype(dtype)
    if arrange == "channels last":
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    elif arrange == "backwards":
        x = x[..., ::-1]
    elif arrange == "repeated":
        x = np.broadcast_to(x[:, :, :1], x.shape)
    view = windows(x, kernel, stride, dilation)
    count = len(kernel)
    weights = generator.normal(size=(shape[1], outputs, *kernel, *[1] * count)).astype(dtype)
    expected = (view * weights).sum(tuple(range(3, 3 + count)))
    result = sum_windows(view, weights)
    assert result.flags.c_contiguous
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    out = np.full_like(expected, -1)
    assert sum_windows(view, weights, out) is out
    np.testing.assert_array_equal(out, result)
    part = sum_windows(view[:, 1:, ..., 1:], weights[1:])
    np.testing.assert_allclose(part, expected[:, 1:, ..., 1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_one_bad_element_is_in_its_windows_only(bad: float) -> None:
    x = np.ones((1, 2, 7, 8), np.float32)
    x[0, 1, 3, 7] = x[0, 0, 2, 0] = bad
    view = windows(x, (3, 3), (1, 1), (1, 1))
    weights = np.ones((2, 1, 3, 3, 1, 1), np.float32)
    weights[0, 0, 1] = 0  # times infinity is not a number
    with np.errstate(invalid="ignore"):
        expected = (view * weights).sum((3, 4))
        np.testing.assert_array_equal(sum_windows(view, weights), expected)


def summed(x: Node, weights: Node, *axes: int) -> tuple[int, ...]:
    root = fold("sum", apply("multiply", x, weights), *axes)
    graph = snapshot(walk([root]), [root])
    return window_sum(graph, graph.roots[0])


def test_which_sums_are_taken() -> None:
    x, weights = drawn(2, 4, 1, 3, 5), drawn(4, 2, 3, 1)
    assert len(summed(x, weights, 3)) == 1
    assert len(summed(primitives.reshape(drawn(2, 4, 3, 5), (2, 4, 1, 3, 5)), weights, 3)) == 2
    assert not summed(x, weights, 4)
    assert not summed(x, weights, 3, 4)
    assert not summed(x, drawn(4, 2, 3, 5), 3)
    assert not summed(x, drawn(1, 2, 3, 1), 3)
    assert not summed(drawn(2, 4, 2, 3, 5), weights, 3)
    assert not summed(drawn(4, 1, 3, 5), weights, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_convolution_in_blocks(dtype: Any, outputs: int) -> None:
    """Large enough for blocks in several threads; the numbers are such that sums are exact."""
    generator = np.random.default_rng(6)
    x = generator.integers(-4, 5, (2, 24, 40, 38)).astype(dtype)
    weight = generator.integers(-2, 3, (24 * outputs, 1, 3, 3)).astype(dtype)
    operands = (wg.asarray(x, device="cpu"), wg.asarray(weight, device="cpu"))
    result = wg.conv2d(*operands, padding=1, groups=24).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).astype(np.float64)
    expected = np.einsum("nchwij,coij->ncohw", view, weight.reshape(24, outputs, 3, 3).astype(np.float64))
    np.testing.assert_array_equal(result, expected.reshape(result.shape).astype(dtype))
