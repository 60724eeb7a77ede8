"""Pooling that is composed of others: p-norms of windows, and largest elements of windows drawn by chance.

In: x (N, C, …) or (C, …). Out: the same with other sizes after the channels; PyTorch's names and arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg

from .checks import check_floats

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
]

PerAxis = int | Sequence[int]


# p-norms


def _norms(
    average: Callable[..., wg.Tensor],
    axes: int,
    x: wg.Tensor,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    ceil_mode: bool,
) -> wg.Tensor:
    """(Σ x^p)^(1/p) over windows; a window at the end that is cut off counts as whole, as in PyTorch."""
    kernel = (kernel_size,) * axes if isinstance(kernel_size, int) else tuple(kernel_size)
    total = average(x**norm_type, kernel_size, stride, 0, ceil_mode) * math.prod(kernel)
    empty = total == 0  # where the root has no slope
    return wg.where(empty, 0.0, wg.where(empty, 1.0, total) ** (1.0 / norm_type))


def lp_pool1d(
    x: wg.Tensor,
    norm_type: float,
    kernel_size: int,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> wg.Tensor:
    """(Σ x^p)^(1/p) over every window of x (N, C, L), p being `norm_type`.

    >>> wg.nn.functional.lp_pool1d(wg.asarray([[3.0, 4.0, 0.0, 2.0]]), 2, 2).tolist()
    [[5.0, 2.0]]
    """
    return _norms(wg.avg_pool1d, 1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    x: wg.Tensor,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> wg.Tensor:
    """(Σ x^p)^(1/p) over every window of x (N, C, H, W), p being `norm_type`.

    >>> wg.nn.functional.lp_pool2d(wg.ones((1, 2, 2)), 2, 2).tolist()
    [[[2.0]]]
    """
    return _norms(wg.avg_pool2d, 2, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    x: wg.Tensor,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> wg.Tensor:
    """(Σ x^p)^(1/p) over every window of x (N, C, D, H, W), p being `norm_type`.

    >>> wg.nn.functional.lp_pool3d(wg.ones((1, 2, 2, 2)), 1, 2).tolist()
    [[[[8.0]]]]
    """
    return _norms(wg.avg_pool3d, 3, x, norm_type, kernel_size, stride, ceil_mode)


# Windows drawn by chance


def fractional_max_pool2d(
    x: wg.Tensor,
    kernel_size: PerAxis,
    output_size: PerAxis | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    random_samples: wg.Tensor | None = None,
) -> Any:
    """The largest element of windows of x (N, C, H, W) that overlap by chance (Graham, 2015).

    The result has `output_size`, or a part of the size of x. `random_samples` (N, C, 2) from 0 to 1 say
    where windows begin.

    >>> wg.nn.functional.fractional_max_pool2d(wg.ones((1, 7, 7)), 2, output_ratio=0.5).shape
    (1, 3, 3)
    """
    given = (kernel_size, output_size, output_ratio, return_indices, random_samples)
    return _fractional("fractional_max_pool2d", 2, x, *given)


def fractional_max_pool3d(
    x: wg.Tensor,
    kernel_size: PerAxis,
    output_size: PerAxis | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    random_samples: wg.Tensor | None = None,
) -> Any:
    """The largest element of windows of x (N, C, D, H, W) that overlap by chance (Graham, 2015).

    >>> wg.nn.functional.fractional_max_pool3d(wg.ones((1, 5, 5, 5)), 2, output_size=2).shape
    (1, 2, 2, 2)
    """
    given = (kernel_size, output_size, output_ratio, return_indices, random_samples)
    return _fractional("fractional_max_pool3d", 3, x, *given)


def _fractional(
    op: str,
    axes: int,
    x: wg.Tensor,
    kernel_size: Any,
    output_size: Any,
    ratio: Any,
    indices: bool,
    drawn: Any,
) -> Any:
    check_floats(op, x)
    if x.ndim not in (axes + 1, axes + 2):
        raise wg.ShapeError(
            f"{op} takes x (N, C, …) or (C, …) with {axes} axes behind the channels, not {x.shape}"
        )
    if (output_size is None) == (ratio is None):
        raise wg.ArgumentError(f"{op} takes output_size or output_ratio, one of them")
    data = x if x.ndim == axes + 2 else wg.unsqueeze(x, 0)
    samples, channels, *sizes = data.shape
    kernel = _several(kernel_size, axes)
    if ratio is None:
        wanted = _several(output_size, axes)
    else:
        wanted = [int(size * part) for size, part in zip(sizes, _several(ratio, axes), strict=True)]
    for size, each, number in zip(sizes, kernel, wanted, strict=True):
        if each + number - 1 > size or number < 1:
            raise wg.ArgumentError(f"{op}: {wanted} windows of {kernel} do not go into {tuple(sizes)}")
    if drawn is None:
        drawn = wg.random.rand(samples, channels, axes, device=x.device)
    drawn = drawn[:samples]
    place = wg.zeros((samples, channels, *[1] * (2 * axes)), dtype=wg.int32, device=x.device)
    for at, (size, each, number) in enumerate(zip(sizes, kernel, wanted, strict=True)):
        # As in PyTorch the first number is the last axis' for images, and the first axis' for volumes
        start = _starts(drawn[..., axes - 1 - at if axes == 2 else at], size, each, number)
        shape = [samples, channels, *[1] * (2 * axes)]
        shape[2 + at] = number
        reach = [1] * (2 + 2 * axes)
        reach[2 + axes + at] = each
        inside = start.reshape(tuple(shape)) + wg.arange(each, device=x.device).reshape(tuple(reach))
        place = place * size + inside.astype(wg.int32)
    index = place.reshape((samples, channels, -1))
    taps = wg.take_along_axis(data.reshape((samples, channels, -1)), index, -1)
    whole = (samples, channels, *wanted)
    taps, index = (each.reshape((samples, channels, math.prod(wanted), -1)) for each in (taps, index))
    best = wg.unsqueeze(wg.argmax(taps.detach(), -1), -1)
    values = wg.take_along_axis(taps, best, -1).reshape(whole)
    values = values if x.ndim == axes + 2 else values[0]
    if not indices:
        return values
    return values, wg.take_along_axis(index, best, -1).reshape(whole).reshape(values.shape)


def _several(value: Any, count: int) -> list[Any]:
    return [value] * count if isinstance(value, int | float) else list(value)


def _starts(drawn: wg.Tensor, size: int, kernel: int, number: int) -> wg.Tensor:
    """Where each of so many windows begins: (N, C) numbers from 0 to 1 → (N, C, windows)."""
    last = size - kernel
    if number == 1:
        return wg.full((*drawn.shape, 1), last, dtype=wg.int32, device=drawn.device)
    step = last / (number - 1)
    drawn = wg.unsqueeze(drawn, -1)
    steps = wg.arange(number, dtype=drawn.dtype, device=drawn.device)
    found = wg.floor((steps + drawn) * step) - wg.floor(drawn * step)
    return wg.where(steps == number - 1, last, found).astype(wg.int32)
