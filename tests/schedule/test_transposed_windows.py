"""What is transposed and lies under many windows of a product is stored; else it is not."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from webgrad.graph.snapshot import Snapshot, snapshot, walk
from webgrad.schedule.transposed_windows import windowed_transposes


def graph_of(x: wg.Tensor, kernel: int, stride: int = 1, groups: int = 1) -> Snapshot:
    weight = wg.ones((4, 4 // groups, kernel, kernel), device="cpu")
    root = wg.conv2d(wg.relu(x), weight, stride=stride, padding=kernel // 2, groups=groups).node
    return snapshot(walk((root,)), (root,), ())


@pytest.mark.parametrize(
    ("kernel", "stride", "groups", "stored"),
    [(3, 1, 1, True), (3, 2, 1, False), (1, 1, 1, False), (3, 1, 4, False), (5, 2, 1, True)],
)
def test_channels_last(kernel: int, stride: int, groups: int, stored: bool) -> None:
    last = wg.zeros((1, 9, 9, 4), device="cpu")
    graph = graph_of(wg.permute_dims(last, (0, 3, 1, 2)), kernel, stride, groups)
    found = windowed_transposes(graph)
    assert [(graph.sigs[each].op.name, graph.sigs[each].shape) for each in found] == (
        [("permute", (1, 4, 9, 9))] if stored else []
    )


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 1, 2, 3)])
def test_elements_that_stay_side_by_side(order: tuple[int, ...]) -> None:
    first = wg.zeros((4, 1, 9, 9) if order[0] else (1, 4, 9, 9), device="cpu")
    assert not windowed_transposes(graph_of(wg.permute_dims(first, order), 3))


def test_only_the_last_of_two() -> None:
    x = wg.permute_dims(wg.permute_dims(wg.zeros((9, 4, 9, 1), device="cpu"), (3, 0, 2, 1)), (0, 3, 2, 1))
    graph = graph_of(x, 3)
    (found,) = windowed_transposes(graph)
    assert graph.sigs[found].attributes[0] == (0, 3, 2, 1)


def test_the_values_of_a_long_concat_with_channels_last() -> None:
    rng = np.random.default_rng(3)
    parts = [rng.standard_normal((1, 6, size, 1)).astype(np.float32) for size in (11, 13)]
    weight = rng.standard_normal((3, 2, 3, 5)).astype(np.float32)

    def run(first: wg.Tensor, second: wg.Tensor, weight: wg.Tensor) -> wg.Tensor:
        joined = wg.concat([first[:, :, :9], second[:, :, 2:11]], axis=3)
        return wg.conv2d(wg.permute_dims(joined, (0, 3, 1, 2)), weight, padding=(1, 2))

    tensors = [wg.asarray(each, device="cpu") for each in (*parts, weight)]
    joined = np.concatenate([parts[0][:, :, :9], parts[1][:, :, 2:11]], 3).transpose(0, 3, 1, 2)
    padded = np.pad(joined, ((0, 0), (0, 0), (1, 1), (2, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 5), (2, 3))
    expected = np.einsum("ncyxij,ocij->noyx", windows, weight)
    np.testing.assert_allclose(wg.jit(run)(*tensors).numpy(), expected, rtol=1e-4, atol=1e-5)
