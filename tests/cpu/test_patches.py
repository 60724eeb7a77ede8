"""Products with windows by blocks: every cut gives what one product of copied patches gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import graph_of
from webgrad.cpu import patches
from webgrad.cpu.groups import is_patches
from webgrad.cpu.patches import PatchProduct
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]


def windows(x: Array, kernel: tuple[int, ...], groups: int) -> Array:
    """(N, C, …) as a view (N, groups…, elements, channels, windows)."""
    count = len(kernel)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, tuple(range(2, 2 + count)))
    first = 2
    if groups > 1:
        view = view.reshape(x.shape[0], groups, x.shape[1] // groups, *view.shape[2:])
        first = 3
    ends = range(view.ndim - count, view.ndim)
    return view.transpose(*range(first - 1), *ends, first - 1, *range(first, first + count))


CASES = [
    ((1, 3, 9, 10), (3, 3), 1),
    ((5, 2, 6, 6), (2, 3), 1),
    ((2, 6, 7, 8), (3, 2), 3),
    ((3, 4, 50), (5,), 1),
    ((2, 2, 5, 6, 7), (2, 2, 3), 1),
    ((0, 2, 6, 6), (2, 2), 1),
]


@pytest.mark.parametrize(("shape", "kernel", "groups"), CASES)
@pytest.mark.parametrize("block", [1 << 18, 400, 1])
def test_blocks(
    shape: tuple[int, ...], kernel: tuple[int, ...], groups: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patches, "BLOCK", block)
    monkeypatch.setattr(patches, "COLUMNS", max(1, block // 100))
    generator = np.random.default_rng(1)
    x = generator.normal(size=shape).astype(np.float32)
    view = windows(x, kernel, groups)
    depth = shape[1] // groups * math.prod(kernel)
    batch = (groups,) if groups > 1 else ()
    weights = generator.normal(size=(*batch, 5, depth)).astype(np.float32)
    flat = view.reshape(shape[0], *batch, depth, math.prod(view.shape[-len(kernel) :]))
    result = PatchProduct(view.shape, (shape[0], *batch, 5, flat.shape[-1]))(weights, view)
    np.testing.assert_allclose(result, weights @ flat, rtol=1e-4, atol=1e-5)


def test_into_an_array_and_from_another_type() -> None:
    x = np.arange(48, dtype=np.float16).reshape(1, 3, 4, 4)
    view = windows(x, (2, 2), 1)
    weights = np.ones((2, 12), np.float32)
    out = np.full((1, 2, 9), -1, np.float32)
    product = PatchProduct(view.shape, out.shape)
    assert product(weights, view, out) is out
    expected = np.broadcast_to(view.reshape(12, 9).astype(np.float32).sum(0), (1, 2, 9))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("depth", "known"), [(12, True), (6, False), (10, False), (24, False)])
def test_windows_are_patches_where_their_axes_are_those_of_a_product(depth: int, known: bool) -> None:
    x = np.random.default_rng(2).normal(size=(2, 3, 60, 61)).astype(np.float32)
    weights = np.ones((4, depth), np.float32)

    def product() -> Tensor:
        columns = wg.unfold(wg.asarray(x, device="cpu"), 2).reshape((2, depth, -1))
        return wg.asarray(weights, device="cpu") @ columns

    graph = graph_of(product())
    (node,) = [each for each in graph.order() if graph.sigs[each].kind == "contract"]
    assert is_patches(graph, node) == known
    flat = windows(x, (2, 2), 1).transpose(0, 3, 1, 2, 4, 5).reshape(2, depth, -1)
    np.testing.assert_allclose(product().numpy(), weights @ flat, rtol=1e-4, atol=1e-5)
