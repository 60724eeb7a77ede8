"""Images in other sizes: Resize and Upsample.

Axes are resized one after another. The elements that each new one is made of, its taps, and their weights are
computed with NumPy while the graph is built, and become two small constants for each axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import webgrad as wg

from ...arrays import Array, np
from .table import operator
from .values import bounded


class _Axis(NamedTuple):
    """How an axis is resized."""

    size: int
    wanted: int
    scale: float
    roi: tuple[float, float]

    @property
    def length(self) -> float:
        """The new size before it was rounded down."""
        return self.scale * self.size


class _Mode(NamedTuple):
    """The attributes of a resizing."""

    name: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    curve: float = -0.75
    is_antialiased: bool = False
    excludes_outside: bool = False
    outside: float = 0.0


# Where new elements lie in the old axis; i counts the new ones


def _corners(axis: _Axis, i: Array) -> Array:
    return i * 0 if axis.length == 1 else i * ((axis.size - 1) / (axis.length - 1))


def _half_pixels(axis: _Axis, i: Array) -> Array:
    return (i + 0.5) / axis.scale - 0.5


def _symmetric(axis: _Axis, i: Array) -> Array:
    return axis.size / 2 * (1 - axis.wanted / axis.length) + (i + 0.5) / axis.scale - 0.5


def _cropped(axis: _Axis, i: Array) -> Array:
    low, high = axis.roi
    if axis.length == 1:
        return i * 0 + (low + high) * (axis.size - 1) / 2
    return low * (axis.size - 1) + i * ((high - low) * (axis.size - 1) / (axis.length - 1))


_COORDINATES: Mapping[str, Callable[[_Axis, Array], Array]] = {
    "align_corners": _corners,
    "asymmetric": lambda axis, i: i / axis.scale,
    "half_pixel": _half_pixels,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda axis, i: _half_pixels(axis, i) if axis.wanted > 1 else i * 0,
    "tf_crop_and_resize": _cropped,
    "tf_half_pixel_for_nn": lambda axis, i: (i + 0.5) / axis.scale,
}

# Taps

_NEAREST: Mapping[str, Callable[[Array, _Axis], Array]] = {
    "round_prefer_floor": lambda x, axis: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x, axis: np.floor(x + 0.5),
    "floor": lambda x, axis: np.floor(x),
    "ceil": lambda x, axis: np.ceil(x),
    "simple": lambda x, axis: np.ceil(x) if axis.scale < 1 else np.floor(x),  # before version 11
}


def _tent(distance: Array, curve: float) -> Array:
    found: Array = np.clip(1 - distance, 0, 1)
    return found


def _keys(distance: Array, curve: float) -> Array:
    """Keys' convolution."""
    near = ((curve + 2) * distance - (curve + 3)) * distance * distance + 1
    far = ((curve * distance - 5 * curve) * distance + 8 * curve) * distance - 4 * curve
    found: Array = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    return found


# mode → weights by distance, and how far they reach
_CURVES: Mapping[str, tuple[Callable[[Array, float], Array], int]] = {
    "linear": (_tent, 1),
    "cubic": (_keys, 2),
}


def _weighted_taps(axis: _Axis, mode: _Mode, places: Array) -> tuple[Array, Array]:
    """The elements near each place, some of which may be outside, and their weights: both (taps, wanted)."""
    curve, reach = _CURVES[mode.name]
    squeeze = min(axis.scale, 1.0) if mode.is_antialiased else 1.0
    start = math.floor(-reach / squeeze) + 1
    index = np.floor(places)[None] + np.arange(start, bounded(2 - start))[:, None]
    weights = curve(np.abs(index - places) * squeeze, mode.curve)
    if mode.excludes_outside:
        weights = weights * ((index >= 0) & (index < axis.size))
    if mode.excludes_outside or mode.is_antialiased:
        total = weights.sum(0)
        weights = weights / np.where(total == 0, 1, total)
    return index, weights


def _resized(x: Any, at: int, axis: _Axis, mode: _Mode) -> Any:
    """One axis of x: an element or a weighted sum of some for each new one."""
    kind = np.float32 if mode.name == "nearest" else np.float64  # so that 1.5 / 0.6 is 2.5, as elsewhere
    places = _COORDINATES[mode.coordinates](axis, np.arange(bounded(axis.wanted), dtype=kind))
    behind = [1] * (x.ndim - 1 - at)
    if mode.name == "nearest":
        index = _NEAREST[mode.nearest](places, axis)
        x = _taken(x, at, _inside(index, axis))
    else:
        index, weights = _weighted_taps(axis, mode, places)
        factors = wg.asarray(weights.reshape((*weights.shape, *behind)), x.dtype, device=x.device)
        x = wg.sum(_taken(x, at, _inside(index, axis)) * factors, axis=at)
    if mode.coordinates != "tf_crop_and_resize":
        return x
    inside = ((places >= 0) & (places <= axis.size - 1)).reshape((-1, *behind))
    return x if inside.all() else wg.where(wg.asarray(inside, device=x.device), x, mode.outside)


