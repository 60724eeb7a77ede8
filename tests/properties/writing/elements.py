"""Moves of the game that compute each element: maps, comparisons, choices and casts."""

from __future__ import annotations

import numpy as np

from tests.properties.writing.writer import (
    BINARY,
    BITS,
    COMPARISONS,
    JUMPS,
    LOGIC,
    UNARY,
    WHOLE,
    Refused,
    Writer,
    broadcasts,
)
from webgrad import dtypes

__all__ = ["binary", "cast", "compare", "unary", "where"]


def unary(w: Writer, x: int | None = None) -> int:
    x = w.pick() if x is None else x
    kind = w.values[x].dtype.kind
    if kind == "f":
        return w.put(w.one(UNARY if w.chance(0.85) else JUMPS), x)
    if kind == "b":
        return w.put("logical_not", x)
    return w.put(w.one(("negative", "abs", "bitwise_invert", "sign")), x)


def binary(w: Writer, x: int | None = None) -> int:
    x = w.pick() if x is None else x
    kind = w.values[x].dtype.kind
    y = w.beside(x)
    pair = (x, y) if w.chance(0.7) or w.steps[x].op == "scalar" else (y, x)
    return w.put(w.one(BINARY if kind == "f" else LOGIC if kind == "b" else WHOLE + BITS), *pair)


def compare(w: Writer) -> None:
    x = w.pick()
    w.put(w.one(COMPARISONS), x, w.beside(x))


def where(w: Writer) -> None:
    condition = w.pick("b")
    shape = w.values[condition].array.shape
    fitting = [at for at, value in enumerate(w.values) if broadcasts(value.array.shape, shape)]
    x = w.one(fitting)
    y = w.beside(x)
    if not broadcasts(shape, np.broadcast_shapes(w.values[x].array.shape, w.values[y].array.shape)):
        raise Refused("three shapes")
    w.put("where", condition, x, y)


def cast(w: Writer) -> None:
    target = w.one(
        (dtypes.float32, dtypes.float16, dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.bool, dtypes.int16)
    )
    w.put("cast", w.pick(), attributes=(target,))
