"""Products by taps: every way gives what one product of copied patches gives, and nothing from in between."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.cpu import blas, taps
from webgrad.cpu.patches import PatchProduct
from webgrad.cpu.taps import TapProduct, window_product

Array = np.ndarray[Any, Any]
Sides = tuple[int, ...]
WAYS = {"in place": 0, "copied": -1}  # among those that can be done

pytestmark = pytest.mark.skipif(
    blas.gemm(np.dtype(np.float32)) is None, reason="NumPy's BLAS is not an OpenBLAS of its own"
)


def windows(x: Array, kernel: Sides, stride: Sides, dilation: Sides, groups: int) -> Array:
    """(N, C, …) as a view (N, groups…, kernel…, channels, places…)."""
    samples, channels, *sides = x.shape
    places = [
        (side - apart * (size - 1) - 1) // step + 1
        for side, size, step, apart in zip(sides, kernel, stride, dilation, strict=True)
    ]
    steps, item = x.strides[2:], x.strides[1]
    apart = [each * by for each, by in zip(steps, dilation, strict=True)]
    moves = [each * by for each, by in zip(steps, stride, strict=True)]
    batch = (samples, *((groups,) if groups > 1 else ()))
    jumps = (x.strides[0], *((channels // groups * item,) if groups > 1 else ()))
    shape = (*batch, *kernel, channels // groups, *places)
    return np.lib.stride_tricks.as_strided(x, shape, (*jumps, *apart, item, *moves), writeable=False)


def product(view: Array, weights: Array, axes: int) -> tuple[TapProduct, Array]:
    """What computes the product of a view, and the result that it must have."""
    batch = view.shape[: -2 * axes - 1]
    depth, places = weights.shape[-1], math.prod(view.shape[-axes:])
    patches = view.reshape(*batch, depth, places).astype(weights.dtype)
    made = window_product(view.shape, (*batch, weights.shape[-2], places))
    assert isinstance(made, TapProduct)
    with np.errstate(invalid="ignore"):
        return made, weights @ patches


def force(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let that be chosen, whatever it costs."""

    def choose(made: TapProduct, view: Array, dtype: Any) -> Any:
        ways = made._ways(view, dtype)
        return ways[WAYS[way]] if ways else None

    monkeypatch.setattr(TapProduct, "_choose", choose)


