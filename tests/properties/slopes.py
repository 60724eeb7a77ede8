"""A gradient against differences of results: the two differ only where one is wrong or there is a kink.

In: the function of an offset from the point, and its gradient there. Out: what is wrong, or the empty text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.properties.helpers import Array

__all__ = ["wrong_slope"]

TINY = 1e-5
LINES = 12  # on which a kink is looked for

Function = Callable[[Array], float]


def wrong_slope(function: Function, gradient: Array, random: np.random.Generator) -> str:
    """Whether the gradient is not the slope along a line, at a point where there is a slope."""
    direction = np.asarray(random.uniform(-1, 1, gradient.shape))
    parts = np.asarray(gradient * direction)
    slope = float(parts.sum())
    slack = 1e-3 * max(1.0, float(np.sqrt(np.square(parts).sum())), abs(slope))
    found = _slope(function, direction, slack)
    if found is None or abs(found - slope) <= slack or not _is_smooth(function, direction, random, slack):
        return ""
    return f"the slope of the gradient is {slope}, that of the results {found}"


def _slope(function: Function, direction: Array, slack: float, step: float = TINY) -> float | None:
    """The slope along a line, or None where it is not the same to either side."""
    before, here, after = (function(each * direction) for each in (-step, 0.0, step))
    left, right = (here - before) / step, (after - here) / step
    return None if abs(left - right) > slack else (left + right) / 2


def _is_smooth(function: Function, direction: Array, random: np.random.Generator, slack: float) -> bool:
    """Whether slopes along other lines are those of a plane: at some kinks and jumps one line shows nothing.

    Where all three are equal, the middle one of three has a slope along every line, but slopes do not add up;
    the sign of 0 has one that doubles with half the step; and of a maximum at a bound only lines along which
    all elements grow show both sides.
    """
    for at in range(LINES):
        other = np.asarray(random.uniform(-1 if at % 2 else 0, 1, direction.shape))
        lines = ((direction, TINY), (other, TINY), (direction + other, TINY), (other, TINY / 2))
        along, beside, both, closer = (_slope(function, line, slack, step) for line, step in lines)
        if along is None or beside is None or both is None or closer is None:
            return False
        if max(abs(along + beside - both), abs(closer - beside)) > slack / 10:
            return False
    return True