def _inside(index: Array, axis: _Axis) -> Array:
    """Edges are repeated."""
    return np.clip(index, 0, axis.size - 1).astype(np.int32)


def _taken(x: Any, at: int, index: Array) -> Any:
    """Elements of an axis; where each is taken equally often in order, as movement alone."""
    size, count = x.shape[at], index.shape[-1]
    if index.ndim == 1 and count % size == 0 and (index == np.arange(count) // (count // size)).all():
        wide = wg.expand_dims(x, at + 1)
        shape = (*x.shape[: at + 1], count // size, *x.shape[at + 1 :])
        return wg.broadcast_to(wide, shape).reshape((*x.shape[:at], count, *x.shape[at + 1 :]))
    return wg.take(x, wg.asarray(index, device=x.device), axis=at)


def _resize(x: Any, axes: Mapping[int, _Axis], mode: _Mode) -> Any:
    if mode.name not in ("nearest", *_CURVES) or mode.coordinates not in _COORDINATES:
        raise wg.ModelFileError(f"there is no resizing with mode {mode.name!r} and {mode.coordinates!r}")
    if mode.is_antialiased and mode.name == "nearest":
        raise wg.ModelFileError("antialias is for the modes linear and cubic, not nearest")
    wide = x
    if mode.name != "nearest":
        wide = x.astype(x.dtype.wide if x.dtype.kind == "f" else wg.float32, copy=False)
    for at in sorted(axes):
        axis = axes[at]
        is_same = axis.scale == 1 and axis.size == axis.wanted and axis.roi == (0, 1)
        wide = wide if is_same else _resized(wide, at, axis, mode)
    return _narrowed(wide, x.dtype)


def _narrowed(x: Any, dtype: Any) -> Any:
    """x in a dtype again: of integers rounded, and no further than they reach."""
    if dtype.kind == "f" or x.dtype == dtype:
        return x.astype(dtype, copy=False)
    limits = wg.iinfo(dtype)
    return wg.clip(wg.round(x), limits.min, limits.max).astype(dtype)


# The operators


def _scaled(size: int, scale: float) -> int:
    """In float32, so that 0.7 · 10 is 7."""
    return int(np.float32(scale) * np.float32(size))


def _axes_of(
    x: Any, axes: Sequence[int], scales: Any, sizes: Any, roi: Any, policy: str = "stretch"
) -> dict[int, _Axis]:
    places = [each % x.ndim for each in axes] or list(range(x.ndim))
    old = [x.shape[at] for at in places]
    if sizes is not None and sizes.size:
        new = [int(each) for each in sizes]
        factors = [want / max(size, 1) for want, size in zip(new, old, strict=True)]
        if policy != "stretch":
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors = [factor] * len(old)
            new = [int(factor * size + 0.5) for size in old]
    elif scales is not None and scales.size:
        factors = [float(each) for each in scales]
        new = [_scaled(size, each) for size, each in zip(old, factors, strict=True)]
    else:
        raise wg.ModelFileError("Resize takes scales or sizes, one of them")
    rois = [(0.0, 1.0)] * len(old)
    if roi is not None and roi.size:
        count = len(old)
        rois = [(float(roi[at]), float(roi[at + count])) for at in range(count)]
    return {at: _Axis(*each) for at, *each in zip(places, old, new, factors, rois, strict=True)}


@operator("Resize", 11, host="roi scales sizes")
def resize(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] = (),
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    is_cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    found = _axes_of(x, axes, scales, sizes, roi if is_cropped else None, keep_aspect_ratio_policy)
    flags = bool(antialias), bool(exclude_outside)
    how = (coordinate_transformation_mode, nearest_mode, cubic_coeff_a, *flags, extrapolation_value)
    return _resize(x, found, _Mode(mode, *how))


def _upsampled(x: Any, scales: Any, mode: str) -> Any:
    name = {"bilinear": "linear"}.get(mode, mode)
    return _resize(x, _axes_of(x, (), scales, None, None), _Mode(name, "asymmetric", "simple"))


@operator("Resize", 10, host="scales")
@operator("Upsample", 9, host="scales")
def upsample(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    return _upsampled(x, scales, mode)


@operator("Upsample", 7)
def upsample_by(x: Any, *, mode: str = "nearest", scales: Sequence[float]) -> Any:
    return _upsampled(x, np.asarray(scales, np.float32), mode)


@operator("Upsample")
def upsample_image(x: Any, *, height_scale: float, mode: str = "nearest", width_scale: float) -> Any:
    return _upsampled(x, np.asarray([1, 1, height_scale, width_scale], np.float32), mode)
