"""Several results at once, which share kernels and launches: maps, folds, and updates of one structure.

Elements are small integers, so that every order of adding gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.helpers import LEAST, Array
from tests.properties.points.drawer import Cases, Points

__all__ = ["shared"]

# Of a square x, a square y and a result of both: what reads the result where it is, and elsewhere.
READERS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda x, y, first: first + y,
    lambda x, y, first: first.T - x,
    lambda x, y, first: first + first.T,
    lambda x, y, first: first[::-1] * y,
    lambda x, y, first: first[:1] + x,
    lambda x, y, first: first * x.sum(0),
    lambda x, y, first: first.max(1) - y,
)
# Folds of a square along one axis.
FOLDS: tuple[Callable[[Any, int], Any], ...] = (
    lambda x, axis: x.sum(axis),
    lambda x, axis: x.max(axis),
    lambda x, axis: x.min(axis),
    lambda x, axis: (x * x).sum(axis),
)
KINDS = (wg.float32, wg.float32, wg.int32, wg.uint32, wg.float16, wg.int16, wg.uint8)


def shared(p: Points) -> Cases:
    """Results of the same values, of each other, and of values of one structure."""
    for part in {p.one(PARTS), p.one(PARTS)}:
        yield from part(p)


def _readers(p: Points) -> Cases:
    """Maps of two squares, and of such maps."""
    arrays, tensors = _squares(p, p.one(KINDS[:3]))
    for _ in range(int(p.random.integers(1, 4))):
        which, (at, by) = int(p.random.integers(len(READERS))), p.random.integers(len(arrays), size=2)
        first, result = arrays[at] * 2 + arrays[by], tensors[at] * 2 + tensors[by]
        if p.chance(0.7):
            yield p.case("a map of two", result, first, slack=LEAST)
        arrays.append(READERS[which](arrays[0], arrays[1], first))
        tensors.append(READERS[which](tensors[0], tensors[1], result))
        yield p.case(f"reader {which}", tensors[-1], arrays[-1], slack=LEAST)


def _squares(p: Points, dtype: wg.DType) -> tuple[list[Array], list[Any]]:
    size = p.one((2, 3, 4, 8, 16, 33))
    arrays = [p.random.integers(0, 4, (size, size)).astype(dtype.numpy) for _ in range(2)]
    return arrays, [p.tensor(each) for each in arrays]


def _folds(p: Points) -> Cases:
    """Folds of a square along either axis, by themselves and subtracted from it."""
    (array, _), (tensor, _) = _squares(p, wg.float32)
    for _ in range(int(p.random.integers(2, 5))):
        which, axis = int(p.random.integers(len(FOLDS))), int(p.random.integers(2))
        fold = FOLDS[which]
        label = f"fold {which} along {axis}"
        wanted, found = fold(array, axis), fold(tensor, axis)
        if p.chance(0.3):
            wanted = array - np.expand_dims(wanted, axis)
            found = tensor - wg.expand_dims(found, axis=axis)
        yield p.case(label, found, wanted, slack=LEAST)
    total, sums = tensor.sum(1), array.sum(1)
    if p.chance(0.5):  # of halves it is rounded behind the fold
        total, sums = tensor.astype(wg.float16).sum(1), sums.astype(np.float16)
    if p.chance(0.5):  # by itself and, for something dear, broadcast
        rows = p.one((2, 5, 8))
        spread = wg.exp(wg.broadcast_to(total, (rows, len(array))))
        with np.errstate(over="ignore"):
            widened = np.exp(np.broadcast_to(sums, (rows, len(array))))
        for factor in {1, p.one((1, 5))}:
            other = total if factor == 1 else total * factor
            yield p.case("a fold by itself and broadcast", spread < other, widened < sums * factor)


def _updates(p: Points) -> Cases:
    """The same steps on values of some lengths and dtypes; of some the first step is wanted too."""
    for _ in range(int(p.random.integers(2, 6))):
        dtype, length = p.one(KINDS), p.one((1, 3, 4, 8, 70))
        array = p.random.integers(0, 4, length).astype(dtype.numpy)
        first, wanted = p.tensor(array) + 1, array + dtype.numpy.type(1)
        label = f"of {dtype.name} ({length},)"
        if p.chance(0.5):
            yield p.case(f"first step {label}", first, wanted)
        yield p.case(f"second step {label}", first * first + first, wanted * wanted + wanted)


PARTS = (_readers, _folds, _updates)
