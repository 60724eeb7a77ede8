"""Calls that move elements: joined, padded, sliced, taken and turned."""

from __future__ import annotations

from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.calls.drawer import ANY, Drawer, Family, Pair, Refused, alike, beside, renamed, same
from tests.properties.helpers import Array

__all__ = ["MOVEMENT"]


def _transpose(d: Drawer) -> Pair:
    order = d.order()
    return renamed("permute_dims", lambda x: np.transpose(x, order), order)


def _reshape(d: Drawer) -> Pair:
    shape = d.one([(-1,), (*d.shape, 1), (1, *d.shape), d.shape[::-1]])
    if shape == (-1,) and not np.prod(d.shape):
        raise Refused("empty")
    return same("reshape", shape)


def _join(d: Drawer) -> Pair:
    axis, turned = d.axis(), d.axis()
    return (
        lambda x: wg.concat([x, wg.flip(x, axis=turned)], axis=axis),
        lambda x: np.concatenate([x, np.flip(x, turned)], axis),
    )


def _stack(d: Drawer) -> Pair:
    axis = int(d.random.integers(len(d.shape) + 1))
    return lambda x: wg.stack([x, -x], axis=axis), lambda x: np.stack([x, -x], axis)


def _pad(d: Drawer) -> Pair:
    if not d.shape:
        raise Refused("0-d")
    widths = [tuple(int(each) for each in d.random.integers(0, 3, 2)) for _ in d.shape]
    number = d.number()
    return renamed("pad", lambda x: np.pad(x, widths, constant_values=number), widths, constant_values=number)


def _slice(d: Drawer) -> Pair:
    def part(size: int) -> slice:
        start, stop = sorted(int(each) for each in d.random.integers(0, size + 1, 2))
        return slice(start, stop, d.one((1, 1, 2))) if d.chance(0.7) else slice(None, None, -1)

    index = tuple(part(size) for size in d.shape)
    return lambda x: x[index], lambda x: x[index]


def _take(d: Drawer) -> Pair:
    axis = d.axis(1)
    index = d.index(d.shape[axis], (d.one((1, 3, d.shape[axis])),))
    return lambda x: wg.take(x, wg.asarray(index, device=x.device), axis=axis), lambda x: np.take(
        x, index, axis
    )


def _take_along(d: Drawer) -> Pair:
    axis = d.axis(1)
    index = d.index(d.shape[axis], d.shape)
    return (
        lambda x: wg.take_along_axis(x, wg.asarray(index, device=x.device), axis=axis),
        lambda x: np.take_along_axis(x, index, axis),
    )


def _triangle(d: Drawer) -> Pair:
    if len(d.shape) < 2:
        raise Refused("no matrix")
    return same(d.one(("tril", "triu")), int(d.random.integers(-2, 3)))


def _diagonal(d: Drawer) -> Pair:
    first, second, *_ = d.order()
    return renamed(
        "diagonal",
        lambda x: np.diagonal(x, 0, first, second),
        axis1=first,
        axis2=second,
    )


def _roll(d: Drawer) -> Pair:
    return same("roll", int(d.random.integers(-3, 4)), axis=d.axis())


def _index_add(d: Drawer) -> Pair:
    axis = d.axis(1) % len(d.shape)
    index = d.index(d.shape[axis], (int(d.random.integers(1, 5)),))
    shape = (*d.shape[:axis], len(index), *d.shape[axis + 1 :])
    updates = d.array(shape)

    def numpy(x: Array) -> Array:
        result = x.copy()
        rows: Any = (slice(None),) * axis + (index,)
        np.add.at(result, rows, alike(x, updates))
        return result

    return lambda x: wg.index_add(x, wg.asarray(index, device=x.device), beside(x, updates), axis=axis), numpy


# name → kinds of dtypes, how often, the call
MOVEMENT: Family = {
    "transpose": (ANY, 4, _transpose),
    "flip": (ANY, 1, lambda d: same("flip", axis=d.axis())),
    "roll": (ANY, 1, _roll),
    "swapaxes": (ANY, 1, lambda d: same("swapaxes", d.axis(), d.axis())),
    "reshape": (ANY, 2, _reshape),
    "concat": (ANY, 1, _join),
    "stack": (ANY, 1, _stack),
    "pad": (ANY, 1, _pad),
    "slice": (ANY, 2, _slice),
    "take": (ANY, 1, _take),
    "take_along_axis": (ANY, 1, _take_along),
    "triangle": (ANY, 1, _triangle),
    "diagonal": (ANY, 1, _diagonal),
    "index_add": (ANY, 1, _index_add),
    "repeat": (ANY, 0.5, lambda d: same("repeat", 2, axis=d.axis())),
    "tile": (ANY, 0.5, lambda d: same("tile", (2,) * len(d.shape))),
}
