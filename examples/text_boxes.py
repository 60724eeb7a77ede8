"""The geometry of lines of text: boxes around what a network marks, their order, and what is in them.

In: a map of how likely each pixel is to belong to a line, or a picture. Out: boxes of four corners (x, y),
clockwise from the upper left, and pictures cut out along them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["boxes_of", "cut_out", "in_reading_order", "regions"]

LIKELY = 0.3  # a pixel belongs to a line from here on
LIKELY_BOX = 0.5  # and a region is one by its pixels' mean
GROWTH = 1.6  # the network marks the middle of lines: by how much boxes grow
SMALLEST = 3  # pixels of a box's shorter side


def boxes_of(chances: Any) -> list[Any]:
    """A box around each region of likely pixels, grown to the whole of its line."""
    found = []
    for rows, columns in regions(chances >= LIKELY):
        if chances[rows, columns].mean() < LIKELY_BOX:
            continue
        corners = [(column, row) for row, column in zip(rows, columns, strict=True)]
        box = smallest_box(np.asarray(corners, float))
        if min(sides(box)) >= SMALLEST:
            found.append(grown(box))
    return found


def regions(marked: Any) -> Iterator[tuple[Any, Any]]:
    """The rows and columns of each region of marked pixels that touch: runs that meet are joined."""
    places, labels = [], np.zeros(0, int)
    parents: list[int] = []

    def root(label: int) -> int:
        while parents[label] != label:
            parents[label] = label = parents[parents[label]]
        return label

    above: list[tuple[int, int, int]] = []
    for row, line in enumerate(marked):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(np.int8), [0]])))
        here = []
        for begin, end in edges.reshape(-1, 2).tolist():
            label = len(parents)
            parents.append(label)
            for first, last, other in above:
                if first <= end and last >= begin:  # corners touch too
                    parents[root(label)] = root(other)
            here.append((begin, end, label))
            places.append((row, begin, end, label))
        above = here
    labels = np.asarray([root(each[3]) for each in places], int)
    for label in np.unique(labels):
        runs = [places[at] for at in np.flatnonzero(labels == label)]
        rows = np.concatenate([np.full(end - begin, row) for row, begin, end, _ in runs])
        yield rows, np.concatenate([np.arange(begin, end) for _, begin, end, _ in runs])


def sides(box: Any) -> tuple[float, float]:
    """How wide and how high a box is."""
    return float(np.linalg.norm(box[1] - box[0])), float(np.linalg.norm(box[3] - box[0]))


def smallest_box(points: Any) -> Any:
    """The box of the least area around points: one of its sides lies along a side of their hull."""
    points = np.concatenate([points - 0.5, points + 0.5])  # pixels have a size
    hull = hull_of(points)
    edges = np.diff(np.concatenate([hull, hull[:1]]), axis=0)
    angles = np.unique(np.round(np.arctan2(edges[:, 1], edges[:, 0]) % (np.pi / 2), 9))
    best, least = None, np.inf
    for angle in angles:
        turn = np.asarray([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        low, high = (hull @ turn).min(0), (hull @ turn).max(0)
        if np.prod(high - low) < least:
            least = float(np.prod(high - low))
            corners = np.asarray([low, [high[0], low[1]], high, [low[0], high[1]]])
            best = corners @ turn.T
    return from_upper_left(best)


def hull_of(points: Any) -> Any:
    """The corners of points' convex hull, one after the other."""
    ordered = np.unique(points, axis=0)
    halves = []
    for sequence in (ordered, ordered[::-1]):
        half: list[Any] = []
        for point in sequence:
            while len(half) > 1 and _turn(half[-2], half[-1], point) <= 0:
                half.pop()
            half.append(point)
        halves += half[:-1]
    return np.asarray(halves)


def _turn(a: Any, b: Any, c: Any) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def from_upper_left(box: Any) -> Any:
    """A box's corners clockwise, from the one that is nearest to the upper left."""
    middle = box.mean(0)
    order = np.argsort(np.arctan2(*(box - middle).T[::-1]))
    box = box[order]
    return np.roll(box, -int(box.sum(1).argmin()), axis=0)


def grown(box: Any) -> Any:
    """A box that is larger on every side by its area over its outline, times the growth."""
    width, height = sides(box)
    by = GROWTH * width * height / (2 * (width + height))
    across = (box[1] - box[0]) / max(width, 1e-9) * by
    down = (box[3] - box[0]) / max(height, 1e-9) * by
    return box + np.asarray([-across - down, across - down, across + down, down - across])


def in_reading_order(boxes: Iterable[Any]) -> list[Any]:
    """Boxes from the top; those on one line from the left."""
    lines: list[list[Any]] = []
    for box in sorted(boxes, key=lambda each: float(each[:, 1].mean())):
        last = lines[-1][0] if lines else None
        is_same = last is not None and box[:, 1].mean() - last[:, 1].mean() < 0.5 * min(
            sides(box)[1], sides(last)[1]
        )
        if is_same:
            lines[-1].append(box)
        else:
            lines.append([box])
    return [box for line in lines for box in sorted(line, key=lambda each: float(each[0, 0]))]


def cut_out(pixels: Any, box: Any) -> Any:
    """The picture inside of a box, upright: each pixel of it is mixed of the four that it lies between."""
    width, height = (max(1, round(side)) for side in sides(box))
    along = (np.arange(width) + 0.5) / width
    down = ((np.arange(height) + 0.5) / height)[:, None, None]
    top = box[0] + along[None, :, None] * (box[1] - box[0])
    bottom = box[3] + along[None, :, None] * (box[2] - box[3])
    places = top + down * (bottom - top) - 0.5
    limits = np.asarray([pixels.shape[1] - 1, pixels.shape[0] - 1])
    places = np.clip(places, 0, limits)
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, limits)
    x, y = (places - low)[:, :, :1], (places - low)[:, :, 1:]
    upper = pixels[low[..., 1], low[..., 0]] * (1 - x) + pixels[low[..., 1], high[..., 0]] * x
    lower = pixels[high[..., 1], low[..., 0]] * (1 - x) + pixels[high[..., 1], high[..., 0]] * x
    return upper * (1 - y) + lower * y
