"""Moves of the game that are known patterns: transposes in pairs, sorts, scatters, transforms."""

from __future__ import annotations

import numpy as np

from tests.properties.programs import Step, value_of_step
from tests.properties.transforms import offered
from tests.properties.writing.elements import binary, unary
from tests.properties.writing.folds import row_pattern, scan
from tests.properties.writing.writer import Refused, Writer
from webgrad import dtypes

__all__ = ["between_transposes", "complex_pairs", "in_order", "one_hot", "scatter", "transform"]


def between_transposes(w: Writer) -> None:
    """Axes in another order, some steps, and the axes back: NumPy's results lie as its inputs do."""
    x = w.pick()
    rank = w.values[x].array.ndim
    if rank < 2:
        raise Refused("nothing to transpose")
    order = tuple(int(each) for each in w.random.permutation(rank))
    turned = w.put("permute", x, attributes=(order,))
    shape = w.values[turned].array.shape
    for _ in range(int(w.random.integers(1, 4))):
        turned = w.one((unary, binary, binary, row_pattern, scan))(w, turned)
    if w.values[turned].array.shape == shape:
        back = tuple(int(each) for each in np.argsort(order))
        w.put("permute", turned, attributes=(back,))


def one_hot(w: Writer) -> None:
    """An iota compared with indices."""
    x = w.pick("iu", most=3)
    value = w.values[x]
    count = int(w.random.integers(1, 9))
    step = Step("iota", (), (count,), None, value.dtype)
    iota = w.append(step, value_of_step(step, []))
    hot = w.put("equal", w.put("reshape", x, attributes=((*value.array.shape, 1),)), iota)
    w.put("cast", hot, attributes=(w.one((dtypes.float32, dtypes.int32)),))


def in_order(w: Writer) -> None:
    """Rows in the order of their keys."""
    x = w.pick("iu")
    if not w.values[x].array.ndim:
        raise Refused("nothing to sort")
    keys = x if w.values[x].dtype is dtypes.uint32 else w.put("cast", x, attributes=(dtypes.uint32,))
    order = w.put("sort_order", keys)
    w.put("take_along", x, order, attributes=(w.values[x].array.ndim - 1,))


def scatter(w: Writer) -> None:
    """Rows written, added or maxed into others, some of them to the same place."""
    x = w.pick("iuf")
    value = w.values[x]
    if value.array.ndim != 2 or not len(value.array):
        raise Refused("no rows")
    rows, columns = value.array.shape
    count = int(w.random.integers(1, 12))
    index = w.data(w.random.integers(0, rows, count).astype(np.int32))
    w.put(
        w.one(("scatter_set", "scatter_add", "scatter_max")), x, index, w.leaf((count, columns), value.dtype)
    )


def complex_pairs(w: Writer) -> None:
    """Both parts of pairs, something of each by a formula over both, and pairs of that again."""
    x = w.pick("f", most=3)
    shape = w.values[x].array.shape
    if shape[-1:] != (2,):
        x, shape = w.leaf((*shape, 2), w.values[x].dtype), (*shape, 2)
    whole, rest = tuple((0, size, 1) for size in shape[:-1]), shape[:-1]
    cut = [w.put("slice", x, attributes=((*whole, (at, at + 1, 1)),)) for at in (0, 1)]
    first, second = (w.put("reshape", each, attributes=(rest,)) for each in cut)
    for _ in range(int(w.random.integers(1, 3))):
        crossed = w.put("multiply", first, second)
        apart = w.put("subtract", w.put("multiply", first, first), w.put("multiply", second, second))
        first, second = (w.put("tanh", each) for each in (apart, w.put("add", crossed, first)))
    ends = [w.put("reshape", each, attributes=((*rest, 1),)) for each in (first, second)]
    pairs = w.put("concat", *ends, attributes=(len(rest),))
    if w.chance(0.5):
        w.put(w.one(("add", "multiply")), pairs, w.beside(pairs))


def transform(w: Writer) -> None:
    """A Fourier transform of what are pairs, or of real numbers, where there is a length for it."""
    x = w.pick("f", most=3)
    if w.values[x].dtype is not dtypes.float32:
        raise Refused("half precision")
    shape = w.values[x].array.shape
    scale = w.one((1.0, 0.5))
    if shape and offered("rfft", shape[-1]) and w.chance(0.5):
        half = w.put("rfft", x, attributes=(scale,))
        if w.chance(0.3):
            w.put("irfft", half, attributes=(shape[-1], 1 / shape[-1]))
        return
    axes = [axis for axis in range(len(shape) - 1) if offered("fft", shape[axis])]
    if shape[-1:] != (2,) or not axes:  # numbers that are real so far
        ends = [
            w.put("reshape", each, attributes=((*shape, 1),)) for each in (x, w.leaf(shape, dtypes.float32))
        ]
        x = w.put("concat", *ends, attributes=(len(shape),))
        axes = [axis for axis, size in enumerate(shape) if offered("fft", size)]
    if axes:
        w.put("fft", x, attributes=(w.chance(0.5), scale, w.one(axes)))
