"""What pipelines are asked for, checked: prompts, what pictures should not be, noise to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad as wg

__all__ = ["negatives_of", "noise_of", "texts_of"]

Texts = str | Sequence[str]


def texts_of(given: Texts) -> list[str]:
    """One text, or several, as a list."""
    return [given] if isinstance(given, str) else list(given)


def negatives_of(given: Texts | None, count: int) -> list[str]:
    """What each of so many pictures should not be."""
    others = texts_of(given or "")
    others = others * count if len(others) == 1 else others
    if len(others) != count:
        raise wg.ArgumentError(f"there are {count} prompts and {len(others)} negative ones")
    return others


def noise_of(given: wg.Tensor | None, shape: tuple[int, ...], generator: Any, device: Any) -> wg.Tensor:
    """The noise that is given, which must have this shape, or else that of a generator."""
    if given is None:
        found: wg.Tensor = generator.normal(shape, device=device)
        return found
    if tuple(given.shape) != shape:
        raise wg.ShapeError(f"the noise has shape {tuple(given.shape)}, and {shape} is needed")
    return given
