"""Moves of the game along axes: folds, scans, products, and several folds of the same rows."""

from __future__ import annotations

import numpy as np

from tests.properties.helpers import Shape
from tests.properties.writing.writer import Refused, Writer

__all__ = ["matmul", "reduce", "row_pattern", "scan"]


def reduce(w: Writer) -> None:
    x = w.pick()
    value = w.values[x]
    if not value.array.ndim:
        raise Refused("0-d")
    axes = w.axes(value.array.ndim)
    names = ("max", "min") if value.dtype.kind == "b" else ("sum", "max", "min", "sum", "prod")
    result = w.put(w.one(names), x, attributes=(axes,))
    if w.chance(0.6):  # kept as sizes of 1, and used beside what was folded
        row = w.put("reshape", result, attributes=(_kept(value.array.shape, axes),))
        if value.dtype.kind == "f" and w.chance(0.7):
            w.put(w.one(("subtract", "multiply", "maximum")), x, row)


def _kept(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def scan(w: Writer, x: int | None = None) -> int:
    x = w.pick("iuf") if x is None else x
    rank = w.values[x].array.ndim
    if not rank:
        raise Refused("0-d")
    if w.values[x].dtype.kind == "b":
        raise Refused("bools")
    name = w.one(("cumulative_sum", "cumulative_max", "cumulative_min"))
    return w.put(name, x, attributes=(int(w.random.integers(rank)),))


def matmul(w: Writer) -> None:
    x = w.pick("iuf")
    value = w.values[x]
    if value.array.ndim < 2:
        raise Refused("a vector")
    columns = w.size()
    batch = value.array.shape[:-2] if w.chance(0.4) else ()
    y = w.leaf((*batch, value.array.shape[-1], columns), value.dtype)
    if w.chance(0.3):  # transposed in memory
        axes = (*range(len(batch)), len(batch) + 1, len(batch))
        y = w.put(
            "permute", w.leaf((*batch, columns, value.array.shape[-1]), value.dtype), attributes=(axes,)
        )
    result = w.put("matmul", x, y)
    if value.dtype.kind == "f" and w.chance(0.7):  # bias and activation
        biased = w.put("add", result, w.leaf((columns,), value.dtype))
        w.put(w.one(("tanh", "gelu", "sigmoid", "abs")), biased)


def row_pattern(w: Writer, x: int | None = None) -> int:
    """Softmax, log-sum-exp, layer norm, RMS norm: several folds of the same rows with maps between them."""
    x = w.pick("f") if x is None else x
    shape = w.values[x].array.shape
    if not shape or w.values[x].dtype.kind != "f":
        raise Refused("no rows")
    axes = (len(shape) - 1,) if w.chance(0.7) else w.axes(len(shape))
    if not all(shape[axis] for axis in axes):
        raise Refused("empty rows")
    kept = _kept(shape, axes)

    def fold(name: str, y: int) -> int:
        return w.put("reshape", w.put(name, y, attributes=(axes,)), attributes=(kept,))

    dtype = w.values[x].dtype
    count = w.number(dtype, (1.0 / np.prod([shape[axis] for axis in axes]),))
    if w.chance(0.5):
        powers = w.put("exp", w.put("subtract", x, fold("max", x)))
        total = fold("sum", powers)
        return w.put("divide", powers, total) if w.chance(0.7) else w.put("log", total)
    centred = w.put("subtract", x, w.put("multiply", fold("sum", x), count)) if w.chance(0.6) else x
    squares = w.put("multiply", fold("sum", w.put("multiply", centred, centred)), count)
    scale = w.put("rsqrt", w.put("add", squares, w.number(dtype, (0.5,))))
    return w.put("multiply", centred, scale)
