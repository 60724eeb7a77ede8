"""What pipelines are asked for, checked: prompts, counts, sizes, how much counts, noise to begin with.

In: what a user gives. Out: the same in one form. The invariant: what would change nothing is refused by name.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import webgrad as wg

__all__ = [
    "check_noise",
    "negatives_of",
    "noise_of",
    "number_of",
    "size_of",
    "strength_of",
    "texts_of",
    "whole_of",
]

Texts = str | Sequence[str]
USUAL_STRENGTH = 0.8


def texts_of(given: Texts) -> list[str]:
    """One text, or several, as a list."""
    several: Any = [given] if isinstance(given, str) else given
    texts = list(several) if isinstance(several, Iterable) else []
    if not texts or not all(isinstance(each, str) for each in texts):
        raise wg.ArgumentError(f"a prompt is a text, or several of them, not {given!r}")
    return texts


def negatives_of(given: Texts | None, count: int, guidance: float) -> list[str]:
    """What each of so many pictures should not be; nothing where guidance, at most 1, does not look at it."""
    if guidance <= 1:
        if given is not None:
            raise wg.ArgumentError(f"negative= counts with guidance above 1, and it is {guidance:g}")
        return []
    others = texts_of("" if given is None else given)
    others = others * count if len(others) == 1 else others
    if len(others) != count:
        raise wg.ArgumentError(f"there are {count} prompts and {len(others)} negative ones")
    return others


def strength_of(given: float | None, picture: Any) -> float:
    """How much of a picture is made anew, from 0 to 1."""
    if given is None:
        return USUAL_STRENGTH
    if picture is None:
        raise wg.ArgumentError("strength= says how much of a picture is made anew: give picture= too")
    return number_of(given, "strength", 0, 1)


def number_of(given: Any, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number, which is asked for by this name."""
    is_number = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not is_number or not math.isfinite(given) or not low <= given <= high:
        within = "" if low == -math.inf else f" from {low:g} to {high:g}"
        raise wg.ArgumentError(f"{name} is a number{within}, not {given!r}")
    return float(given)


def whole_of(given: Any, name: str) -> int:
    """A whole number above 0, which is asked for by this name."""
    try:
        found = operator.index(given)
    except TypeError:
        found = 0
    if isinstance(given, bool) or found < 1:
        raise wg.ArgumentError(f"{name} is a whole number above 0, not {given!r}")
    return found


def size_of(given: Any, usual: tuple[int, int]) -> tuple[int, int]:
    """A picture's height and width, the usual ones where none are given."""
    if given is None:
        return usual
    try:
        height, width = given
    except (TypeError, ValueError):
        raise wg.ArgumentError(f"size is (height, width), not {given!r}") from None
    return whole_of(height, "a picture's height"), whole_of(width, "a picture's width")


def noise_of(given: wg.Tensor | None, shape: tuple[int, ...], generator: Any, device: Any) -> wg.Tensor:
    """The noise that is given, which must have this shape, or else that of a generator."""
    check_noise(given, shape)
    found: wg.Tensor = generator.normal(shape, device=device) if given is None else given
    return found


def check_noise(given: wg.Tensor | None, shape: tuple[int, ...]) -> None:
    """Raise unless noise that is given has this shape."""
    if given is not None and tuple(given.shape) != shape:
        raise wg.ShapeError(f"the noise has shape {tuple(given.shape)}, and {shape} is needed")
