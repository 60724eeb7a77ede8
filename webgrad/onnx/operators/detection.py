"""Boxes: NonMaxSuppression, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from .table import Call, operator

# Suppression: how many boxes are left hangs on their values, so that it is done on the host


@operator("NonMaxSuppression", 10, host="boxes scores most iou_threshold score_threshold")
def non_max_suppression(
    boxes: Array,
    scores: Array,
    most: Any = None,
    iou_threshold: Any = None,
    score_threshold: Any = None,
    *,
    center_point_box: int = 0,
) -> Array:
    """The best boxes of each class that do not overlap by more than a part: rows (sample, class, box)."""
    limit = 0 if most is None or not most.size else int(most.reshape(-1)[0])
    part = 0.0 if iou_threshold is None or not iou_threshold.size else iou_threshold.reshape(-1)[0]
    least = None if score_threshold is None or not score_threshold.size else score_threshold.reshape(-1)[0]
    found = []
    for sample, corners in enumerate(map(_corners_of_centres if center_point_box else _corners, boxes)):
        for label, ranked in enumerate(scores[sample]):
            kept = _kept(corners, ranked, limit, part, least)
            found += [(sample, label, each) for each in kept]
    return np.asarray(found, np.int64).reshape((-1, 3))


def _corners(boxes: Array) -> Array:
    """(low y, low x, high y, high x) of two corners each, in any order."""
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _corners_of_centres(boxes: Array) -> Array:
    """The same of (x, y, width, height)."""
    centre, half = boxes[:, 1::-1], boxes[:, :1:-1] / 2
    return np.concatenate([centre - half, centre + half], axis=1)


def _kept(corners: Array, scores: Array, most: int, part: float, least: Any) -> list[int]:
    """Boxes of one class, the best first; each hides those that it overlaps."""
    order = np.argsort(-scores, kind="stable")
    if least is not None:
        order = order[scores[order] > least]
    kept: list[int] = []
    while order.size and len(kept) < most:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        order = order[_overlaps(corners[best], corners[order]) <= part]
    return kept


def _overlaps(box: Array, others: Array) -> Array:
    """The shared part of the area that a box and each of others cover."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    whole = np.prod(box[2:] - box[:2]) + areas - shared
    return np.where(shared > 0, shared / np.where(whole > 0, whole, 1), 0)


# Regions


@operator("RoiAlign", 16)
def roi_align(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    call: Call,
) -> Any:
    """Elements interpolated at places of a grid in every part of a region, of which the mean is taken."""
    is_half = coordinate_transformation_mode == "half_pixel"
    corners = rois * spatial_scale - (0.5 if is_half else 0.0)
    parts = (output_width, output_height)
    sizes = corners[:, 2:] - corners[:, :2]
    sizes = sizes if is_half else wg.maximum(sizes, 1.0)
    counts, most = _grid(sizes, parts, sampling_ratio, call)
    (x_low, x_weight), (y_low, y_weight) = (
        _taps(corners[:, at], sizes[:, at], parts[at], counts[at], most[at], x.shape[3 - at])
        for at in range(2)
    )
    taken = _four(x, batch_indices, (y_low, y_weight), (x_low, x_weight), "sum" if mode == "avg" else "max")
    shape = (rois.shape[0], output_height, most[1], output_width, most[0], x.shape[1])
    points = taken.reshape(shape)
    if mode == "avg":
        y = wg.sum(points, axis=(2, 4)) / wg.maximum(counts[0] * counts[1], 1.0).reshape((-1, 1, 1, 1))
    else:
        inside = [
            (wg.arange(each, device=x.device) < count.reshape((-1, 1))).reshape(shape_)
            for each, count, shape_ in (
                (most[1], counts[1], (-1, 1, most[1], 1, 1, 1)),
                (most[0], counts[0], (-1, 1, 1, 1, most[0], 1)),
            )
        ]
        y = wg.max(wg.where(inside[0] & inside[1], points, -math.inf), axis=(2, 4))
        y = wg.where(wg.isneginf(y), 0.0, y)
    return wg.moveaxis(y, -1, 1).astype(x.dtype, copy=False)


