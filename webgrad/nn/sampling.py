"""Images sampled at any places: `grid_sample`, and the grids of affine maps; PyTorch's names and results.

In: x (N, C, H, W) or (N, C, D, H, W), and a grid of places (N, …, 2 or 3) whose coordinates, x first, go from
-1 to 1 over the image. Out: (N, C, …), computed of a few elements of the image for each place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import webgrad as wg

from .checks import check_floats

__all__ = ["affine_grid", "grid_sample"]


class _Axis(NamedTuple):
    """One axis of the image, and the coordinate of each place along it, in elements."""

    size: int
    place: wg.Tensor
    padding: str
    align_corners: bool


Tap = tuple[wg.Tensor, wg.Tensor | None]  # a coordinate in whole elements, and its weight


def _reflected(place: wg.Tensor, axis: _Axis) -> wg.Tensor:
    """A coordinate thrown back at both ends, as often as it takes."""
    low, high = (0.0, axis.size - 1.0) if axis.align_corners else (-0.5, axis.size - 0.5)
    if high == low:
        return wg.zeros_like(place)
    away = place - low
    away = wg.where(away < 0, -away, away)
    turns = wg.floor(away / (high - low)).detach()
    rest = away - turns * (high - low)
    return wg.where(wg.remainder(turns, 2.0) == 0, rest, (high - low) - rest) + low


def _inside(place: wg.Tensor, axis: _Axis) -> wg.Tensor:
    """A coordinate brought into the image, as the padding says; with zeros it may stay outside."""
    if axis.padding == "zeros":
        return place
    if axis.padding == "reflection":
        place = _reflected(place, axis)
    last = axis.size - 1.0
    return wg.where(place <= 0, 0.0, wg.where(place >= last, last, place))


def _nearest(axis: _Axis) -> list[Tap]:
    return [(wg.round(_inside(axis.place, axis)).detach(), None)]


def _linear(axis: _Axis) -> list[Tap]:
    place = _inside(axis.place, axis)
    low = wg.floor(place).detach()
    part = place - low
    return [(low, 1.0 - part), (low + 1.0, part)]


def _cubic(axis: _Axis) -> list[Tap]:
    """Keys' convolution with a = -0.75; each tap is brought into the image by itself."""
    low = wg.floor(axis.place).detach()
    t = axis.place - low
    weights = [_far(t + 1.0), _near(t), _near(1.0 - t), _far(2.0 - t)]
    return [(_inside(low + (at - 1.0), axis), weight) for at, weight in enumerate(weights)]


def _near(t: wg.Tensor) -> wg.Tensor:
    return (1.25 * t - 2.25) * t * t + 1.0


def _far(t: wg.Tensor) -> wg.Tensor:
    return ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0


_MODES: dict[str, Callable[[_Axis], list[Tap]]] = {
    "bilinear": _linear,
    "nearest": _nearest,
    "bicubic": _cubic,
}
_FAR_AWAY = 1e6  # elements; where infinity is
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    x: wg.Tensor,
    grid: wg.Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> wg.Tensor:
    """x (N, C, H, W) at the places of a grid (N, h, w, 2) → (N, C, h, w); of volumes (N, d, h, w, 3).

    A place is (x, y) or (x, y, z) from -1 to 1: with `align_corners` the centres of the corner elements, else
    their outer edges. Modes: bilinear (of volumes trilinear), nearest, bicubic (of images). Outside are
    zeros, the border's elements, or the image's reflection.

    >>> image = wg.asarray([[[[1.0, 3.0]]]])
    >>> wg.nn.functional.grid_sample(image, wg.zeros((1, 1, 1, 2))).tolist()
    [[[[2.0]]]]
    """
    _check_grid(x, grid, mode, padding_mode)
    samples, channels, *sizes = x.shape
    wide, places = x.astype(x.dtype.wide, copy=False), grid.astype(x.dtype.wide, copy=False)
    axes = [
        _Axis(size, _in_elements(places[..., at], size, align_corners), padding_mode, bool(align_corners))
        for at, size in zip(reversed(range(len(sizes))), sizes, strict=True)
    ]
    count = wide.size // max(samples * channels, 1)
    rows = wg.moveaxis(wide, 1, -1).reshape((samples * count, channels))
    first = wg.arange(samples, device=x.device).reshape((samples, *[1] * len(sizes))) * count
    total: wg.Tensor | None = None
    for taps in itertools.product(*(_MODES[mode](axis) for axis in axes)):
        share = _tap(rows, first, sizes, taps, padding_mode == "zeros")
        total = share if total is None else total + share
    assert total is not None
    return wg.moveaxis(total, -1, 1).astype(x.dtype, copy=False)


