"""Cases of folds, scans, products and attention, about what float64 gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.properties.cases.maker import EPSILON, Cases, Maker
from tests.properties.helpers import (
    LAYOUTS,
    SHAPES,
    Array,
    Case,
    Operand,
    Shape,
    wide,
)
from webgrad import dtypes
from webgrad.graph.node import make

__all__ = ["attentions", "contractions", "reduces", "scans"]


def reduces(maker: Maker) -> Cases:
    """Each axis and all of them, rows with NaN and infinities, and empty ones."""
    choices: list[tuple[Shape, tuple[int, ...]]] = [
        ((5, 12), (0,)),
        ((5, 12), (1,)),
        ((5, 12), (0, 1)),
        ((3, 7), (0,)),
        ((3, 7), (1,)),
        ((3, 7), (0, 1)),
    ]
    choices += [((2, 5, 4), axes) for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2))]
    choices += [((4, 4), (0,)), ((4, 4), (1,)), ((3, 3, 3), (0, 2)), ((3, 3, 3), (1,))]
    for layout, (shape, axes) in maker.spread(choices):
        yield _fold(maker, f"axes {axes}, {layout} {shape}", maker.operand(layout, shape), (axes,))
    for axes in ((0,), (1,), (0, 1)):
        yield _fold(maker, f"axes {axes}, contiguous", maker.operand("contiguous", (5, 12)), (axes,))
    for shape, axes in (((0, 12), (0,)), ((3, 0), (1,)), ((0, 4), (1,)), ((0, 3), (0, 1)), ((1, 1), (0, 1))):
        yield _fold(maker, f"axes {axes} of {shape}", maker.operand("contiguous", shape), (axes,))
    if maker.dtype.kind == "f":
        for axes in ((0,), (1,), (0, 1)):
            yield _fold(
                maker, f"axes {axes} with NaN and inf", maker.plain(_rows_with_specials(maker)), (axes,)
            )


def scans(maker: Maker) -> Cases:
    """Along each axis."""
    choices = [(shape, axis) for shape in (*SHAPES, (2, 5, 4)) for axis in range(len(shape))]
    for layout, (shape, axis) in maker.spread(choices):
        yield _fold(maker, f"axis {axis}, {layout} {shape}", maker.operand(layout, shape), (axis,))
    for shape in ((0, 4), (3, 0), (1, 1), (3, 70)):
        yield _fold(maker, f"axis 1 of {shape}", maker.operand("contiguous", shape), (1,))
    if maker.dtype.kind == "f":
        for axis in (0, 1):
            yield _fold(
                maker, f"axis {axis} with NaN and inf", maker.plain(_rows_with_specials(maker)), (axis,)
            )


def _rows_with_specials(maker: Maker) -> Array:
    value = maker.draw((5, 12))
    value[1, 5] = np.nan
    value[2, 7] = np.inf
    value[3, 0], value[3, 11] = -np.inf, np.inf
    value[4, ::2] = -np.inf
    return value


def _fold(maker: Maker, label: str, operand: Operand, attributes: tuple[Any, ...]) -> Case:
    """Integers, maxima and minima exactly; sums and products of floats by what their terms allow."""
    name = maker.op.name.removeprefix("cumulative_")
    if maker.dtype.kind != "f" or name not in ("sum", "prod"):
        return maker.case(label, [operand], attributes)
    x, (where,) = wide(operand.value), attributes
    functions: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "cumulative_sum": np.cumsum}
    function = functions.get(maker.op.name, np.cumprod)
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(x, axis=where))
        terms = np.asarray(function(np.abs(x), axis=where))
        slack = np.nan_to_num(terms * EPSILON * min(x.size, 64), nan=0.0, posinf=0.0, neginf=0.0)
    return maker.close(label, [operand], attributes, wanted, slack)


def contractions(maker: Maker) -> Cases:
    """Odd and even sizes, vectors, batches, batches that broadcast, transposed operands, empty sizes."""
    shapes: list[tuple[Shape, Shape]] = [
        ((5, 12), (12, 7)),
        ((3, 7), (7, 8)),
        ((1, 5), (5, 1)),
        ((16, 8), (8, 12)),
        ((1, 16), (16, 4)),
        ((17, 3), (3, 33)),
        ((2, 3, 5), (2, 5, 4)),
        ((3, 5, 6), (6, 4)),
        ((5, 6), (3, 6, 4)),
        ((2, 1, 3, 5), (4, 5, 2)),
        ((1, 4, 4), (3, 4, 3)),
        ((4, 4), (4, 4)),
        ((3, 3, 3), (3, 3, 3)),
    ]
    names = list(LAYOUTS)
    few = shapes if maker.device.name == "cpu" else shapes[maker.turn % 2 :: 2]
    for layout, (left, right) in maker.spread(few):
        yield _product(maker, layout, names[(names.index(layout) + len(right)) % 4], left, right)
    for left, right in (((5, 0), (0, 4)), ((0, 5), (5, 4)), ((2, 3, 4), (2, 4, 0))):
        yield _product(maker, "contiguous", "contiguous", left, right)


def _product(maker: Maker, layout: str, other: str, left: Shape, right: Shape) -> Case:
    a, b = maker.operand(layout, left), maker.operand(other, right, turn=1)
    label = f"{left} {layout} @ {right} {other}"
    if maker.dtype.kind != "f":
        return maker.case(label, [a, b])
    x, y = wide(a.value), wide(b.value)
    return maker.close(label, [a, b], (), x @ y, np.abs(x) @ np.abs(y) * EPSILON * max(left[-1], 1))


def attentions(maker: Maker) -> Cases:
    """Few and many keys, heads that share them, odd columns, masks, windows, lengths below the room."""
    choices: list[tuple[tuple[int, ...], tuple[Any, ...], int, bool]] = [
        ((2, 2, 1, 5, 9, 8, 12), (False, 0, False, 0), 9, False),
        ((1, 4, 2, 3, 20, 5, 7), (True, 0, True, 0), 13, False),
        ((1, 2, 2, 6, 6, 12, 4), (True, 3, False, 0), 6, True),
        ((2, 1, 1, 1, 33, 4, 8), (False, 0, False, 0), 0, True),
    ]
    names = list(LAYOUTS)
    turns = [(names[(maker.turn + at) % len(names)], each) for at, each in enumerate(choices)]
    few = turns if maker.dtype is dtypes.float32 else turns[:2]  # drivers compile slowly
    for layout, choice in maker.spread(choices) if maker.device.name == "cpu" else few:
        sizes, attributes, length, masked = choice
        batches, heads, shared, queries, keys, columns, values = sizes
        other = names[(names.index(layout) + 1) % len(names)]
        operands = [
            maker.operand(layout, (batches, heads, queries, columns)),
            maker.operand(other, (batches, shared, keys, columns), turn=1),
            maker.operand(layout, (batches, shared, keys, values), turn=2),
            maker.plain(np.array(0.3, np.float32)),
            maker.plain(np.array(length, np.int32)),
        ]
        if masked:
            operands.append(maker.operand("contiguous", (1, heads, queries, keys), dtypes.float32))
        node = make(maker.op, tuple(each.node for each in operands), attributes)
        wanted = np.asarray(maker.op.numpy(node.sig, *[wide(each.value) for each in operands]))
        slack = np.full(node.sig.shape, 16 * EPSILON * np.abs(wide(operands[2].value)).max())
        yield maker.close(f"{sizes} {attributes} {layout}", operands, attributes, wanted, slack)
