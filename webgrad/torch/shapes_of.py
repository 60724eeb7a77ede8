"""torch.Size, and what `x.size` is: the number of elements for webgrad, `x.size()` for torch's programs.

In: shapes. Out: tuples and integers that have torch's methods.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["Count", "Size", "axis_of"]


class Size(tuple[int, ...]):
    """A shape: a tuple with `numel()`."""

    __slots__ = ()

    def numel(self) -> int:
        """How many elements there are."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, tuple(other)))


def axis_of(dim: int, rank: int) -> int:
    """A dimension counted from 0; a tensor without dimensions has one here."""
    least = max(rank, 1)
    if not -least <= dim < least:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-least}, {least - 1}], but got {dim})"
        )
    return int(dim) % least


class Count(int):
    """The number of elements, which called gives the shape: x.size(), x.size(0)."""

    _shape: tuple[int, ...]

    def __new__(cls, shape: tuple[int, ...]) -> Count:
        made = int.__new__(cls, math.prod(shape))
        made._shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return Size(self._shape)
        if not self._shape:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return self._shape[axis_of(dim, len(self._shape))]
