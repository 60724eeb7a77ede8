"""Pooling against windows taken apart with NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.operators.single import run, run_one
from tests.onnx.operators.windowed import places_of

GENERATOR = np.random.default_rng(6)
# strides, dilations, pads, ceil_mode
FRAMES = [
    ((1, 1), (1, 1), (0, 0, 0, 0), 0),
    ((2, 2), (1, 1), (1, 1, 1, 1), 0),
    ((2, 3), (1, 1), (0, 1, 1, 0), 0),
    ((2, 2), (1, 1), (1, 0, 0, 1), 1),
    ((3, 3), (1, 1), (1, 1, 1, 1), 1),
    ((1, 2), (2, 2), (1, 1, 0, 1), 0),
    ((2, 2), (2, 1), (1, 0, 1, 0), 1),
]


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


def windows(
    x: Any, kernel: Any, frame: Any, reach: Any = None
) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """The places of each window's elements that are inside of x, or of x with `reach` more around it."""
    strides, dilations, pads, ceil = frame
    sizes, count = x.shape[2:], len(kernel)
    before, after = pads[:count], pads[count:]
    counts = []
    for at in range(count):
        room = sizes[at] + before[at] + after[at] - (kernel[at] - 1) * dilations[at] - 1
        number = (-(-room // strides[at]) if ceil else room // strides[at]) + 1
        counts.append(number - ((number - 1) * strides[at] >= sizes[at] + before[at]))
    low, high = (before, after) if reach else ((0,) * count, (0,) * count)
    found = {}
    for window in itertools.product(*map(range, counts)):
        places = [place for _, place in places_of(window, kernel, strides, dilations, before)]
        found[window] = [
            each for each in places if all(-low[at] <= each[at] < sizes[at] + high[at] for at in range(count))
        ]
    return found


def settings_of(kernel: Any, frame: Any) -> dict[str, Any]:
    strides, dilations, pads, ceil = frame
    return {
        "kernel_shape": list(kernel),
        "strides": list(strides),
        "dilations": list(dilations),
        "pads": list(pads),
        "ceil_mode": ceil,
    }


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("order", [0, 1])
def test_max_pool_and_its_places(frame: Any, order: int) -> None:
    x, kernel = drawn(2, 3, 8, 7), (3, 2)
    how = settings_of(kernel, frame) | {"storage_order": order}
    found, places = run("MaxPool", x, outputs=2, **how)
    assert places.dtype == np.int64
    np.testing.assert_array_equal(run_one("MaxPool", x, **how), found)
    taken = windows(x, kernel, frame)
    assert found.shape[2:] == tuple(np.max(list(taken), axis=0) + 1)
    for sample, channel in np.ndindex(2, 3):
        for window, elements in taken.items():
            best = max(elements, key=lambda at: x[(sample, channel, *at)])
            assert found[(sample, channel, *window)] == x[(sample, channel, *best)]
            inner = best[0] * 7 + best[1] if order == 0 else best[0] + best[1] * 8
            assert places[(sample, channel, *window)] == (sample * 3 + channel) * 56 + inner


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("with_padding", [0, 1])
def test_average_pool(frame: Any, with_padding: int) -> None:
    x, kernel = drawn(1, 2, 8, 7), (3, 2)
    found = run_one("AveragePool", x, count_include_pad=with_padding, **settings_of(kernel, frame))
    counted = windows(x, kernel, frame, reach=with_padding)
    for window, elements in windows(x, kernel, frame).items():
        total = sum(x[(0, slice(None), *at)] for at in elements)
        np.testing.assert_allclose(found[(0, slice(None), *window)], total / len(counted[window]), 1e-4, 1e-5)


@pytest.mark.parametrize("frame", FRAMES)
def test_lp_pool(frame: Any) -> None:
    x, kernel = drawn(1, 2, 8, 7), (3, 2)
    found = run_one("LpPool", x, p=3, **settings_of(kernel, frame))
    for window, elements in windows(x, kernel, frame).items():
        total = sum(np.abs(x[(0, slice(None), *at)]) ** 3 for at in elements)
        np.testing.assert_allclose(found[(0, slice(None), *window)], total ** (1 / 3), 1e-3, 1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16"])
def test_max_pool_of_other_types_with_padding_that_is_never_the_largest(dtype: str) -> None:
    x = np.array([[[-100, -7, -50, -3]]]).astype(dtype)
    found = run_one("MaxPool", x, kernel_shape=[2], strides=[2], pads=[1, 0])
    assert found.dtype == x.dtype
    assert found.tolist() == [[[x[0, 0, 0].item(), x[0, 0, 1:3].max().item()]]]


def test_pooling_over_one_and_three_axes() -> None:
    line, block = drawn(1, 2, 5), drawn(1, 2, 2, 4, 3)
    assert run_one("MaxPool", line, kernel_shape=[5]).tolist() == line.max(-1, keepdims=True).tolist()
    found = run_one("AveragePool", block, kernel_shape=[2, 2, 3], strides=[1, 2, 1])
    expected = block.reshape(1, 2, 2, 2, 2, 3).mean((2, 4, 5)).reshape(1, 2, 1, 2, 1)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-6)


def test_pooling_over_everything() -> None:
    x = drawn(2, 3, 4, 5)
    np.testing.assert_allclose(run_one("GlobalAveragePool", x), x.mean((2, 3), keepdims=True), 1e-5, 1e-6)
    np.testing.assert_array_equal(run_one("GlobalMaxPool", x), x.max((2, 3), keepdims=True))
    expected = (np.abs(x) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)
    np.testing.assert_allclose(run_one("GlobalLpPool", x, p=3), expected, 1e-4)


def test_max_unpool_puts_elements_back() -> None:
    x = drawn(2, 2, 4, 6)
    values, places = run("MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    found = run_one("MaxUnpool", values, places, kernel_shape=[2, 2], strides=[2, 2])
    kept = values.repeat(2, 2).repeat(2, 3)
    np.testing.assert_array_equal(found, np.where(x == kept, x, 0))
    wide = run_one("MaxUnpool", values, places, np.array([2, 2, 5, 7]), kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(wide, np.pad(found, ((0, 0), (0, 0), (0, 1), (0, 1))))


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(wg.ShapeError, match="do not fit"):
        run_one("MaxPool", drawn(1, 1, 3), kernel_shape=[4])
    with pytest.raises(wg.ShapeError, match="one to three axes"):
        run_one("MaxPool", drawn(1, 3), kernel_shape=[])
