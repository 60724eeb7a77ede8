"""Orthogonal polynomials: Chebyshev's, Hermite's, Laguerre's and Legendre's.

In: where, and of which degree: a number, or a tensor of numbers. Out: a tensor of floats. Each family is a
row: its polynomial of degree 1, and how the next one follows from two. A tensor of degrees is read, since the
largest is how many steps there are; gradients are those of the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import webgrad as wg
from webgrad import Tensor

from .elements import floats

__all__ = ["FAMILIES", "polynomial"]

MOST = 1024
Step = Callable[[Tensor, int, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Family:
    """Polynomials by degree: 1, then `first`, then `step` of x, the degree k, and those of k and k - 1."""

    first: Callable[[Tensor], Tensor]
    step: Step
    is_shifted: bool = False  # of 2x - 1


def _chebyshev(x: Tensor, k: int, now: Tensor, before: Tensor) -> Tensor:
    return 2 * x * now - before


FAMILIES = {
    "chebyshev_polynomial_t": Family(lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": Family(lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": Family(lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": Family(lambda x: 2 * x + 1, _chebyshev),
    "shifted_chebyshev_polynomial_t": Family(lambda x: x, _chebyshev, True),
    "shifted_chebyshev_polynomial_u": Family(lambda x: 2 * x, _chebyshev, True),
    "shifted_chebyshev_polynomial_v": Family(lambda x: 2 * x - 1, _chebyshev, True),
    "shifted_chebyshev_polynomial_w": Family(lambda x: 2 * x + 1, _chebyshev, True),
    "hermite_polynomial_h": Family(lambda x: 2 * x, lambda x, k, p, q: 2 * (x * p - k * q)),
    "hermite_polynomial_he": Family(lambda x: x, lambda x, k, p, q: x * p - k * q),
    "laguerre_polynomial_l": Family(
        lambda x: 1 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)
    ),
    "legendre_polynomial_p": Family(lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def polynomial(name: str, x: Any, n: Any, /) -> Tensor:
    """The polynomials of a family, by its name, at x and of degree n; 0 where n is below 0.

    >>> wg.special.polynomial("legendre_polynomial_p", wg.asarray([0.0, 0.5, 1.0]), 2).tolist()
    [-0.5, -0.125, 1.0]
    """
    family = FAMILIES.get(name)
    if family is None:
        raise wg.ArgumentError(f"special.polynomial: the families are {', '.join(FAMILIES)}; not {name!r}")
    given, result = floats(name, x, n)
    at, degrees = wg.broadcast_arrays(*given)
    at, degrees = 2 * at - 1 if family.is_shifted else at, wg.trunc(degrees.detach())
    found: Tensor = _of_degrees(name, family, at, degrees, _largest(name, degrees))
    return found.astype(result, copy=False)


def _largest(name: str, degrees: Tensor) -> int:
    largest = int(wg.max(wg.where(wg.isnan(degrees), 0.0, degrees)).item()) if degrees.numel() else 0
    if largest > MOST:
        raise wg.ArgumentError(f"special.{name}: the degree is {largest}, and the largest offered is {MOST}")
    return largest


def _of_degrees(name: str, family: Family, x: Tensor, degrees: Tensor, largest: int) -> Tensor:
    before, now = wg.ones_like(x), family.first(x)
    total = wg.where(degrees == 0, before, 0.0)
    for k in range(1, largest + 1):
        total = wg.where(degrees == k, now, total)
        before, now = now, family.step(x, k, now, before)
    return total
