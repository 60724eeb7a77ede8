"""How far functions of floats are from the truth: operands, values in a wider float, distances in ulps.

In: rows of `webgrad.ops.maps`. Out: operands from the whole range of a float by their bits and from a row's
domain; what the row should give for them, computed in a wider float; and the distance of a device's results
from that, in units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays import Array, np
from ..graph.op import Op
from ..ops.references import GELU_CUBIC

__all__ = ["WIDER", "Worst", "domain", "exact", "samples", "smallest", "ulps", "worst"]

WIDER: dict[str, Any] = {"float32": np.float64, "float64": np.longdouble}  # what a reference is computed in


def smallest(dtype: Any) -> float:
    """The smallest normal number; below it a device may give 0."""
    return float(np.finfo(dtype).smallest_normal)


def _by_math(function: Callable[[float], float]) -> Callable[[Array], Array]:
    slow: Callable[[Array], Any] = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(slow(x)).astype(np.float64)


def _exp_square(x: Array) -> Array:
    """exp(-x²) of float64 numbers: the square of the upper half of the digits is exact."""
    upper = x.astype(np.float32).astype(x.dtype)
    return np.asarray(np.exp(-upper * upper) * np.exp(-(x - upper) * (x + upper)))


def _long_erf_near(x: Array) -> Array:
    """erf(x) = 2/sqrt(π) exp(-x²) (x + 2/3 x³ + 4/15 x⁵ + …), for |x| up to 1."""
    total = term = x
    for n in range(1, 40):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    return np.asarray(total * _exp_square(x) * 2 / np.sqrt(np.arccos(x.dtype.type(-1))))


def _long_erfc_far(x: Array) -> Array:
    """erfc(x) = exp(-x²)/sqrt(π) / (x + 1/2 / (x + 1 / (x + 3/2 / …))), for x from 1."""
    below = x
    for n in range(300, 0, -1):
        below = x + n / 2 / below
    return np.asarray(_exp_square(x) / np.sqrt(np.arccos(x.dtype.type(-1))) / below)


def _long_erf(x: Array) -> Array:
    size = np.abs(x)
    far = 1 - _long_erfc_far(np.clip(size, 1, 30))
    return np.where(
        np.isnan(x), x, np.copysign(np.where(size < 1, _long_erf_near(np.minimum(size, 1)), far), x)
    )


def _long_erfc(x: Array) -> Array:
    size = np.abs(x)
    far = _long_erfc_far(np.clip(size, 1, 110))
    far = np.where(x < 0, 2 - far, far)
    return np.where(np.isnan(x), x, np.where(size < 1, 1 - _long_erf_near(np.clip(x, -1, 1)), far))


def _gelu(x: Array) -> Array:
    if x.dtype == np.float64:
        share = _by_math(math.erfc)(x * -math.sqrt(0.5))
    else:
        share = _long_erfc(x * -np.sqrt(x.dtype.type(0.5)))
    return np.where(np.isneginf(x), 0.0, 0.5 * x * share)


def _gelu_tanh(x: Array) -> Array:
    factor = np.sqrt(8 / np.arccos(x.dtype.type(-1)))  # GELU_SCALE, to more digits
    inner = factor * (x + x.dtype.type(repr(GELU_CUBIC)) * x**3)
    return np.where(np.isneginf(x), 0.0, x / (1 + np.exp(-inner)))


_EXACT: dict[str, dict[str, Callable[..., Array]]] = {
    "float32": {"erf": _by_math(math.erf), "erfc": _by_math(math.erfc), "gelu": _gelu},
    "float64": {"erf": _long_erf, "erfc": _long_erfc, "gelu": _gelu, "gelu_tanh": _gelu_tanh},
}


def exact(row: Op, operands: Sequence[Array]) -> Array:
    """A row's value in a wider float: of float32 operands float64, of float64 ones longdouble."""
    narrow = operands[0].dtype.name
    with np.errstate(all="ignore"):
        wide = [each.astype(WIDER[narrow]) for each in operands]
        function: Callable[..., Any] = _EXACT[narrow].get(row.name, row.numpy)
        return np.asarray(function(*wide))


