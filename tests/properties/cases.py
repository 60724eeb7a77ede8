"""Cases for each kind of op: nodes over every layout, beside what NumPy makes of the same arrays.

In: a row of the table, a dtype, a device. Out: `Case`s. `BUILDERS` has an entry for each kind of op, or one
op; a row whose kind is not there fails the tests. Drivers compile slowly, so on a GPU layouts, shapes and
attributes come in all combinations for `THOROUGH` dtypes of ops that stand for others (`STANDS_FOR`), each
layout once for the other dtypes of these, and two layouts in turn for each dtype of the other ops. Maps
among these other ops have the same operands, and come together: kernels then have many results.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any, TypeVar

import numpy as np

from tests.properties.drawing import draw_few
from tests.properties.helpers import (
    LAYOUTS,
    SHAPES,
    AnyDevice,
    Array,
    Case,
    Operand,
    Shape,
    crossed,
    draw,
    flushed,
    place,
    slack_of,
    specials,
    wide,
)
from tests.properties.ordered import ORDERED
from tests.properties.packed import PACKED
from tests.properties.transforms import TRANSFORMS
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import make, source
from webgrad.graph.op import Op
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of

__all__ = ["BUILDERS", "STANDS_FOR", "THOROUGH", "cases_of", "follows"]

THOROUGH = (dtypes.float32, dtypes.int8)  # a whole word, and a part of one
# Ops whose kernels have the same indices as all others of their kind; what differs is one expression.
STANDS_FOR = {"map": ("add", "negative", "where"), "reduce": ("sum", "max"), "scan": ("cumulative_sum",)}
EPSILON = float(np.finfo(np.float32).eps)
Cases = Iterator[Case]
T = TypeVar("T")


def follows(op: Op, device: AnyDevice) -> bool:
    """Whether another op stands for this one."""
    return device.name != "cpu" and op.name not in STANDS_FOR.get(op.kind, (op.name,))


class Maker:
    """Operands and cases for one op, dtype and device; the same numbers whatever ran before."""

    def __init__(self, op: Op, dtype: DType, device: AnyDevice) -> None:
        self.op = op
        self.dtype = dtype
        self.device = device
        self.turn = zlib.crc32(op.name.encode()) + (*dtypes.REAL, *dtypes.COMPLEX).index(dtype)
        self.generator = np.random.default_rng(zlib.crc32(f"{op.name} {dtype.name}".encode()))
        self.follows = follows(op, device)
        self.thorough = device.name == "cpu" or (dtype in THOROUGH and not self.follows)

    def draw(self, shape: Shape, dtype: DType | None = None) -> Array:
        """Elements from the op's domain."""
        return draw(self.generator, dtype or self.dtype, shape, self.op.domain)

    def operand(self, layout: str, shape: Shape, dtype: DType | None = None, turn: int = 0) -> Operand:
        """Random elements in a layout."""
        return LAYOUTS[layout](lambda sizes: self.draw(sizes, dtype), shape, self.device, turn)

    def plain(self, value: Array) -> Operand:
        """An array as it is."""
        return Operand(place(value, self.device), value)

    def spread(self, choices: Sequence[T]) -> Iterator[tuple[str, T]]:
        """Each layout with each choice, or in turn with one; every second layout where another op stands."""
        for at, layout in enumerate(LAYOUTS):
            if self.follows and (self.turn + at) % 2:
                continue
            own = choices if self.thorough else [choices[(self.turn + at) % len(choices)]]
            yield from ((layout, each) for each in own)

    def every_layout(self, shapes: Sequence[Shape] = SHAPES) -> Iterator[tuple[str, Operand]]:
        """An operand of each layout and shape, with its label."""
        for layout, shape in self.spread(shapes):
            yield f"{layout} {shape}", self.operand(layout, shape, turn=self.turn)

    def case(self, label: str, operands: Sequence[Operand], attributes: tuple[Any, ...] = ()) -> Case:
        """Exactly what the row's NumPy function gives."""
        node = make(self.op, tuple(each.node for each in operands), attributes)
        return Case(
            f"{self.op.name}, {label}", node, (value_of(node.sig, [each.value for each in operands]),)
        )

    def close(
        self,
        label: str,
        operands: Sequence[Operand],
        attributes: tuple[Any, ...],
        wanted: Array,
        slack: Array,
    ) -> Case:
        """About what was computed in float64; the slack is absolute."""
        node = make(self.op, tuple(each.node for each in operands), attributes)
        return Case(f"{self.op.name}, {label}", node, (wanted.reshape(node.sig.shape),), 1.0, slack)


# Maps


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


# Casts


def converted(x: Array, dtype: DType) -> Array:
    """Integers wrap; floats are cut towards zero and stop at an integer's limits; NaN becomes 0."""
    with np.errstate(all="ignore"):
        if x.dtype.kind not in "fV" or dtype.kind not in "iu":
            narrow = x.astype(np.float32) if dtype.itemsize == 2 and dtype.kind == "f" else x
            return narrow.astype(dtype.numpy)
        limits = np.iinfo(dtype.numpy)
        inside = np.clip(np.nan_to_num(wide(x)), -1e30, 1e30)  # then in Python's integers, which have no end
        numbers = [min(max(int(each), int(limits.min)), int(limits.max)) for each in inside.ravel()]
        return np.array(numbers, dtype.numpy).reshape(x.shape)


