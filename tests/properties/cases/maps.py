"""Cases of maps: layouts together, sizes that broadcast, special values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from tests.properties.cases.maker import STANDS_FOR, THOROUGH, Cases, Maker
from tests.properties.drawing import draw_few
from tests.properties.helpers import (
    LAYOUTS,
    SHAPES,
    AnyDevice,
    Array,
    Case,
    Operand,
    crossed,
    flushed,
    place,
    slack_of,
    specials,
    wide,
)
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import make
from webgrad.graph.op import Op
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of

__all__ = ["maps"]


def operand_types(op: Op, dtype: DType) -> tuple[DType, ...]:
    """The operands' dtypes where an op is asked for one dtype."""
    return (dtypes.bool, dtype, dtype) if op.name == "where" else (dtype,) * op.arity


def _map_case(maker: Maker, label: str, operands: Sequence[Operand]) -> Case:
    """A GPU may read denormals as zeros, so there both results are right."""
    op = maker.op
    node = make(op, tuple(each.node for each in operands))
    inputs = [each.value for each in operands]
    ulps = op.tolerance if node.sig.dtype.kind == "f" else 0.0
    choices = [inputs] if maker.device.name == "cpu" else [inputs, [flushed(each) for each in inputs]]

    def wanted(values: list[Array]) -> Array:
        if not ulps:
            return value_of(node.sig, values)
        with np.errstate(all="ignore"):
            return np.asarray(op.numpy(*map(wide, values))).reshape(node.sig.shape)

    return Case(f"{op.name}, {label}", node, tuple(map(wanted, choices)), ulps, slack_of(op))


def maps(maker: Maker) -> Cases:
    """Operands of several layouts together, 0-d, empty, sizes that broadcast, and special values."""
    types = operand_types(maker.op, maker.dtype)
    if maker.follows:  # by the same operands for all such ops, which can then share kernels
        domain = maker.op.domain if maker.dtype.kind in "fc" else TABLE["add"].domain
        found = [*_shared_layouts(types, domain, maker.device), *_shared_specials(types, maker.device)]
    else:
        found = [*_in_layouts(maker, types), *_special_operands(maker, types)]
    for label, operands in found:
        yield _map_case(maker, label, operands)


Labelled = Iterator[tuple[str, list[Operand]]]


@cache
def _shared_layouts(
    types: tuple[DType, ...], domain: tuple[float, float], device: AnyDevice
) -> list[tuple[str, list[Operand]]]:
    maker = Maker(replace(_follower(types), domain=domain), types[-1], device)
    return list(_in_layouts(maker, types))


@cache
def _shared_specials(types: tuple[DType, ...], device: AnyDevice) -> list[tuple[str, list[Operand]]]:
    return list(_special_operands(Maker(_follower(types), types[-1], device), types))


def _follower(types: tuple[DType, ...]) -> Op:
    """Some map op of so many operands, for which another one stands."""
    stand = STANDS_FOR["map"]
    return next(
        op for op in TABLE.values() if (op.kind, op.arity) == ("map", len(types)) and op.name not in stand
    )


def _in_layouts(maker: Maker, types: Sequence[DType]) -> Labelled:
    names = list(LAYOUTS)
    for layout, shape in maker.spread(SHAPES):
        first = names.index(layout)
        chosen = [names[(first + at * (2 + at)) % len(names)] for at in range(len(types))]
        yield (
            f"{layout} {shape}",
            [
                maker.operand(each, shape, dtype, at)
                for at, (each, dtype) in enumerate(zip(chosen, types, strict=True))
            ],
        )
    for label, empty in {"0-d": (), "empty (0, 12)": (0, 12), "empty (3, 0)": (3, 0)}.items():
        yield label, [maker.operand("contiguous", empty, dtype) for dtype in types]
    if len(types) > 1 and maker.thorough:
        sizes = ((5, 1), (12,), (5, 12))
        rows = [maker.operand("contiguous", sizes[at], dtype) for at, dtype in enumerate(types)]
        yield "broadcast (5, 1) and (12,)", rows


def _special_operands(maker: Maker, types: Sequence[DType]) -> Labelled:
    values = crossed([specials(dtype) for dtype in types])
    yield "special values", [maker.plain(each) for each in values]
    if len(types) > 1 and (maker.thorough or maker.dtype in THOROUGH):
        yield from _beside_numbers(maker, values, types[-1])
    yield "few values (6, 6)", [maker.plain(draw_few(maker.generator, dtype, (6, 6))) for dtype in types]


def _beside_numbers(maker: Maker, values: list[Array], last: DType) -> Labelled:
    """Special values, the last of them a number: NumPy has ways of its own for one that never changes."""
    for number in specials(last):
        chosen = values[-1].view(f"V{number.itemsize}") == np.asarray(number).view(f"V{number.itemsize}")
        others = [maker.plain(each[chosen]) for each in values[:-1]]
        one = Operand(place(np.asarray(number), maker.device), values[-1][chosen])
        yield f"special values and {number}", [*others, one]