def ulps(actual: Array, expected: Array) -> Array:
    """The distance of floats from values in a wider type, in units in the last place of the narrower one.

    Infinities count as the next number after the largest; NaN beside a number is infinitely far.
    """
    info = np.finfo(actual.dtype)
    limit = np.ldexp(expected.dtype.type(1), int(info.maxexp))
    with np.errstate(all="ignore"):
        inside = np.minimum(np.abs(expected), expected.dtype.type(info.max)).astype(actual.dtype)
        unit = np.spacing(inside).astype(expected.dtype)
        wide = np.clip(actual.astype(expected.dtype), -limit, limit)
        distance = (np.abs(wide - np.clip(expected, -limit, limit)) / unit).astype(np.float64)
    distance = np.where(np.isnan(actual) & np.isnan(expected), 0.0, distance)
    return np.where(np.isnan(distance), np.inf, distance)


def _special(dtype: Any) -> Array:
    info = np.finfo(dtype)
    ends = [
        info.smallest_subnormal,
        -info.smallest_subnormal,
        info.smallest_normal * 0.99,
        info.max,
        info.min,
    ]
    return np.array([0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, np.inf, -np.inf, np.nan, *ends], dtype)


def _patterns(count: int, generator: np.random.Generator, dtype: Any) -> Array:
    """Numbers evenly over all bit patterns, one drawn from each stretch, and special ones."""
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    step = 256**word.itemsize // count
    bits = np.arange(count, dtype=np.uint64) * np.uint64(step) + generator.integers(0, step, count, np.uint64)
    return np.concatenate([bits.astype(word).view(dtype), _special(dtype)])


# Where results of float64 are numbers, for rows whose results of float32 end sooner.
_WIDE_DOMAIN: dict[str, tuple[float, float]] = {
    "exp": (-746, 710),
    "exp2": (-1075, 1024),
    "expm1": (-40, 710),
    "sinh": (-711, 711),
    "cosh": (-711, 711),
    "sigmoid": (-746, 746),
    "erfc": (-6, 27.3),
    "gelu": (-39, 9),
    "gelu_tanh": (-22, 9),
}


def domain(row: Op, dtype: Any) -> tuple[float, float]:
    """Where a row's results of this type are numbers of use."""
    return _WIDE_DOMAIN.get(row.name, row.domain) if dtype == np.float64 else row.domain


def samples(row: Op, count: int, dtype: Any = np.float32) -> list[Array]:
    """Operands for a row: half of them from all bit patterns, half from its domain."""
    generator = np.random.default_rng(0)
    usual = generator.uniform(*domain(row, dtype), count // 2).astype(dtype)
    first = np.concatenate([_patterns(count // 2, generator, dtype), usual])
    if row.arity == 1:
        return [first]
    if row.name != "power":
        return [first, generator.permutation(first)]
    # Half of the exponents are such that the power is within range.
    with np.errstate(all="ignore"):
        ends = math.log(smallest(dtype)), math.log(np.finfo(dtype).max)
        fitting = generator.uniform(*ends, first.size) / np.log(np.abs(first.astype(np.float64)))
    drawn = _patterns(first.size - _special(dtype).size, generator, dtype)
    return [first, np.where(generator.random(first.size) < 0.5, fitting, drawn).astype(dtype)]


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest error among normal results, and where it is."""

    error: float
    place: tuple[float, ...]

    def __str__(self) -> str:
        place = ", ".join(f"{each:.9g}" for each in self.place)
        return f"{self.error:.2f} | {place}" if self.error else "0 | everywhere"


def worst(actual: Array, expected: Array, operands: Sequence[Array]) -> Worst:
    """The largest error of results, in units in the last place, where these are normal numbers."""
    distance = np.where(np.abs(expected) < smallest(actual.dtype), 0.0, ulps(actual, expected))
    at = int(np.argmax(distance))
    return Worst(float(distance[at]), tuple(float(each[at]) for each in operands))