def casts(maker: Maker) -> Cases:
    """To every dtype: special and out-of-range values; every layout, to dtypes in turn."""
    edges = [
        0.0,
        0.5,
        0.99,
        1.5,
        127.5,
        128.0,
        255.5,
        256.0,
        32767.5,
        65535.5,
        2.0**31,
        2.0**32,
        2.0**63,
        2.0**64,
    ]
    values = specials(maker.dtype)
    if maker.dtype.kind == "f":
        with np.errstate(over="ignore"):
            both = np.array([*edges, *[-each for each in edges], 3e38, -3e38, 1e-45]).astype(
                maker.dtype.numpy
            )
        values = np.concatenate([values, both])

    def case(label: str, operand: Operand, target: DType) -> Case:
        node = make(maker.op, (operand.node,), (target,))
        wanted = [converted(operand.value, target)]
        if maker.device.name != "cpu":
            wanted.append(converted(flushed(operand.value), target))
        return Case(f"cast from {maker.dtype.name}, {label}", node, tuple(wanted))

    operands = {
        "special values": maker.plain(values),
        "0-d": maker.operand("contiguous", ()),
        "empty": maker.operand("contiguous", (0, 4)),
    }
    for label, operand in operands.items():  # the same to every dtype, in one kernel
        for target in dtypes.REAL:
            yield case(label, operand, target)
    for turn, (label, operand) in enumerate(maker.every_layout()):
        yield case(label, operand, dtypes.REAL[(maker.turn + turn) % len(dtypes.REAL)])


def bitcasts(maker: Maker) -> Cases:
    """Between dtypes of one width; a bool is no free choice of bits."""
    targets = [each for each in dtypes.REAL if each.itemsize == maker.dtype.itemsize and each.kind != "b"]
    if maker.dtype.kind == "b":
        return
    for label, operand in [*maker.every_layout(), ("empty", maker.operand("contiguous", (0, 4)))]:
        for target in targets:
            yield maker.case(f"to {target.name}, {label}", [operand], (target,))


def views(maker: Maker) -> Cases:
    """Complex numbers as pairs and back, of every layout."""
    part = dtypes.part_of(maker.dtype)
    for layout, shape in maker.spread([(*each, 2) for each in SHAPES] + [(2,), (0, 2)]):
        pairs = maker.operand(layout, shape, part, turn=maker.turn)
        if maker.dtype.kind == "c":
            numbers = np.ascontiguousarray(pairs.value).view(maker.dtype.numpy).reshape(shape[:-1])
            pairs = Operand(primitives.as_complex(pairs.node), numbers)
        yield maker.case(f"{layout} {shape}", [pairs])


def iotas(maker: Maker) -> Cases:
    """Lengths with and without a rest, and beyond small types."""
    for length in (0, 1, 4, 7, 300):
        node = source(maker.op, (length,), maker.dtype, maker.device)
        yield Case(f"iota of {length}", node, (np.arange(length).astype(maker.dtype.numpy),))


# Movement

MOVES: dict[str, dict[Shape, tuple[tuple[Any, ...], ...]]] = {
    "reshape": {
        (5, 12): (((60,),), ((12, 5),), ((3, 4, 5),), ((5, 1, 3, 1, 4),)),
        (3, 7): (((21,),), ((7, 3),), ((1, 21, 1),)),
        (4, 4): (((4, 2, 2),), ((2, 2, 2, 2),), ((4, 1, 4),)),
    },
    "permute": {
        (5, 12): (((1, 0),),),
        (3, 7): (((1, 0),),),
        (2, 3, 4): (((2, 0, 1),), ((1, 0, 2),), ((0, 2, 1),)),
        (4, 4): (((1, 0),),),
        (3, 3, 3): (((2, 0, 1),), ((1, 2, 0),), ((2, 1, 0),)),
    },
    "expand": {(5, 1): (((5, 4),), ((2, 5, 3),)), (1, 7): (((3, 7),),), (1,): (((2, 3, 5),),)},
    "pad": {
        (5, 12): ((((0, 0), (4, 4)),), (((1, 2), (0, 0)),), (((0, 3), (3, 2)),)),
        (3, 7): ((((1, 1), (1, 1)),), (((0, 0), (5, 0)),)),
        (4, 4): ((((0, 1), (1, 0)),), (((2, 2), (2, 2)),)),
    },
    "slice": {
        (5, 12): ((((0, 5, 1), (4, 12, 1)),), (((1, 5, 3), (1, 12, 2)),), (((2, 3, 1), (0, 12, 5)),)),
        (3, 7): ((((0, 3, 2), (6, 7, 1)),), (((1, 1, 1), (0, 7, 1)),)),
        (4, 4): ((((0, 3, 1), (1, 4, 1)),), (((0, 4, 2), (0, 4, 2)),)),
    },
    "flip": {(5, 12): (((0,),), ((1,),), ((0, 1),)), (3, 7): (((1,),), ((0, 1),)), (4, 4): (((0,),),)},
    "window": {
        (5, 12): ((1, 4, 1, 1), (1, 4, 4, 1), (0, 3, 1, 2), (1, 3, 2, 2)),
        (3, 7): ((1, 3, 1, 1), (0, 2, 3, 1), (1, 1, 2, 1)),
        (4, 4): ((0, 2, 1, 2), (1, 3, 1, 1)),
    },
}
EMPTY_MOVES: dict[str, tuple[Shape, tuple[Any, ...]]] = {
    "reshape": ((0, 4), ((2, 0),)),
    "permute": ((0, 4), ((1, 0),)),
    "expand": ((1, 0), ((3, 0),)),
    "pad": ((0, 3), (((2, 1), (0, 1)),)),
    "slice": ((5, 4), (((2, 2, 1), (0, 4, 1)),)),
    "flip": ((0, 4), ((0, 1),)),
    "window": ((0, 4), (1, 2, 1, 1)),
}


