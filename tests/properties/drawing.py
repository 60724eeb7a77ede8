"""Shapes and values as random programs draw them: more than a third are those at which code goes wrong.

Shapes: squares and cubes (transposed, they have the same shape), empty ones and 0-d. Values: ties, exact
zeros of both signs, the bounds that clamps have, and integers' limits. Random sizes are rarely equal and
random numbers never: neither a transposed result nor a wrong choice between equals would be seen.
"""

from __future__ import annotations

import math

import numpy as np

from tests.properties.helpers import Array, Shape
from webgrad.dtypes import DType

__all__ = ["BOUNDS", "draw_few", "draw_shape", "has_equal_sizes"]

EQUAL, EMPTY, ZERO_D = 0.34, 0.04, 0.04  # shares of shapes
BOUNDS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
MOST = 5_000  # elements
SIZES = (2, 3, 4, 5, 6, 8, 16)


def draw_shape(random: np.random.Generator) -> Shape:
    """Sizes of 0 to 4 dimensions: mostly small, often equal, at times multiples of 4, one or none."""
    chance = random.random()
    if chance < EQUAL:
        return _equal_sizes(random)
    if chance < EQUAL + ZERO_D:
        return ()
    rank = int(random.integers(1, 5))
    while True:
        sizes = [_size(random) for _ in range(rank)]
        if chance < EQUAL + ZERO_D + EMPTY:
            sizes[int(random.integers(rank))] = 0
        if math.prod(sizes) <= MOST:
            return tuple(sizes)


def _equal_sizes(random: np.random.Generator) -> Shape:
    """A square, a cube, or one of them beside another side."""
    while True:
        size, rank = int(random.choice(SIZES)), int(random.integers(2, 5))
        sizes = [size] * rank
        if rank > 2 and random.random() < 0.4:
            sizes[int(random.choice((0, rank - 1)))] = _size(random)
        if math.prod(sizes) <= MOST:
            return tuple(sizes)


def _size(random: np.random.Generator) -> int:
    return (
        int(random.choice((16, 20, 32, 64, 17, 33)))
        if random.random() < 0.12
        else int(random.integers(1, 10))
    )


def has_equal_sizes(shape: Shape) -> bool:
    """Whether a transposed array may have the same shape."""
    sizes = [size for size in shape if size > 1]
    return len(set(sizes)) < len(sizes)


def draw_few(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Elements of few different values: floats from BOUNDS, integers about 0 and at their limits."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype.numpy)
        choices = np.array([0, 1, 2, 3, limits.max, limits.min, limits.max - 1], dtype.numpy)
    else:
        choices = np.array(BOUNDS).astype(dtype.numpy)
    few = choices[random.permutation(len(choices))[: int(random.integers(1, len(choices) + 1))]]
    return np.asarray(few[random.integers(0, len(few), shape)])
