"""Chebyshev series: what most functions of this package are made of.

In: the name of a series of the table, and a tensor of floats between -1 and 1. Out: its sum, in that dtype.
Terms that are below the dtype's rounding are left out, so that float32 has about half of float64's.
"""

from __future__ import annotations

import re
from functools import cache

import webgrad as wg
from webgrad import Tensor

from .series_table import TABLE

__all__ = ["far", "series"]


@cache
def _table() -> dict[str, tuple[float, ...]]:
    rows = [row.split() for row in re.sub(r"\n +", " ", TABLE.strip()).splitlines()]
    return {row[0]: tuple(map(float, row[1:])) for row in rows}


@cache
def _terms(name: str, rounding: float) -> tuple[float, ...]:
    """The coefficients down to the last that counts."""
    row = _table()[name]
    least = max(map(abs, row)) * rounding
    return row[: 1 + max(at for at, each in enumerate(row) if abs(each) > least)]


def series(name: str, t: Tensor) -> Tensor:
    """The sum of a series at t, by Clenshaw's recurrence."""
    first, *others = _terms(name, 2.0**-56 if t.dtype is wg.float64 else 2.0**-27)
    twice = t + t
    before, last = wg.zeros_like(t), wg.full_like(t, others[-1])
    for each in reversed(others[:-1]):
        before, last = last, twice * last - before + each
    return t * last - before + first


def far(least: float, x: Tensor) -> Tensor:
    """What takes x from `least` to infinity to 1 … -1: 2 (least / x)² - 1."""
    ratio = least / x
    return ratio * ratio * 2 - 1
