"""Padding under many overlapping elements of windows is stored; under few, and under products, it is not."""

from __future__ import annotations

import pytest

import webgrad as wg
from webgrad.graph.snapshot import snapshot, walk
from webgrad.schedule.padded_windows import LEAST, windowed_pads


@pytest.mark.parametrize(
    ("kernel", "groups", "stored"), [(7, 4, True), (4, 4, True), (3, 4, False), (7, 1, False)]
)
def test_which_padding_is_stored(kernel: int, groups: int, stored: bool) -> None:
    assert LEAST == 16
    x = wg.zeros((1, 4, 9, 9), device="cpu") + 1
    weight = wg.ones((4, 4 // groups, kernel, kernel), device="cpu")
    root = wg.conv2d(x, weight, padding=kernel // 2, groups=groups).node
    graph = snapshot(walk((root,)), (root,), ())
    found = windowed_pads(graph)
    assert {graph.sigs[each].op.name for each in found} == ({"pad"} if stored else set())


@pytest.mark.parametrize(("size", "kernel", "stored"), [(20, 3, True), (9, 3, False), (20, 2, False)])
def test_padding_of_long_folds_along_windows(size: int, kernel: int, stored: bool) -> None:
    x = wg.zeros((1, 4, size, size), device="cpu") + 1
    weight = wg.ones((4, 1, kernel, kernel), device="cpu")
    root = wg.grad(lambda w: wg.conv2d(x, w, padding=1, groups=4).sum())(weight).node
    graph = snapshot(walk((root,)), (root,), ())
    assert bool(windowed_pads(graph)) is stored


def test_windows_without_padding() -> None:
    x = wg.zeros((1, 4, 9, 9), device="cpu")
    root = wg.conv2d(x, wg.ones((4, 1, 7, 7), device="cpu"), groups=4).node
    assert not windowed_pads(snapshot(walk((root,)), (root,), ()))
