"""Convolution and pooling as plain loops in float64: what the fast ones are compared with."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

__all__ = ["convolution", "pool", "taps_of", "transposed"]

Array = np.ndarray[Any, Any]
Sides = tuple[int, ...]
ALL: Any = slice(None)


def taps_of(kernel: Sides) -> itertools.product[tuple[int, ...]]:
    """The places in a window, the last axis first."""
    return itertools.product(*map(range, kernel))


def _spans(place: Sides, counts: Sides, stride: Sides, dilation: Sides) -> tuple[slice, ...]:
    """The elements that one place in the window meets, of all windows."""
    starts = [at * apart for at, apart in zip(place, dilation, strict=True)]
    return tuple(
        slice(start, start + (count - 1) * step + 1, step)
        for start, count, step in zip(starts, counts, stride, strict=True)
    )


def convolution(
    x: Array, weight: Array, stride: Sides, padding: tuple[tuple[int, int], ...], dilation: Sides, groups: int
) -> Array:
    """x (N, C, …) with a weight (O, C / groups, …)."""
    outputs, inputs, *kernel = weight.shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *padding))
    counts = tuple(
        (side - apart * (size - 1) - 1) // step + 1
        for side, size, step, apart in zip(padded.shape[2:], kernel, stride, dilation, strict=True)
    )
    result = np.zeros((x.shape[0], outputs, *counts))
    each = outputs // groups
    for place in taps_of(tuple(kernel)):
        part = padded[(ALL, ALL, *_spans(place, counts, stride, dilation))]
        for group in range(groups):
            rows, columns = (
                slice(group * each, (group + 1) * each),
                slice(group * inputs, (group + 1) * inputs),
            )
            factors = weight[rows][(ALL, ALL, *place)].astype(np.float64)
            result[:, rows] += np.einsum("oc,nc...->no...", factors, part[:, columns])
    return result


def transposed(
    x: Array, weight: Array, stride: Sides, padding: Sides, extra: Sides, dilation: Sides, groups: int
) -> Array:
    """x (N, C, …) with a weight (C, O / groups, …): every element of x adds the kernel to the result."""
    inputs, outputs, *kernel = weight.shape
    full = [
        (side - 1) * step + apart * (size - 1) + 1 + more
        for side, step, apart, size, more in zip(x.shape[2:], stride, dilation, kernel, extra, strict=True)
    ]
    result = np.zeros((x.shape[0], outputs * groups, *full))
    each = inputs // groups
    for place in taps_of(tuple(kernel)):
        target = _spans(place, x.shape[2:], stride, dilation)
        for group in range(groups):
            columns = slice(group * each, (group + 1) * each)
            factors = weight[columns][(ALL, ALL, *place)].astype(np.float64)
            rows = slice(group * outputs, (group + 1) * outputs)
            part = np.einsum("co,nc...->no...", factors, x[:, columns].astype(np.float64))
            result[(slice(None), rows, *target)] += part
    inside = [slice(less, side - less) for less, side in zip(padding, full, strict=True)]
    return result[(slice(None), slice(None), *inside)]


def pool(
    x: Array, kernel: Sides, stride: Sides, padding: Sides, dilation: Sides, ceil: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """Of every window of (N, C, …): the largest, its place, the sum, the elements in x, and with padding."""
    sides = x.shape[2:]
    counts = []
    for side, size, step, around, apart in zip(sides, kernel, stride, padding, dilation, strict=True):
        room = (side + 2 * around - apart * (size - 1) - 1) / step
        count = (math.ceil(room) if ceil else math.floor(room)) + 1
        counts.append(count - 1 if (count - 1) * step >= side + around else count)
    shape = (*x.shape[:2], *counts)
    largest, total = np.full(shape, -np.inf), np.zeros(shape)
    places, inside, near = (np.zeros(shape, np.int64) for _ in range(3))
    for at in np.ndindex(*shape):
        first = True
        for tap in taps_of(kernel):
            place = [
                window * step + each * apart - around
                for window, step, each, apart, around in zip(
                    at[2:], stride, tap, dilation, padding, strict=True
                )
            ]
            near[at] += all(
                each < side + more for each, side, more in zip(place, sides, padding, strict=True)
            )
            if any(not 0 <= each < side for each, side in zip(place, sides, strict=True)):
                continue
            value = float(x[(*at[:2], *place)])
            if first or value > largest[at] or math.isnan(value):
                largest[at], places[at] = value, np.ravel_multi_index(place, sides)
            first = False
            total[at] += value
            inside[at] += 1
    return largest, places, total, inside, near
