"""Boxes: what is suppressed, and regions of images."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats
from tests.onnx.operators.single import run_one

GENERATOR = np.random.default_rng(14)


def overlap(a: Any, b: Any) -> float:
    """Of two boxes (y, x, y, x)."""
    height = min(a[2], b[2]) - max(a[0], b[0])
    width = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(height, 0) * max(width, 0)
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (a, b)]
    return float(shared / (sum(areas) - shared)) if shared else 0.0


def boxes(samples: int, count: int) -> Any:
    low = GENERATOR.random((samples, count, 2), np.float32)
    return np.concatenate([low, low + 0.4 * GENERATOR.random((samples, count, 2), np.float32)], -1)


def kept(all_boxes: Any, scores: Any, most: int, part: float, least: float) -> list[list[int]]:
    found = []
    for sample, label in np.ndindex(*scores.shape[:2]):
        chosen: list[int] = []
        for at in sorted(range(scores.shape[2]), key=lambda at: -scores[sample, label, at]):
            better = (overlap(all_boxes[sample, at], all_boxes[sample, each]) for each in chosen)
            if (
                scores[sample, label, at] > least
                and len(chosen) < most
                and all(each <= part for each in better)
            ):
                chosen.append(at)
        found += [[sample, label, each] for each in chosen]
    return found


@pytest.mark.parametrize(("most", "part", "least"), [(3, 0.5, 0.0), (100, 0.2, 0.5), (100, 0.0, 0.1)])
def test_suppression(most: int, part: float, least: float) -> None:
    given, scores = boxes(2, 30), GENERATOR.random((2, 3, 30), np.float32)
    limits = (np.array([most]), floats(part), floats(least))
    found = run_one("NonMaxSuppression", given, scores, *limits)
    assert found.dtype == np.int64
    assert found.tolist() == kept(given, scores, most, part, least)
    turned = given[..., [2, 1, 0, 3]]  # corners in another order
    assert run_one("NonMaxSuppression", turned, scores, *limits).tolist() == found.tolist()
    centres = np.stack(
        [
            (given[..., 1] + given[..., 3]) / 2,
            (given[..., 0] + given[..., 2]) / 2,
            given[..., 3] - given[..., 1],
            given[..., 2] - given[..., 0],
        ],
        -1,
    )
    other = run_one("NonMaxSuppression", centres, scores, *limits, center_point_box=1)
    assert other.tolist() == found.tolist()


def test_suppression_of_none_and_of_boxes_that_are_equally_good() -> None:
    given, scores = np.zeros((1, 3, 4), np.float32), np.ones((1, 1, 3), np.float32)
    assert run_one("NonMaxSuppression", given, scores).shape == (0, 3)
    found = run_one("NonMaxSuppression", given, scores, np.array([2]))
    assert found.tolist() == [[0, 0, 0], [0, 0, 1]]  # without an area they do not overlap


def test_many_boxes_are_quick() -> None:
    given, scores = boxes(1, 20_000), GENERATOR.random((1, 4, 20_000), np.float32)
    start = time.process_time()
    found = run_one("NonMaxSuppression", given, scores, np.array([100]), floats(0.5), floats(0.1))
    assert time.process_time() - start < 5
    assert found.shape == (400, 3)


def interpolated(plane: Any, y: float, x: float) -> list[float]:
    """The four weighted elements around a place; zeros from one element outside on."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return [0.0] * 4
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    row, column = min(int(y), max(height - 2, 0)), min(int(x), max(width - 2, 0))
    return [
        float((1 - abs(y - at)) * (1 - abs(x - to)) * plane[min(at, height - 1), min(to, width - 1)])
        for at in (row, row + 1)
        for to in (column, column + 1)
    ]


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("opset", [10, 16])
def test_roi_align(mode: str, ratio: int, opset: int) -> None:
    x = GENERATOR.standard_normal((2, 2, 6, 7), np.float32)
    rois, samples = floats([0, 0, 6, 5], [1, 2, 3, 4.5], [-4, -3, 9, 8]), np.array([0, 1, 1])
    settings = {"output_height": 2, "output_width": 3, "spatial_scale": 0.5, "sampling_ratio": ratio}
    found = run_one("RoiAlign", x, rois, samples, mode=mode, opset=opset, **settings)
    for roi, channel, row, column in np.ndindex(3, 2, 2, 3):
        low_x, low_y, high_x, high_y = rois[roi] * 0.5 - (0.5 if opset == 16 else 0)
        width, height = high_x - low_x, high_y - low_y
        if opset == 10:
            width, height = max(width, 1), max(height, 1)
        part_x, part_y = width / 3, height / 2
        across, down = (ratio or math.ceil(each) for each in (part_x, part_y))
        points = [
            interpolated(
                x[samples[roi], channel],
                low_y + part_y * (row + (i + 0.5) / down),
                low_x + part_x * (column + (j + 0.5) / across),
            )
            for i in range(down)
            for j in range(across)
        ]
        expected = sum(map(sum, points)) / len(points) if mode == "avg" else max(map(max, points))
        assert found[roi, channel, row, column] == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_max_roi_pool() -> None:
    x = GENERATOR.standard_normal((2, 2, 6, 7), np.float32)
    rois = floats([0, 0, 0, 6, 5], [1, 2, 1, 4, 4], [1, 3, 3, 3, 3], [0, 9, 9, 12, 12])
    found = run_one("MaxRoiPool", x, rois, pooled_shape=[2, 2])
    for roi, channel, row, column in np.ndindex(4, 2, 2, 2):
        sample, left, top, right, bottom = map(int, rois[roi])
        spans = []
        for start, end, at, size in ((top, bottom, row, 6), (left, right, column, 7)):
            part = max(end - start + 1, 1) / 2
            spans.append(
                slice(min(start + math.floor(at * part), size), min(start + math.ceil((at + 1) * part), size))
            )
        elements = x[sample, channel][tuple(spans)]
        assert found[roi, channel, row, column] == (elements.max() if elements.size else 0)
