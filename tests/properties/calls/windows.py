"""Calls over windows: convolutions and pools; an array is channels of one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.calls.drawer import FLOATS, Drawer, Family, Pair, Refused, alike, beside
from tests.properties.helpers import Array, Shape
from webgrad.tensor import Tensor

__all__ = ["WINDOWS"]


def _windows(d: Drawer, longest: int) -> tuple[Shape, int, int, int, tuple[int, int]]:
    """The shape of the lines; taps, dilation, stride and padding of windows that fit into them."""
    if len(d.shape) < 2 or 0 in d.shape:
        raise Refused("no lines")
    lines = (1, d.shape[0], int(np.prod(d.shape[1:])))
    taps, dilation, stride = (int(d.random.integers(1, each + 1)) for each in (longest, 2, 2))
    width = int(d.random.integers(0, taps // 2 + 1))
    if lines[2] + 2 * width < dilation * (taps - 1) + 1:
        raise Refused("short lines")
    return lines, taps, dilation, stride, (width, width)


def _taps(x: Array, taps: int, dilation: int, stride: int, padding: tuple[int, int], fill: float) -> Array:
    """What each tap of the windows over the last axis sees, one tap after the other."""
    padded = np.pad(x, ((0, 0), (0, 0), padding), constant_values=fill)
    count = (padded.shape[2] - dilation * (taps - 1) - 1) // stride + 1
    return np.stack(
        [
            padded[:, :, at * dilation : at * dilation + stride * (count - 1) + 1 : stride]
            for at in range(taps)
        ]
    )


def _convolution(d: Drawer) -> Pair:
    lines, taps, dilation, stride, padding = _windows(d, 4)
    weight = d.array((3, lines[1], taps))
    same_length = stride == 1 and d.chance(0.3)
    total = dilation * (taps - 1)
    around = (total // 2, total - total // 2) if same_length else padding

    def webgrad(x: Tensor) -> Any:
        how: Any = "same" if same_length else padding[0]
        return wg.conv1d(wg.reshape(x, lines), beside(x, weight), None, stride, how, dilation)

    def numpy(x: Array) -> Array:
        seen = _taps(x.reshape(lines), taps, dilation, stride, around, 0)
        return np.asarray(np.einsum("tncl,oct->nol", seen, alike(x, weight)))

    return webgrad, numpy


def _transposed(d: Drawer) -> Pair:
    lines, taps, dilation, stride, (less, _) = _windows(d, 4)
    weight, more = d.array((lines[1], 2, taps)), int(d.random.integers(0, stride))
    length = (lines[2] - 1) * stride - 2 * less + dilation * (taps - 1) + 1 + more
    if length < 1:
        raise Refused("nothing is left")

    def numpy(x: Array) -> Array:
        result = np.zeros((1, 2, length + 2 * less), x.dtype)
        for at in range(taps):
            part = np.einsum("ncl,co->nol", x.reshape(lines), alike(x, weight)[:, :, at])
            result[:, :, at * dilation : at * dilation + stride * (lines[2] - 1) + 1 : stride] += part
        return result[:, :, less : less + length]

    return (
        lambda x: wg.conv_transpose1d(
            wg.reshape(x, lines), beside(x, weight), None, stride, less, more, dilation=dilation
        ),
        numpy,
    )


def _pool(d: Drawer) -> Pair:
    d.choose()
    lines, taps, dilation, stride, padding = _windows(d, 3)
    return (
        lambda x: wg.max_pool1d(wg.reshape(x, lines), taps, stride, padding[0], dilation),
        lambda x: _taps(x.reshape(lines), taps, dilation, stride, padding, -math.inf).max(0),
    )


# name → kinds of dtypes, how often, the call
WINDOWS: Family = {
    "convolution": (FLOATS, 1, _convolution),
    "transposed": (FLOATS, 0.5, _transposed),
    "pool": (FLOATS, 1, _pool),
}