CASES: list[tuple[Sides, Sides, Sides, Sides, int]] = [
    ((1, 3, 9, 10), (3, 3), (1, 1), (1, 1), 1),
    ((2, 2, 12, 9), (3, 2), (2, 3), (1, 1), 1),
    ((2, 2, 12, 9), (3, 2), (2, 1), (3, 2), 1),
    ((2, 6, 7, 8), (3, 2), (1, 1), (2, 1), 3),
    ((3, 4, 50), (5,), (1,), (1,), 1),
    ((2, 4, 50), (5,), (3,), (2,), 2),
    ((2, 2, 5, 6, 7), (2, 2, 3), (1, 1, 1), (1, 1, 2), 1),
    ((1, 1, 4, 4), (4, 1), (1, 1), (1, 1), 1),
    ((2, 3, 4, 5), (4, 5), (1, 1), (1, 1), 1),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("block", [1 << 18, 1])
def test_every_way(case: Any, dtype: Any, way: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, kernel, stride, dilation, groups = case
    force(way, monkeypatch)
    monkeypatch.setattr(taps, "BLOCK", block)
    monkeypatch.setattr(taps, "COLUMNS", min(block, 256))
    generator = np.random.default_rng(2)
    view = windows(generator.normal(size=shape).astype(dtype), kernel, stride, dilation, groups)
    depth = shape[1] // groups * math.prod(kernel)
    weights = generator.normal(size=(*((groups,) if groups > 1 else ()), 5, depth)).astype(dtype)
    made, expected = product(view, weights, len(kernel))
    chosen = type(made._way(view, weights.dtype)).__name__
    assert chosen == ("_InPlace" if way == "in place" and stride[-1] == 1 else "_Copied")
    np.testing.assert_allclose(made(weights, view), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_one_bad_element_is_in_its_windows_only(
    way: str, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(way, monkeypatch)
    for row, column in itertools.product((0, 3, 6), (0, 4, 7)):
        x = np.ones((1, 2, 7, 8), np.float32)
        x[0, 1, row, column] = bad
        made, expected = product(windows(x, (3, 3), (1, 1), (1, 1), 1), np.ones((2, 18), np.float32), 2)
        result = made(np.ones((2, 18), np.float32), windows(x, (3, 3), (1, 1), (1, 1), 1))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("arrange", ["halves", "channels last", "backwards", "repeated", "unaligned"])
def test_arrangements_of_memory(way: str, arrange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    force(way, monkeypatch)
    x = np.random.default_rng(4).normal(size=(2, 3, 8, 9)).astype(np.float32)
    if arrange == "halves":
        x = x.astype(np.float16)
    elif arrange == "channels last":
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    elif arrange == "backwards":
        x = x[:, :, ::-1]
    elif arrange == "repeated":
        x = np.broadcast_to(x[:, :, :1], x.shape)
    else:
        memory = np.zeros(x.nbytes + 1, np.uint8)
        other: Array = np.ndarray(x.shape, np.float32, memory.data, 1)
        other[...] = x
        x = other
    view = windows(x, (3, 2), (1, 1), (1, 1), 1)
    weights = np.asfortranarray(np.random.default_rng(5).normal(size=(4, 18)).astype(np.float32))
    made, expected = product(view, weights, 2)
    out = np.full(expected.shape, -1, np.float32)
    assert made(weights, view, out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(made(weights, view.copy()), expected, rtol=1e-4, atol=1e-5)


def test_axes_that_lie_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many elements as places from the first to the last, but not in their order."""
    force("in place", monkeypatch)
    x = np.arange(2 * 60, dtype=np.float32).reshape(1, 2, 3, 4, 5).swapaxes(2, 3)
    view = windows(x, (1, 1, 1), (1, 1, 1), (1, 1, 1), 1)
    made, expected = product(view, np.ones((2, 2), np.float32), 3)
    assert type(made._way(view, view.dtype)).__name__ == "_InPlace"
    np.testing.assert_array_equal(made(np.ones((2, 2), np.float32), view), expected)


def test_no_way_needs_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taps, "cores", lambda: 2)
    monkeypatch.setattr(taps, "MEMORY", 300)
    view = windows(np.ones((1, 8, 9, 9), np.float32), (3, 3), (1, 1), (1, 1), 1)
    made, expected = product(view, np.ones((3, 72), np.float32), 2)
    assert [type(each).__name__ for each in made._ways(view, view.dtype)] == ["_InPlace"]
    monkeypatch.setattr(taps, "MEMORY", 50)
    assert not made._ways(view, view.dtype)
    np.testing.assert_array_equal(made(np.ones((3, 72), np.float32), view), expected)


def test_few_channels_are_copied_as_patches() -> None:
    view = windows(np.ones((1, 1, 40, 40), np.float32), (3, 3), (1, 1), (1, 1), 1)
    made, expected = product(view, np.ones((64, 9), np.float32), 2)
    assert made._way(view, view.dtype) is None
    np.testing.assert_array_equal(made(np.ones((64, 9), np.float32), view), expected)


def test_without_blas_patches_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taps, "gemm", lambda dtype: None)
    view = windows(np.ones((1, 8, 9, 9), np.float32), (3, 3), (1, 1), (1, 1), 1)
    made, expected = product(view, np.ones((3, 72), np.float32), 2)
    np.testing.assert_array_equal(made(np.ones((3, 72), np.float32), view), expected)


def test_other_shapes_are_copied_as_patches() -> None:
    assert isinstance(window_product((0, 2, 2, 3, 4, 4), (0, 5, 16)), PatchProduct)
    assert isinstance(window_product((1, 2, 3, 4, 4), (1, 5, 16)), PatchProduct)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_convolution_of_this_size(dtype: Any) -> None:
    """Large enough for blocks in several threads; the weights are such that sums are exact."""
    generator = np.random.default_rng(6)
    x = generator.integers(-4, 5, (2, 16, 40, 38)).astype(dtype)
    weight = generator.integers(-2, 3, (8, 16, 3, 3)).astype(dtype)
    result = wg.conv2d(wg.asarray(x, device="cpu"), wg.asarray(weight, device="cpu"), padding=1).numpy()
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", view, weight.astype(np.float64))
    np.testing.assert_array_equal(result, expected.astype(dtype))
