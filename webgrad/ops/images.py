"""Images in other sizes: interpolation along the axes after samples and channels, one axis after another.

In: a tensor (N, C, L), (N, C, H, W) or (N, C, D, H, W), and the size or scale wanted. Out: a tensor of that
size, equal to PyTorch's. Which elements an output element is made of, and how much of each, is worked out on
the host for each axis, once, and travels as two small constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..arrays import Array, np
from ..errors import ArgumentError, DTypeError, ShapeError
from ..tensor import Tensor
from . import primitives
from .creation import as_tensor, asarray
from .reductions import converted, floating, fold
from .reshaping import whole

__all__ = ["interpolate"]


@dataclass(frozen=True, slots=True)
class _Axis:
    """How one axis is resized: coordinates are multiplied by `scale` from output to input."""

    side: int
    wanted: int
    scale: float
    align_corners: bool
    in_image: bool  # of two axes
    precise: bool  # in float64; else in float32, as PyTorch does, so that ties fall the same way

    def coordinates(self) -> Array:
        """Where the centre of each output element lies in the input."""
        number: Any = np.float64 if self.precise else np.float32
        places = np.arange(self.wanted, dtype=number)
        if self.align_corners:
            return np.asarray(places * number((self.side - 1) / max(self.wanted - 1, 1)))
        half = number(0.5)
        return np.asarray((places + half) * number(self.scale) - half)


Taps = tuple[Array, Array | None]  # indices (taps, wanted); their weights, None where there is one tap


def _nearest(axis: _Axis) -> Taps:
    if axis.in_image and axis.wanted in (axis.side, 2 * axis.side):  # PyTorch: whatever the factor was
        return np.arange(axis.wanted)[None] * axis.side // axis.wanted, None
    places = np.arange(axis.wanted, dtype=np.float32) * np.float32(axis.scale)
    return np.minimum(places.astype(np.int64), axis.side - 1)[None], None


def _nearest_exact(axis: _Axis) -> Taps:
    places = (np.arange(axis.wanted, dtype=np.float32) + np.float32(0.5)) * np.float32(axis.scale)
    return np.minimum(places.astype(np.int64), axis.side - 1)[None], None


def _linear(axis: _Axis) -> Taps:
    places = np.maximum(axis.coordinates(), 0)
    low = np.minimum(places.astype(np.int64), axis.side - 1)
    part = np.clip(places - low.astype(places.dtype), 0, 1)
    return np.stack([low, np.minimum(low + 1, axis.side - 1)]), np.stack([1 - part, part])


def _cubic(axis: _Axis) -> Taps:
    """Keys' convolution with a = -0.75, edges repeated."""
    places = axis.coordinates()
    low = np.floor(places)
    t = places - low
    a = places.dtype.type(-0.75)

    def near(x: Array) -> Array:
        return np.asarray(((a + 2) * x - (a + 3)) * x * x + 1)

    def far(x: Array) -> Array:
        return np.asarray(((a * x - 5 * a) * x + 8 * a) * x - 4 * a)

    index = low.astype(np.int64) + np.arange(-1, 3)[:, None]
    return np.clip(index, 0, axis.side - 1), np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)])


# mode → the taps of one axis, and how many axes it is for
_MODES: dict[str, tuple[Callable[[_Axis], Taps], tuple[int, ...]]] = {
    "nearest": (_nearest, (1, 2, 3)),
    "nearest-exact": (_nearest_exact, (1, 2, 3)),
    "linear": (_linear, (1,)),
    "bilinear": (_linear, (2,)),
    "trilinear": (_linear, (3,)),
    "bicubic": (_cubic, (2,)),
}

# Modes in which an axis whose side stays is left alone, even if a factor of 1.1 made the same side.
_STILL = ("linear", "bilinear", "trilinear")


@lru_cache(maxsize=128)
def _taps(mode: str, axis: _Axis) -> Taps:
    index, weights = _MODES[mode][0](axis)
    return index.astype(np.int32), weights


def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """x (N, C, …) resized along its axes after the channels, to a size or by a factor, as PyTorch does it.

    Modes: nearest, nearest-exact, linear (one axis), bilinear and bicubic (two axes), trilinear (three).

    >>> wg.interpolate(wg.asarray([[[1.0, 3.0]]]), size=4, mode="linear").tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    op = "interpolate"
    x = as_tensor(op, x)
    count = x.ndim - 2
    _check_mode(op, x, mode, align_corners)
    wide = x if mode.startswith("nearest") else floating(f"{op} with mode={mode!r}", x)
    precise = x.dtype.itemsize == 8
    targets = _targets(op, x, size, scale_factor)
    for at in reversed(range(count)):
        wanted, factor = targets[at]
        side = x.shape[2 + at]
        scale = side / wanted if factor is None else 1 / factor
        how = _Axis(side, wanted, scale, bool(align_corners), count == 2, precise)
        wide = _resized(wide, 2 + at, mode, how)
    return converted(wide, x.dtype)


def _check_mode(op: str, x: Tensor, mode: str, align_corners: bool | None) -> None:
    if mode not in _MODES:
        raise ArgumentError(f"{op}: mode must be one of {', '.join(map(repr, _MODES))}, not {mode!r}")
    if x.ndim - 2 not in _MODES[mode][1]:
        ranks = " or ".join(str(2 + each) for each in _MODES[mode][1])
        raise ArgumentError(
            f"{op} with mode={mode!r} takes {ranks} axes (samples, channels, …), not {x.shape}"
        )
    if align_corners is not None and mode.startswith("nearest"):
        raise ArgumentError(f"{op}: align_corners has no meaning with mode={mode!r}; leave it out")
    if 0 in x.shape[1:]:
        raise ShapeError(f"{op}: there is nothing to interpolate in a tensor of shape {x.shape}")


def _targets(op: str, x: Tensor, size: Any, scale_factor: Any) -> list[tuple[int, float | None]]:
    """For each axis the side wanted, and the factor where one was given."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(f"{op} takes either size or scale_factor")
    given = scale_factor if size is None else size
    sides = x.shape[2:]
    several = list(given) if isinstance(given, Sequence) else [given] * len(sides)
    if len(several) != len(sides):
        raise ShapeError(
            f"{op} of a tensor of shape {x.shape}: give one number for each of its {len(sides)} last axes, "
            f"or one for all, not {given!r}"
        )
    if size is not None:
        found: list[tuple[int, float | None]] = [
            (whole(op, "a side of size", each), None) for each in several
        ]
    else:
        if not all(isinstance(each, (int, float)) and each > 0 and math.isfinite(each) for each in several):
            raise DTypeError(f"{op}: scale_factor is a positive number for each axis, not {given!r}")
        found = [(math.floor(side * each), float(each)) for side, each in zip(sides, several, strict=True)]
    if any(side < 1 for side, _ in found):
        raise ShapeError(
            f"{op}: no side of the result may be below 1, as in {tuple(side for side, _ in found)}"
        )
    return found


def _resized(x: Tensor, axis: int, mode: str, how: _Axis) -> Tensor:
    """One axis: a few elements taken for each new one, and their weighted sum."""
    if how.side == how.wanted and (mode in _STILL or how.align_corners or how.scale == 1):
        return x
    index, weights = _taps(mode, how)
    places = asarray(index if weights is not None else index[0], device=x.device)
    taken = Tensor(primitives.take(x.node, places.node, axis))
    if weights is None:
        return taken
    shape = (*weights.shape, *[1] * (x.ndim - 1 - axis))
    factors = asarray(weights.astype(x.dtype.numpy).reshape(shape), device=x.device)
    return fold("sum", taken * factors, (axis,))