def moves(maker: Maker) -> Cases:
    """Several attributes, each over every layout, and empty ones."""
    filler = [maker.plain(maker.draw(()))] if maker.op.arity == 2 else []
    choices = [(shape, each) for shape, several in MOVES[maker.op.name].items() for each in several]
    for layout, (shape, attributes) in maker.spread(choices):
        operand = maker.operand(layout, shape)
        label = f"{attributes} of {layout} {shape}"
        yield maker.case(label, [operand, *filler], attributes)
        if maker.thorough and layout == "contiguous":
            again = maker.case(label, [operand, *filler], attributes)
            yield folded(again, again.wanted[0].ndim - 1)
    shape, attributes = EMPTY_MOVES[maker.op.name]
    yield maker.case(
        f"{attributes} of empty {shape}", [maker.operand("contiguous", shape), *filler], attributes
    )
    if maker.op.name in ("reshape", "expand"):
        yield maker.case("of 0-d", [maker.operand("contiguous", ())], ((1, 1),))


def concats(maker: Maker) -> Cases:
    """Two and three inputs, along both axes, of all layouts; one of them empty."""
    names = list(LAYOUTS)
    for layout, (axis, lengths) in maker.spread(list(product((0, 1), ((4, 8), (3, 1, 5), (4, 0, 2))))):
        shapes = [(each, 8) if axis == 0 else (3, each) for each in lengths]
        operands = [
            maker.operand(
                names[(names.index(layout) + at) % 4] if 0 not in shape else "contiguous", shape, turn=at
            )
            for at, shape in enumerate(shapes)
        ]
        yield maker.case(f"axis {axis}, {shapes}, {layout}", operands, (axis,))
    nothing = [maker.operand("contiguous", (0, 3)), maker.operand("contiguous", (0, 2))]
    yield maker.case("empty", nothing, (1,))
    for axis, shape in enumerate(((0, 4), (4, 0))):
        for end in (lambda case: case, partial(folded, axis=axis)):
            empty = [maker.plain(maker.draw(shape)) for _ in range(2)]
            yield end(maker.case(f"axis {axis}, nothing but empty", empty, (axis,)))


def folded(case: Case, axis: int) -> Case:
    """The largest along an axis of what a case gives. That is no case itself, or it would be stored: here a
    kernel computes it inside of a loop.
    """
    node = primitives.reduce(TABLE["max"], case.node, (axis,))
    wanted = tuple(value_of(node.sig, [each]) for each in case.wanted)
    return replace(case, label=f"the largest of {case.label}", node=node, wanted=wanted)


# Computed indices


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


# Folds


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


BUILDERS: dict[str, Callable[[Maker], Cases]] = {
    "map": maps,
    "cast": casts,
    "bitcast": bitcasts,
    "iota": iotas,
    "move": moves,
    "view": views,
    "concat": concats,
    "gather": gathers,
    "scatter": scatters,
    "sort": sorts,
    "reduce": reduces,
    "scan": scans,
    "contract": contractions,
    **ORDERED,
    **PACKED,
    **TRANSFORMS,
    "attend": attentions,
}


def cases_of(op: Op, dtype: DType, device: AnyDevice) -> Cases:
    """The cases of one op and dtype on a device."""
    build = BUILDERS.get(op.name) or BUILDERS[op.kind]
    for at, case in enumerate(build(Maker(op, dtype, device))):
        yield transposed(case) if at % 3 == 2 and case.wanted[0].ndim > 1 else case


def transposed(case: Case) -> Case:
    """Its result with the axes in reverse, as of a transpose behind the op."""
    axes = tuple(reversed(range(case.wanted[0].ndim)))
    slack = case.slack.transpose() if isinstance(case.slack, np.ndarray) and case.slack.ndim else case.slack
    return replace(
        case,
        label=f"{case.label}, transposed",
        node=primitives.permute(case.node, axes),
        wanted=tuple(each.transpose() for each in case.wanted),
        slack=slack,
    )
