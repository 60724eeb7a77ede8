"""Whether a device's result is what it must be: element by element, in pieces, against a `Bounded`.

In: what a value must be, with its bound, and what a device made of it. Out: a `Comparison`: how far the worst
element is off, in units of what it may be off by. NaN and infinities must be where they are; integers
and bools whose bound is nothing must be equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...arrays import Array, np
from .rounding import Bounded

__all__ = ["SLACK", "Comparison", "compare"]

SLACK = 2.0  # times the bound: it is about the largest that rounding does, not above it for certain
PIECE = 1 << 20  # elements that are compared at a time


@dataclass(frozen=True, slots=True)
class Comparison:
    """The worst element of a result: a `ratio` above 1 is wrong. `unjudged` elements may be anything."""

    ratio: float = 0.0
    error: float = 0.0
    allowed: float = 0.0
    index: tuple[int, ...] = ()
    found: Any = None
    wanted: Any = None
    wrong: int = 0
    elements: int = 0
    unjudged: int = 0

    @property
    def ok(self) -> bool:
        """Whether every element is within its bound."""
        return self.wrong == 0


def compare(expected: Bounded, found: Array) -> Comparison:
    """Hold a device's result against what it must be."""
    shape = found.shape
    wanted = np.broadcast_to(expected.value, shape).reshape(-1)
    bound = None if expected.error is None else np.broadcast_to(expected.error, shape).reshape(-1)
    flat = found.reshape(-1)
    worst, at, wrong, unjudged = 0.0, 0, 0, 0
    for start in range(0, flat.size, PIECE):
        piece = slice(start, start + PIECE)
        ratios, free = _ratios(wanted[piece], None if bound is None else bound[piece], flat[piece])
        wrong += int(np.count_nonzero(ratios > 1))
        unjudged += free
        most = int(np.argmax(ratios))
        if ratios[most] > worst:
            worst, at = float(ratios[most]), start + most
    if not flat.size:
        return Comparison()
    with np.errstate(all="ignore"):
        error = float(np.abs(np.float64(flat[at]) - np.float64(wanted[at])))
    return Comparison(
        worst,
        error,
        0.0 if bound is None else SLACK * float(bound[at]),
        tuple(int(each) for each in np.unravel_index(at, shape)),
        flat[at].item(),
        wanted[at].item(),
        wrong,
        flat.size,
        unjudged,
    )


def _ratios(wanted: Array, bound: Array | None, found: Array) -> tuple[Array, int]:
    """For each element how far it is off, in units of what is allowed; how many may be anything."""
    if wanted.dtype.kind == "b" or bound is None:
        same = found == wanted
        if found.dtype.kind in "fV":
            same |= np.isnan(found.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
        if bound is None:
            return np.where(same, 0.0, np.inf), 0
        return np.where(same | bound, 0.0, np.inf), int(np.count_nonzero(bound))
    with np.errstate(all="ignore"):
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        far = np.abs(a - b)
        odd = ~np.isfinite(far)
        if odd.any():
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            far = np.where(odd, np.where(same, 0.0, np.inf), far)
        free = np.isinf(bound) | np.isnan(bound)
        ratios = np.where(far == 0, 0.0, far / (SLACK * bound))
        return np.where(free, 0.0, ratios), int(np.count_nonzero(free))
