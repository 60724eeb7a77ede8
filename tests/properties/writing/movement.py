"""Moves of the game that move elements: reshaped, taken, joined and rolled."""

from __future__ import annotations

import numpy as np

from tests.properties.helpers import Shape
from tests.properties.writing.writer import Refused, Writer

__all__ = ["concat", "move", "roll", "take"]


def move(w: Writer) -> None:
    x = w.pick()
    shape = w.values[x].array.shape
    rank = len(shape)
    name = w.one(("reshape", "permute", "expand", "pad", "slice", "flip", "window"))
    if name == "reshape":
        w.put(name, x, attributes=(_reshaped(w, shape),))
    elif name == "permute" and rank > 1:
        w.put(name, x, attributes=(tuple(int(each) for each in w.random.permutation(rank)),))
    elif name == "expand":
        sizes = tuple(int(w.random.integers(1, 6)) if size == 1 else size for size in shape)
        more = (int(w.random.integers(1, 4)),) if rank < 4 and w.chance(0.5) else ()
        w.put(name, x, attributes=((*more, *sizes),))
    elif name == "pad" and rank:
        widths = tuple((int(w.random.integers(0, 4)), int(w.random.integers(0, 4))) for _ in shape)
        w.put(name, x, w.number(w.values[x].dtype), attributes=(widths,))
    elif name == "slice":
        w.put(name, x, attributes=(tuple(_range(w, size) for size in shape),))
    elif name == "flip" and rank:
        w.put(name, x, attributes=(w.axes(rank),))
    elif name == "window" and 0 < rank < 5:
        axis, stride, dilation = (int(w.random.integers(*each)) for each in ((rank,), (1, 4), (1, 3)))
        size = int(w.random.integers(1, 5))
        if dilation * (size - 1) < shape[axis]:
            w.put(name, x, attributes=(axis, size, stride, dilation))


def _reshaped(w: Writer, shape: Shape) -> Shape:
    """The same elements otherwise: two axes joined, or one parted, or all in one."""
    if len(shape) > 1 and w.chance(0.5):
        at = int(w.random.integers(len(shape) - 1))
        return (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
    for axis, size in enumerate(shape):
        factors = [each for each in (2, 3, 4, 5) if size and size % each == 0 and size > each]
        if factors and len(shape) < 4:
            factor = w.one(factors)
            return (*shape[:axis], factor, size // factor, *shape[axis + 1 :])
    return (int(np.prod(shape)),) if w.chance(0.5) or len(shape) >= 4 else (1, *shape)


def _range(w: Writer, size: int) -> tuple[int, int, int]:
    if size == 0 or w.chance(0.3):
        return 0, size, 1
    start = int(w.random.integers(0, size))
    stop = int(w.random.integers(start + 1, size + 1))
    return start, stop, int(w.one((1, 2, 2, 3)))


def take(w: Writer) -> None:
    x = w.pick()
    shape = w.values[x].array.shape
    axis = int(w.random.integers(max(1, len(shape))))
    if not shape or not shape[axis]:
        raise Refused("nothing to take from")
    along = w.chance(0.4)
    places: Shape = tuple(int(each) for each in w.random.integers(1, 7, w.random.integers(0, 3)))
    if along:
        places = tuple(
            int(w.random.integers(1, 6)) if at == axis else w.one((1, size)) for at, size in enumerate(shape)
        )
    elif len(shape) + len(places) > 5:
        places = (3,)
    index = w.random.integers(-1, shape[axis] + 1, places).astype(w.one((np.int32, np.uint8, np.int16)))
    w.put("take_along" if along else "take", x, w.data(index), attributes=(axis,))


def concat(w: Writer) -> None:
    x = w.pick()
    value = w.values[x]
    if not value.array.ndim:
        raise Refused("0-d")
    axis = int(w.random.integers(value.array.ndim))
    others = [
        at
        for at, other in enumerate(w.values)
        if other.dtype is value.dtype and _alike(other.array.shape, value.array.shape, axis)
    ]
    pieces = [x, *[w.one(others) for _ in range(w.random.integers(1, 3))]]
    if w.chance(0.4):
        sizes = [
            int(w.random.integers(1, 5)) if at == axis else size for at, size in enumerate(value.array.shape)
        ]
        pieces.append(w.leaf(tuple(sizes), value.dtype))
    w.put("concat", *[pieces[at] for at in w.random.permutation(len(pieces))], attributes=(axis,))


def _alike(a: Shape, b: Shape, axis: int) -> bool:
    return len(a) == len(b) and all(x == y for at, (x, y) in enumerate(zip(a, b, strict=True)) if at != axis)


def roll(w: Writer) -> None:
    """h + roll(h, n), several times: values pulled at many indices."""
    x = w.pick("iuf")
    shape = w.values[x].array.shape
    if not shape or shape[-1] < 2:
        raise Refused("nothing to roll")
    for turn in range(int(w.random.integers(1, 4))):
        cut = (1 << turn) % shape[-1]
        whole = tuple((0, size, 1) for size in shape[:-1])
        parts = [
            w.put("slice", x, attributes=((*whole, (start, stop, 1)),))
            for start, stop in ((cut, shape[-1]), (0, cut))
            if start < stop
        ]
        rolled = w.put("concat", *parts, attributes=(len(shape) - 1,)) if len(parts) > 1 else parts[0]
        x = w.put("add", x, rolled)
        if w.values[x].dtype.kind == "f":
            x = w.put("tanh", x)
