"""Images in other sizes: interpolation along the axes after samples and channels, one axis after another.

In: a tensor (N, C, L), (N, C, H, W) or (N, C, D, H, W), and the size or scale wanted. Out: a tensor of that
size, equal to PyTorch's. The taps of each output element and their weights are computed on the
host for each axis, once, and become two small constants.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops import primitives
from ...ops.host_arrays import host_array
from ...tensor import Tensor
from ..array.creation import as_tensor, asarray
from ..array.reductions import converted, floating, fold
from ..array.reshaping import whole
from ..convolution.adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from ..pure import pure


@dataclass(frozen=True, slots=True)
class _Axis:
    """How one axis is resized: coordinates are multiplied by `scale` from output to input."""

    size: int
    wanted: int
    scale: float
    align_corners: bool
    in_image: bool  # of two axes
    precise: bool  # in float64; else in float32, as PyTorch does, so that ties fall the same way

    def rounded(self, numbers: Iterable[float]) -> array[float]:
        """Numbers in the precision that this axis is computed in."""
        return array("d" if self.precise else "f", numbers)

    def coordinates(self) -> array[float]:
        """The coordinate of the centre of each output element in the input."""
        places = self.rounded(range(self.wanted))
        if self.align_corners:
            (step,) = self.rounded([(self.size - 1) / max(self.wanted - 1, 1)])
            return self.rounded(each * step for each in places)
        (scale,) = self.rounded([self.scale])
        centres = self.rounded(each + 0.5 for each in places)
        return self.rounded(each - 0.5 for each in self.rounded(each * scale for each in centres))


Lines = Sequence[Sequence[float]]
Taps = tuple[Lines, Lines | None]  # indices (taps, wanted); their weights, None where there is one tap


def _nearest(axis: _Axis) -> Taps:
    if axis.in_image and axis.wanted in (axis.size, 2 * axis.size):  # PyTorch: whatever the factor was
        return [[each * axis.size // axis.wanted for each in range(axis.wanted)]], None
    return _starting(axis, 0)


def _nearest_exact(axis: _Axis) -> Taps:
    return _starting(axis, 0.5)


def _starting(axis: _Axis, start: float) -> Taps:
    """In float32 whatever the precision, as in PyTorch."""
    (scale,) = array("f", [axis.scale])
    places = array("f", [each * scale for each in array("f", [each + start for each in range(axis.wanted)])])
    return [[min(int(each), axis.size - 1) for each in places]], None


def _linear(axis: _Axis) -> Taps:
    places = [max(each, 0.0) for each in axis.coordinates()]
    low = [min(int(each), axis.size - 1) for each in places]
    apart = axis.rounded(place - each for place, each in zip(places, low, strict=True))
    part = [min(max(each, 0.0), 1.0) for each in apart]
    return [low, [min(each + 1, axis.size - 1) for each in low]], [
        axis.rounded(1 - each for each in part),
        part,
    ]


# Keys' convolution with a = -0.75: at distances below 1, and from there to 2, as polynomials.
_NEAR = (1.25, -2.25, 0.0, 1.0)
_FAR = (-0.75, 3.75, -6.0, 3.0)


def _cubic(axis: _Axis) -> Taps:
    """Keys' convolution, edges repeated."""
    places = axis.coordinates()
    low = [math.floor(each) for each in places]
    part = axis.rounded(place - each for place, each in zip(places, low, strict=True))
    index = [[min(max(each + tap, 0), axis.size - 1) for each in low] for tap in range(-1, 3)]
    distances = (
        (_FAR, [each + 1 for each in part]),
        (_NEAR, part),
        (_NEAR, [1 - each for each in part]),
        (_FAR, [2 - each for each in part]),
    )
    return index, [_polynomial(axis, coefficients, axis.rounded(x)) for coefficients, x in distances]


def _polynomial(axis: _Axis, coefficients: Sequence[float], x: array[float]) -> array[float]:
    """By Horner's rule, rounded after each step."""
    result = axis.rounded([coefficients[0]] * len(x))
    for coefficient in coefficients[1:]:
        product = axis.rounded(each * factor for each, factor in zip(result, x, strict=True))
        result = axis.rounded(each + coefficient for each in product)
    return result


# Smoothed where elements come together: as wide as the elements of the output, edges cut off.


def _tent(x: float) -> float:
    return max(1.0 - abs(x), 0.0)


def _bell(x: float) -> float:
    """Keys' convolution with a = -0.5."""
    x = abs(x)
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


_SMOOTH: dict[str, tuple[Callable[[float], float], float]] = {
    "bilinear": (_tent, 1.0),
    "bicubic": (_bell, 2.0),
}


def _smoothed(axis: _Axis, curve: Callable[[float], float], reach: float) -> Taps:
    scale = (axis.size - 1) / max(axis.wanted - 1, 1) if axis.align_corners else axis.scale
    wide = max(scale, 1.0)
    rows = []
    for at in range(axis.wanted):
        centre = scale * (at + 0.5)
        first = max(int(centre - reach * wide + 0.5), 0)
        last = min(int(centre + reach * wide + 0.5), axis.size)
        weights = [curve((place - centre + 0.5) / wide) for place in range(first, last)]
        total = sum(weights) or 1.0
        rows.append((first, [each / total for each in weights]))
    most = max(len(weights) for _, weights in rows)
    index = [[min(first + tap, axis.size - 1) for first, _ in rows] for tap in range(most)]
    return index, [
        axis.rounded(weights[tap] if tap < len(weights) else 0.0 for _, weights in rows)
        for tap in range(most)
    ]


