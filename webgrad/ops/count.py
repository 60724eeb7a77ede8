"""What `x.size` is: a number of elements, which called gives sizes, as x.size() and x.size(0) in PyTorch.

In: a shape. Out: an int.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from .shapes import normalise_axis


class Count(int):
    """The number of elements of a shape; called, the shape or one of its sizes."""

    _shape: tuple[int, ...]

    def __new__(cls, shape: tuple[int, ...]) -> Count:
        made = int.__new__(cls, math.prod(shape))
        made._shape = shape
        return made

    def __call__(self, axis: int | None = None, *, dim: int | None = None) -> Any:
        if axis is not None and dim is not None:
            raise TypeError("size() was given axis and dim, which are the same: give one of them")
        wanted = dim if axis is None else axis
        return (
            self._shape if wanted is None else self._shape[normalise_axis("size", wanted, len(self._shape))]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


count_of = functools.lru_cache(1 << 12)(Count)