@operator("RoiAlign", 10)
def old_roi_align(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    call: Call,
) -> Any:
    return roi_align(
        x, rois, batch_indices,
        coordinate_transformation_mode="output_half_pixel", mode=mode, output_height=output_height,
        output_width=output_width, sampling_ratio=sampling_ratio, spatial_scale=spatial_scale, call=call,
    )  # fmt: skip


def _grid(sizes: Any, parts: Sequence[int], ratio: int, call: Call) -> tuple[list[Any], list[int]]:
    """How many places each region has along x and y in a part, and the most of any region."""
    if ratio > 0:
        return [wg.full((sizes.shape[0],), float(ratio), device=sizes.device) for _ in parts], [ratio] * 2
    counts = [wg.ceil(sizes[:, at] / parts[at]) for at in range(2)]
    return counts, [max(1, int(call.host(each).max(initial=0))) for each in counts]


def _taps(start: Any, size: Any, parts: int, count: Any, most: int, length: int) -> tuple[Any, Any]:
    """For each region and place along an axis two elements (regions, 2, places), and their weights."""
    part = (size / parts).reshape((-1, 1, 1))
    number = count.reshape((-1, 1, 1))
    inner = wg.arange(most, dtype=size.dtype, device=size.device)
    outer = wg.arange(parts, dtype=size.dtype, device=size.device).reshape((-1, 1))
    place = start.reshape((-1, 1, 1)) + outer * part + (inner + 0.5) * part / number
    seen = (place >= -1.0) & (place <= float(length)) & (inner < number)
    place = wg.clip(place, 0.0, length - 1.0)
    low = wg.minimum(wg.floor(place), float(max(length - 2, 0)))
    high = wg.minimum(low + 1.0, length - 1.0)
    weights = wg.stack([1.0 - (place - low), place - low], axis=1) * wg.expand_dims(seen, 1).astype(
        place.dtype
    )
    index = wg.stack([low, high], axis=1).astype(wg.int32)
    shape = (size.shape[0], 2, parts * most)
    return index.reshape(shape), weights.reshape(shape)


def _four(x: Any, samples: Any, rows: tuple[Any, Any], columns: tuple[Any, Any], fold: str) -> Any:
    """The weighted elements at crossings of rows and columns: their sum, or the largest of the four."""
    planes, channels, height, width = x.shape
    flat = wg.moveaxis(x, 1, -1).reshape((planes * height * width, channels))
    first = samples.astype(wg.int32).reshape((-1, 1, 1)) * (height * width)
    terms = []
    for up in range(2):
        for left in range(2):
            place = wg.expand_dims(rows[0][:, up], 2) * width + wg.expand_dims(columns[0][:, left], 1)
            weight = wg.expand_dims(rows[1][:, up], 2) * wg.expand_dims(columns[1][:, left], 1)
            terms.append(wg.take(flat, first + place, axis=0) * wg.expand_dims(weight, -1))
    combine = wg.add if fold == "sum" else wg.maximum
    return combine(combine(terms[0], terms[1]), combine(terms[2], terms[3]))


@operator("MaxRoiPool")
def max_roi_pool(x: Any, rois: Any, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Any:
    """The largest element of every part of a region; regions are rows (sample, x, y, x, y), ends included."""
    edges = wg.floor(rois[:, 1:] * spatial_scale + 0.5)
    y = wg.take(x, rois[:, 0].astype(wg.int32), axis=0)
    for axis, at in ((2, 1), (3, 0)):
        parts, length = pooled_shape[axis - 2], x.shape[axis]
        start, end = edges[:, at].reshape((-1, 1)), edges[:, at + 2].reshape((-1, 1))
        size = wg.maximum(end - start + 1.0, 1.0) / parts
        number = wg.arange(parts, dtype=edges.dtype, device=edges.device)
        low = wg.clip(wg.floor(number * size) + start, 0.0, float(length))
        high = wg.clip(wg.ceil((number + 1.0) * size) + start, 0.0, float(length))
        place = wg.arange(length, dtype=edges.dtype, device=edges.device)
        inside = (place >= wg.expand_dims(low, -1)) & (place < wg.expand_dims(high, -1))
        spread = wg.expand_dims(wg.moveaxis(y, axis, -1), -2)
        largest = wg.max(wg.where(inside.reshape((-1, 1, 1, parts, length)), spread, -math.inf), axis=-1)
        y = wg.moveaxis(largest, -1, axis)
    return wg.where(wg.isneginf(y), 0.0, y)
