"""Chains of movement: reshapes between transposes, flips, slices, pads, repeats, whose indices become one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.helpers import Array, Shape
from tests.properties.points.drawer import Cases, Points

__all__ = ["moves"]

MOST = 2_000  # elements
Move = Callable[[Any, Any], Any]  # of webgrad or NumPy, and an array


def moves(p: Points) -> Cases:
    """Several chains of one array; the numbers of its elements say where each went."""
    sizes = tuple(int(each) for each in p.random.choice((2, 3, 4, 6, 8, 12), int(p.random.integers(1, 4))))
    start = np.arange(math.prod(sizes), dtype=np.float32).reshape(sizes)
    tensor = p.tensor(start)
    for _ in range(3):
        array, found, names = start, tensor, list[str]()
        for _ in range(int(p.random.integers(2, 7))):
            name, move = p.one(MOVES)(p, array)
            moved = move(np, array)
            if moved.size <= MOST:
                array, found = moved, move(wg, found)
                names.append(name)
        yield p.case(f"{sizes}: {', '.join(names)}", found + 1, array + 1)


def _transposed(p: Points, x: Array) -> tuple[str, Move]:
    order = tuple(int(each) for each in p.random.permutation(x.ndim))
    return f"permute {order}", lambda of, x: of.permute_dims(x, order)


def _reshaped(p: Points, x: Array) -> tuple[str, Move]:
    shape = _factors(p, x.size)
    return f"reshape {shape}", lambda of, x: of.reshape(x, shape)


def _factors(p: Points, size: int) -> Shape:
    """Up to four sizes with so many elements."""
    found = list[int]()
    while size > 1 and len(found) < 3:
        divisors = [each for each in range(1, size + 1) if size % each == 0]
        found.append(int(p.random.choice(divisors)))
        size //= found[-1]
    return (*found, size)


def _flipped(p: Points, x: Array) -> tuple[str, Move]:
    axis = int(p.random.integers(x.ndim))
    return f"flip {axis}", lambda of, x: of.flip(x, axis=axis)


def _sliced(p: Points, x: Array) -> tuple[str, Move]:
    at, step = int(p.random.integers(x.ndim)), int(p.random.integers(1, 3))
    first = int(p.random.integers(0, (x.shape[at] + 1) // 2))
    part = (slice(None),) * at + (slice(first, None, step),)
    return f"slice {at} from {first} by {step}", lambda of, x: x[part]


def _padded(p: Points, x: Array) -> tuple[str, Move]:
    ends = [(0, 0)] * x.ndim
    ends[int(p.random.integers(x.ndim))] = (int(p.random.integers(3)), int(p.random.integers(3)))
    return f"pad {ends}", lambda of, x: of.pad(x, ends)


def _repeated(p: Points, x: Array) -> tuple[str, Move]:
    shape = (int(p.random.integers(1, 4)), *x.shape)
    return f"broadcast to {shape}", lambda of, x: of.broadcast_to(x, shape)


MOVES = (_transposed, _transposed, _reshaped, _reshaped, _reshaped, _flipped, _sliced, _padded, _repeated)
