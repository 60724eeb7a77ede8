"""Cases of gathers, scatters and sorts, whose places are computed."""

from __future__ import annotations

from itertools import product

import numpy as np

from tests.properties.cases.maker import EPSILON, Cases, Maker
from tests.properties.helpers import (
    SHAPES,
    Case,
    Operand,
    Shape,
    wide,
)
from webgrad import dtypes
from webgrad.dtypes import DType

__all__ = ["gathers", "scatters", "sorts"]


def _indices(maker: Maker, shape: Shape, size: int, dtype: DType = dtypes.int32) -> Operand:
    """Places, some of them outside: those are clamped."""
    low = -2 if dtype.kind == "i" else 0
    return maker.plain(maker.generator.integers(low, size + 2, shape).astype(dtype.numpy))


def gathers(maker: Maker) -> Cases:
    """Indices of every integer type and of 0 to 2 dimensions, inside and outside; sources of every layout."""
    along = maker.op.name == "take_along"
    places: tuple[Shape, ...] = ((4,), (2, 3), (), (0,))
    for layout, (shape, axis, at) in maker.spread(list(product(SHAPES, (0, 1), range(3)))):
        operand = maker.operand(layout, shape)
        wanted = places[at]
        if along:
            others = (1, 1) if at == 1 else shape
            wanted = tuple((4, 1, 0)[at] if each == axis else others[each] for each in (0, 1))
        index = _indices(maker, wanted, shape[axis])
        yield maker.case(f"axis {axis}, index {wanted}, {layout} {shape}", [operand, index], (axis,))
    for dtype in dtypes.REAL if maker.thorough else ():
        if dtype.kind in "iu":
            index = _indices(maker, (3, 7) if along else (7,), 3, dtype)
            yield maker.case(f"index of {dtype.name}", [maker.operand("contiguous", (3, 7)), index], (0,))


def scatters(maker: Maker) -> Cases:
    """Rows set, added or maxed: rows that meet, rows outside, none at all."""
    for layout, (columns, count) in maker.spread(list(product((12, 7, 1), (4, 9, 0)))):
        base = maker.operand(layout, (6, columns))
        updates = maker.operand(layout if count else "contiguous", (count, columns), turn=1)
        index = _indices(maker, (count,), 6)
        label = f"{count} rows into (6, {columns}), {layout}"
        if maker.op.name == "scatter_add" and maker.dtype.kind == "f":
            yield _added(maker, label, base, index, updates)
        else:
            yield maker.case(label, [base, index, updates])
    index = _indices(maker, (3,), 6, dtypes.uint32)
    yield maker.case(
        "no columns", [maker.operand("contiguous", (6, 0)), index, maker.operand("contiguous", (3, 0))]
    )


def _added(maker: Maker, label: str, base: Operand, index: Operand, updates: Operand) -> Case:
    """Floats are added in any order."""
    rows = np.clip(index.value, 0, len(base.value) - 1)
    wanted, slack = wide(base.value).copy(), np.abs(wide(base.value))
    np.add.at(wanted, rows, wide(updates.value))
    np.add.at(slack, rows, np.abs(wide(updates.value)))
    return maker.close(label, [base, index, updates], (), wanted, slack * EPSILON * len(rows))


def sorts(maker: Maker) -> Cases:
    """Rows of any keys and of few different ones, for which the order must stay."""
    for shape in ((5, 12), (3, 7), (9,), (2, 300), (1, 1), (3, 0)):
        keys = maker.draw(shape)
        yield maker.case(f"any {shape}", [maker.plain(keys)])
        yield maker.case(f"few {shape}", [maker.plain(keys % 3)])
    for label, operand in maker.every_layout():
        yield maker.case(label, [operand])
