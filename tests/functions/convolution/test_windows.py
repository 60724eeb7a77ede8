"""Unfold and fold against plain loops, and each against the other; the window itself, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import nodes_under
from webgrad.errors import ArgumentError, ShapeError
from webgrad.functions.convolution.windows import cropped_or_padded
from webgrad.ops import primitives

Array = np.ndarray[Any, Any]
DEVICES = [pytest.param("cpu"), pytest.param("webgpu", marks=pytest.mark.gpu)]
# sides, kernel, dilation, padding, stride
CASES: list[tuple[Any, ...]] = [
    ((6, 5), (2, 3), (1, 1), (0, 0), (1, 1)),
    ((7, 8), (3, 3), (1, 1), (1, 1), (2, 2)),
    ((9, 7), (2, 3), (3, 2), (2, 1), (2, 1)),
    ((6, 6), (2, 2), (1, 1), (0, 0), (2, 2)),
    ((5, 8), (1, 2), (1, 1), (0, 0), (3, 4)),
]


def unfolded(x: Array, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """The columns, window by window."""
    padded = np.pad(x, ((0, 0), (0, 0), *[(each, each) for each in padding]))
    reach = [apart * (size - 1) for apart, size in zip(dilation, kernel, strict=True)]
    rows = range(0, padded.shape[2] - reach[0], stride[0])
    columns = range(0, padded.shape[3] - reach[1], stride[1])
    parts = [
        padded[
            :, :, top : top + reach[0] + 1 : dilation[0], left : left + reach[1] + 1 : dilation[1]
        ].reshape(x.shape[0], -1)
        for top in rows
        for left in columns
    ]
    return np.stack(parts, -1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("sides", "kernel", "dilation", "padding", "stride"), CASES)
def test_unfold_and_fold(
    sides: Any, kernel: Any, dilation: Any, padding: Any, stride: Any, device: str
) -> None:
    x = np.random.default_rng(2).normal(size=(2, 3, *sides)).astype(np.float32)
    columns = unfolded(x, kernel, dilation, padding, stride)
    found = wg.unfold(wg.asarray(x, device=device), kernel, dilation, padding, stride)
    np.testing.assert_array_equal(found.numpy(), columns)
    # An image folded again is itself, each element as often as windows hold it.
    often = wg.fold(
        wg.asarray(np.ones_like(columns), device=device), sides, kernel, dilation, padding, stride
    )
    back = wg.fold(found, sides, kernel, dilation, padding, stride)
    np.testing.assert_allclose(back.numpy(), x * often.numpy(), rtol=1e-5, atol=1e-6)
    counts = [
        unfolded(np.eye(1, x[0].size, at).reshape(1, *x.shape[1:]), kernel, dilation, padding, stride).sum()
        for at in range(0, x[0].size, 7)
    ]
    np.testing.assert_array_equal(often.numpy()[0].ravel()[::7], counts)


def test_fold_is_the_adjoint_of_unfold() -> None:
    """⟨unfold(x), c⟩ = ⟨x, fold(c)⟩ for any x and c."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(1, 2, 9, 8)).astype(np.float32)
    columns = wg.unfold(wg.asarray(x), (3, 2), (2, 1), (1, 1), (2, 3))
    other = generator.normal(size=columns.shape).astype(np.float32)
    folded = wg.fold(wg.asarray(other), (9, 8), (3, 2), (2, 1), (1, 1), (2, 3))
    np.testing.assert_allclose((columns.numpy() * other).sum(), (x * folded.numpy()).sum(), rtol=1e-4)


def test_dtypes_and_no_batch() -> None:
    x = wg.arange(36, dtype=wg.int32).reshape((1, 6, 6))
    columns = wg.unfold(x, 2, stride=2)
    assert columns.shape == (4, 9)
    assert columns.dtype is wg.int32
    assert wg.array_equal(wg.fold(columns, 6, 2, stride=2), x)
    halves = wg.fold(columns.astype(wg.float16), 6, 2, stride=2)
    assert halves.dtype is wg.float16


def test_windows_are_only_moved() -> None:
    x = wg.asarray(np.zeros((1, 2, 6, 6), np.float32))
    assert {node.sig.kind for node in nodes_under([wg.unfold(x, 3).node])} == {"leaf", "move"}


def test_negative_widths_crop_each_end_by_its_own() -> None:
    x = np.arange(2 * 7 * 9, dtype=np.float32).reshape(2, 7, 9)
    node = cropped_or_padded(wg.asarray(x, device="cpu").node, ((-1, -3), (2, -4)), 5)
    expected = np.pad(x[:, 1:4, :5], ((0, 0), (0, 0), (2, 0)), constant_values=5)
    np.testing.assert_array_equal(wg.Tensor(node).numpy(), expected)


def test_a_window_that_does_not_fit_is_an_error() -> None:
    x = wg.zeros((2, 5)).node
    assert primitives.window(x, 1, 3, 2, 2).sig.shape == (2, 1, 3)
    with pytest.raises(ShapeError, match="it spans 7 elements of 5"):
        primitives.window(x, 1, 4, 1, 2)


def test_mistakes() -> None:
    x = wg.zeros((1, 2, 5, 5))
    with pytest.raises(ShapeError, match=r"unfold takes x as \(N, C, H, W\)"):
        wg.unfold(x[0, 0], 2)
    with pytest.raises(ShapeError, match=r"kernel of \(6, 6\) does not fit into \(5, 5\)"):
        wg.unfold(x, 6)
    with pytest.raises(ArgumentError, match="kernel_size is 1 or more"):
        wg.unfold(x, 0)
    with pytest.raises(ShapeError, match=r"4 × 4 windows there, so x must be \(N, C × 4, 16\)"):
        wg.fold(wg.zeros((1, 4, 9)), 5, 2)
    with pytest.raises(ShapeError, match="no windows there"):
        wg.fold(wg.zeros((1, 4, 9)), 1, 2)
    with pytest.raises(ShapeError, match=r"columns .*not \(4,\)"):
        wg.fold(wg.zeros(4), 5, 2)