def _in_elements(place: wg.Tensor, size: int, align_corners: bool) -> wg.Tensor:
    """Coordinates from -1 to 1 in elements; what is no number is outside."""
    found = (place + 1.0) * ((size - 1) / 2) if align_corners else ((place + 1.0) * size - 1.0) / 2
    return wg.where(wg.isnan(found), -100.0, wg.clip(found, -_FAR_AWAY, _FAR_AWAY))


def _tap(
    rows: wg.Tensor, first: wg.Tensor, sizes: Sequence[int], taps: Sequence[Tap], is_zero_outside: bool
) -> wg.Tensor:
    """One element for each place, with its channels, times its weight."""
    inside, factors = first * 0, []
    for size, (place, weight) in zip(sizes, taps, strict=True):
        kept = wg.clip(place, 0.0, size - 1.0)
        inside = inside * size + kept.astype(first.dtype)
        factors += [] if weight is None else [weight]
        factors += [(place == kept).astype(place.dtype)] if is_zero_outside else []
    found = wg.take(rows, first + inside, axis=0)
    for each in factors[1:]:
        factors[0] = factors[0] * each
    return found * wg.unsqueeze(factors[0], -1) if factors else found


def _check_grid(x: wg.Tensor, grid: wg.Tensor, mode: str, padding_mode: str) -> None:
    check_floats("grid_sample", x)
    check_floats("grid_sample", grid)
    axes = x.ndim - 2
    if axes not in (2, 3) or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != axes:
        raise wg.ShapeError(
            f"grid_sample takes x (N, C, H, W) and a grid (N, h, w, 2), or x (N, C, D, H, W) and a grid "
            f"(N, d, h, w, 3), not {x.shape} and {grid.shape}"
        )
    if 0 in x.shape[1:]:
        raise wg.ShapeError(f"grid_sample: there is nothing to sample in a tensor of shape {x.shape}")
    for name, given, known in (("mode", mode, tuple(_MODES)), ("padding_mode", padding_mode, _PADDINGS)):
        if given not in known:
            names = ", ".join(map(repr, known))
            raise wg.ArgumentError(f"grid_sample: {name} must be one of {names}, not {given!r}")
    if mode == "bicubic" and axes == 3:
        raise wg.ArgumentError("grid_sample: mode='bicubic' is for images, x (N, C, H, W)")


def affine_grid(theta: wg.Tensor, size: Sequence[int], align_corners: bool = False) -> wg.Tensor:
    """The grid (N, H, W, 2) on which maps theta (N, 2, 3) sample an image of a size (N, C, H, W).

    Of volumes theta is (N, 3, 4), the size (N, C, D, H, W) and the grid (N, D, H, W, 3).

    >>> wg.nn.functional.affine_grid(wg.asarray([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).tolist()
    [[[[0.0, 0.0], [1.0, 0.0]]]]
    """
    check_floats("affine_grid", theta)
    axes = len(size) - 2
    if axes not in (2, 3) or theta.shape != (size[0], axes, axes + 1):
        raise wg.ShapeError(
            f"affine_grid takes theta (N, 2, 3) and a size (N, C, H, W), or theta (N, 3, 4) and a size "
            f"(N, C, D, H, W), not {theta.shape} and {tuple(size)}"
        )
    if min(size) < 1:
        raise wg.ArgumentError(f"affine_grid: every axis has size 1 or more, not {tuple(size)}")
    sizes = tuple(int(each) for each in size[2:])
    base: list[wg.Tensor] = []
    for at, length in enumerate(sizes):
        steps = wg.arange(length, dtype=theta.dtype, device=theta.device)
        line = _line(steps, length, align_corners).reshape((length, *[1] * (axes - 1 - at)))
        base.insert(0, wg.broadcast_to(line, sizes))
    places = wg.stack([*base, wg.ones(sizes, dtype=theta.dtype, device=theta.device)], axis=-1)
    found = places.reshape((1, -1, axes + 1)) @ theta.mT
    return found.reshape((size[0], *sizes, axes))


def _line(steps: wg.Tensor, length: int, align_corners: bool) -> wg.Tensor:
    """From -1 to 1: from the first element's centre to the last's, or from edge to edge."""
    if length == 1:
        return wg.zeros_like(steps)
    if align_corners:
        return steps * (2.0 / (length - 1)) - 1.0
    return (steps * 2.0 + 1.0) / length - 1.0