# mode → the taps of one axis, and how many axes it is for
_MODES: dict[str, tuple[Callable[[_Axis], Taps], tuple[int, ...]]] = {
    "nearest": (_nearest, (1, 2, 3)),
    "nearest-exact": (_nearest_exact, (1, 2, 3)),
    "linear": (_linear, (1,)),
    "bilinear": (_linear, (2,)),
    "trilinear": (_linear, (3,)),
    "bicubic": (_cubic, (2,)),
}

# Modes in which an axis that keeps its size is left as it is, even if a factor of 1.1 gave that size.
_KEEP_SIZE = ("linear", "bilinear", "trilinear")


@lru_cache(maxsize=128)
def _taps(mode: str, axis: _Axis, antialias: bool) -> tuple[Any, Any]:
    """The taps of one axis, as arrays."""
    index, weights = _smoothed(axis, *_SMOOTH[mode]) if antialias else _MODES[mode][0](axis)
    number = dtypes.float64 if axis.precise else dtypes.float32
    found = None if weights is None else host_array("interpolate", list(map(list, weights)), number)
    return host_array("interpolate", index if found is not None else index[0], dtypes.int32), found


@pure
def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """x (N, C, …) resized along its axes after the channels, to a size or by a factor, as PyTorch does it.

    Modes: nearest, nearest-exact, linear (one axis), bilinear and bicubic (two axes), trilinear (three), and
    area, which is `adaptive_avg_pool`. A factor is that of coordinates too, unless it is computed anew from
    the sizes. `antialias` smooths what becomes smaller, in the modes bilinear and bicubic.

    >>> wg.interpolate(wg.asarray([[[1.0, 3.0]]]), size=4, mode="linear").tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    op = "interpolate"
    x = as_tensor(op, x)
    count = x.ndim - 2
    _check_mode(op, x, mode, align_corners, antialias)
    if mode == "area":
        lengths = tuple(length for length, _ in _targets(op, x, size, scale_factor))
        pools = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        return pools[count - 1](x, lengths)
    wide = +x if mode.startswith("nearest") else floating(f"{op} with mode={mode!r}", x)
    precise = x.dtype.itemsize == 8
    targets = _targets(op, x, size, scale_factor)
    for at in reversed(range(count)):
        wanted, factor = targets[at]
        length = x.shape[2 + at]
        scale = length / wanted if factor is None or recompute_scale_factor else 1 / factor
        how = _Axis(length, wanted, scale, bool(align_corners), count == 2, precise)
        wide = _resized(wide, 2 + at, mode, how, antialias)
    return converted(wide, x.dtype)


def _check_mode(op: str, x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in (*_MODES, "area"):
        names = ", ".join(map(repr, (*_MODES, "area")))
        raise ArgumentError(f"{op}: mode must be one of {names}, not {mode!r}")
    if antialias and mode not in _SMOOTH:
        raise ArgumentError(f"{op}: antialias is for mode='bilinear' and 'bicubic', not for {mode!r}")
    possible = (1, 2, 3) if mode == "area" else _MODES[mode][1]
    if x.ndim - 2 not in possible:
        ranks = " or ".join(str(2 + each) for each in possible)
        raise ArgumentError(
            f"{op} with mode={mode!r} takes {ranks} axes (samples, channels, …), not {x.shape}"
        )
    if align_corners is not None and (mode.startswith("nearest") or mode == "area"):
        raise ArgumentError(f"{op}: align_corners has no meaning with mode={mode!r}; leave it out")
    if 0 in x.shape[1:]:
        raise ShapeError(f"{op}: there is nothing to interpolate in a tensor of shape {x.shape}")


def _targets(op: str, x: Tensor, size: Any, scale_factor: Any) -> list[tuple[int, float | None]]:
    """For each axis the new size, and the factor if one was given."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(f"{op} takes size or scale_factor, one of them")
    given = scale_factor if size is None else size
    lengths = x.shape[2:]
    several = list(given) if isinstance(given, Sequence) else [given] * len(lengths)
    if len(several) != len(lengths):
        raise ShapeError(
            f"{op} of a tensor of shape {x.shape}: give one number for each of its {len(lengths)} last axes, "
            f"or one for all, not {given!r}"
        )
    if size is not None:
        found: list[tuple[int, float | None]] = [
            (whole(op, "an element of size", each), None) for each in several
        ]
    else:
        if not all(isinstance(each, (int, float)) and each > 0 and math.isfinite(each) for each in several):
            raise DTypeError(f"{op}: scale_factor is a positive number for each axis, not {given!r}")
        found = [
            (math.floor(length * each), float(each)) for length, each in zip(lengths, several, strict=True)
        ]
    if any(length < 1 for length, _ in found):
        raise ShapeError(
            f"{op}: every axis of the result needs size 1 or more, not {tuple(length for length, _ in found)}"
        )
    return found


def _resized(x: Tensor, axis: int, mode: str, how: _Axis, antialias: bool) -> Tensor:
    """One axis: a few elements taken for each new one, and their weighted sum."""
    keeps_size = how.scale == 1 or (not antialias and (mode in _KEEP_SIZE or how.align_corners))
    if how.size == how.wanted and keeps_size:
        return x
    index, weights = _taps(mode, how, antialias)
    places = asarray(index, device=x.device)
    taken = Tensor(primitives.take(x.node, places.node, axis))
    if weights is None:
        return taken
    shape = (*weights.shape, *[1] * (x.ndim - 1 - axis))
    factors = asarray(weights, x.dtype, device=x.device).reshape(shape)
    return fold("sum", taken * factors, (axis,))
