"""Twenty samples for each row of the table that has a gradient: operands in their layouts, and attributes.

In: a row. Out: `Sample`s. `BUILDERS` has an entry for each kind of op, or one op; a row whose kind is not
there fails the tests. Two of three samples are of numbers that are apart, where every row is smooth: `SMOOTH`
says what a row needs. Every third one is of few values, with zeros, ties and equal operands.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from tests.gradients.corners import coarse
from tests.gradients.helpers import LAYOUTS, Array, Input, integer
from webgrad import dtypes
from webgrad.graph.op import Op

__all__ = ["SAMPLES", "Sample", "samples_of"]

Shape = tuple[int, ...]
SAMPLES = 20
NEAR = (-3.0, 3.0)
SHAPES: tuple[Shape, ...] = ((3, 7), (2, 4), (5,), (2, 3, 2), (1, 9))


@dataclass(frozen=True, slots=True)
class Sample:
    """Inputs of an op, its attributes, and the steps that differences may take."""

    label: str
    inputs: tuple[Input, ...]
    attributes: tuple[Any, ...]
    steps: tuple[Any, ...]
    is_coarse: bool  # of few values: where a row has a kink, its rule is in corners.py


def _far_from(x: Array) -> Array:
    """Which elements are not near an integer."""
    return np.asarray(np.abs(x - np.rint(x)) > 0.02)


def _clear_quotient(a: Array, b: Array) -> Array:
    return (np.abs(b) > 0.3) & _far_from(a / b)


# Which elements of the operands will do where a row is not smooth everywhere
SMOOTH: dict[str, Callable[..., Array]] = {
    "abs": lambda a: np.abs(a) > 0.01,
    "sign": lambda a: np.abs(a) > 0.01,
    "floor": _far_from,
    "ceil": _far_from,
    "trunc": _far_from,
    "round": lambda a: _far_from(a + 0.5),
    "tan": lambda a: np.abs(np.cos(a)) > 0.3,
    "divide": lambda a, b: np.abs(b) > 0.1,
    "atan2": lambda a, b: np.hypot(a, b) > 0.1,
    "floor_divide": _clear_quotient,
    "remainder": _clear_quotient,
    "maximum": lambda a, b: np.abs(a - b) > 0.005,
    "minimum": lambda a, b: np.abs(a - b) > 0.005,
    "clamp_min": lambda a, b: np.abs(a - b) > 0.005,
    "clamp_max": lambda a, b: np.abs(a - b) > 0.005,
}
# Which of few values will do: all but those without a value, or with an infinite slope
DEFINED: dict[str, Callable[..., Array]] = dict.fromkeys(
    ("divide", "floor_divide", "remainder"), lambda a, b: b != 0
)
# Where the values of products are of interest beyond the domain in which they are exact
WIDER = {"prod": (-2.0, 2.0), "cumulative_prod": (-2.0, 2.0)}


class Drawer:
    """Operands for one row; the same numbers whatever ran before."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.generator = np.random.default_rng(zlib.crc32(op.name.encode()))
        self.names = list(LAYOUTS)
        self.count = 0  # of samples so far

    @property
    def is_coarse(self) -> bool:
        """Whether the next sample is of few values: every third one."""
        return self.count % 3 == 1

    def domain(self, whole: bool) -> tuple[float, float]:
        """Where elements are drawn from: the row's domain, or its part around 0, but for the edges."""
        low, high = self.op.domain
        if not whole:
            low, high = max(low, NEAR[0]), min(high, NEAR[1])
        margin = 0.01 * (high - low)
        return low + margin, high - margin

    def values(self, shapes: Sequence[Shape], domain: tuple[float, float]) -> list[Array]:
        """Arrays in which no element is near another, in any order, or many are equal; exact in float32."""
        if self.is_coarse:
            low, high = WIDER.get(self.op.name, self.op.domain)
            return [coarse(self.generator, shape, low, high) for shape in shapes]
        count = sum(int(np.prod(shape)) for shape in shapes)
        places = self.generator.permutation(count) + self.generator.uniform(0.2, 0.8, count)
        low, high = domain
        flat = (low + places / max(count, 1) * (high - low)).astype(np.float32).astype(np.float64)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        return [each.reshape(shape) for each, shape in zip(np.split(flat, ends), shapes, strict=True)]

    def operands(self, names: Sequence[str], shapes: Sequence[Shape], whole: bool = False) -> list[Input]:
        """Operands of these shapes in layouts, where the row is smooth."""
        made = [LAYOUTS[name](shape) for name, shape in zip(names, shapes, strict=True)]
        domain, smooth = self.domain(whole), (DEFINED if self.is_coarse else SMOOTH).get(self.op.name)
        bases = self.values([shape for shape, _ in made], domain)
        views = [view for _, view in made]
        for _ in range(2000):
            inputs = [Input(base, view) for base, view in zip(bases, views, strict=True)]
            if smooth is None or smooth(*(each.view(np, each.base) for each in inputs)).all():
                return inputs
            drawn = self.values([base.shape for base in bases], domain)
            # Of one operand only what will not do is drawn again.
            bases = [np.where(smooth(bases[0]), bases[0], drawn[0])] if len(bases) == 1 else drawn
        raise AssertionError(f"{self.op.name}: no sample where it is smooth")

    def sample(self, label: str, inputs: Sequence[Input], attributes: tuple[Any, ...] = ()) -> Sample:
        """Steps are small beside the distance to the edges of the domain, beyond which there is no value."""
        low, high = WIDER.get(self.op.name, self.op.domain)
        steps = tuple(
            1e-3 * np.clip(np.minimum(each.base - low, high - each.base), 1e-6, 1.0) if each.is_float else 0
            for each in inputs
        )
        is_coarse, self.count = self.is_coarse, self.count + 1
        return Sample(f"{self.op.name}: {label}", tuple(inputs), attributes, steps, is_coarse)

    def layouts(self, turn: int, count: int) -> list[str]:
        """Layouts for several operands; in 20 turns all meet."""
        return [self.names[(turn * (1 + at) + turn // 5 * at) % len(self.names)] for at in range(count)]


Samples = Iterator[Sample]


# Kinds


def maps(drawer: Drawer) -> Samples:
    """Layouts in turn, near 0 and over the whole domain; sizes that broadcast, 0-d and empty ones."""
    arity = drawer.op.arity - (drawer.op.name == "where")

    def with_condition(inputs: list[Input], shape: Shape) -> list[Input]:
        if drawer.op.name != "where":
            return inputs
        return [integer(drawer.generator.integers(0, 2, shape).astype(np.bool_)), *inputs]

    for turn in range(SAMPLES - 4):
        shape = SHAPES[turn % len(SHAPES)]
        names = drawer.layouts(turn, arity)
        inputs = drawer.operands(names, [shape] * arity, whole=turn % 2 == 1)
        yield drawer.sample(f"{shape}, {', '.join(names)}", with_condition(inputs, shape))
    for shapes in (((), ()), ((0, 3), (0, 3)), ((3, 1), (4,)), ((1, 5), (2, 1, 1))):
        inputs = drawer.operands(["contiguous"] * arity, shapes[:arity])
        yield drawer.sample(f"{shapes[:arity]}", with_condition(inputs, shapes[0]))


def casts(drawer: Drawer) -> Samples:
    """To each of the types of floats."""
    targets = (dtypes.float16, dtypes.float32, dtypes.bfloat16)
    for turn in range(SAMPLES):
        shape = SHAPES[turn % len(SHAPES)]
        (name,) = drawer.layouts(turn, 1)
        yield drawer.sample(f"{shape}, {name}", drawer.operands([name], [shape]), (targets[turn % 3],))


MOVES: dict[str, tuple[tuple[Shape, tuple[Any, ...]], ...]] = {
    "reshape": (
        ((3, 4), ((12,),)),
        ((3, 4), ((2, 3, 2),)),
        ((5,), ((1, 5, 1),)),
        ((0, 4), ((2, 0),)),
        ((), ((1, 1),)),
    ),
    "permute": (
        ((3, 4), ((1, 0),)),
        ((2, 3, 4), ((2, 0, 1),)),
        ((2, 3, 4), ((1, 0, 2),)),
        ((0, 4), ((1, 0),)),
    ),
    "expand": (
        ((5, 1), ((5, 4),)),
        ((5, 1), ((2, 5, 3),)),
        ((1,), ((2, 3, 5),)),
        ((1, 0), ((3, 0),)),
        ((), ((2, 2),)),
    ),
    "pad": (
        ((3, 4), (((0, 0), (4, 1)),)),
        ((3, 4), (((1, 2), (0, 0)),)),
        ((5,), (((3, 0),),)),
        ((0, 3), (((2, 1), (0, 1)),)),
    ),
    "slice": (
        ((5, 7), (((0, 5, 1), (3, 7, 1)),)),
        ((5, 7), (((1, 5, 3), (1, 7, 2)),)),
        ((9,), (((2, 9, 4),),)),
        ((8,), (((1, 7, 3),),)),
        ((5, 4), (((2, 2, 1), (0, 4, 1)),)),
    ),
    "flip": (((3, 4), ((0,),)), ((3, 4), ((0, 1),)), ((2, 3, 2), ((1,),)), ((0, 4), ((0, 1),))),
    "window": (
        ((3, 9), (1, 4, 1, 1)),
        ((3, 8), (1, 4, 4, 1)),
        ((9, 2), (0, 4, 4, 1)),
        ((7, 3), (0, 3, 1, 2)),
        ((11,), (0, 3, 2, 2)),
        ((7,), (0, 2, 3, 1)),
        ((9,), (0, 1, 2, 1)),
        ((2, 5, 3), (1, 2, 1, 1)),
        ((12,), (0, 3, 3, 2)),
        ((0, 4), (1, 2, 1, 1)),
    ),
}


def moves(drawer: Drawer) -> Samples:
    """Several attributes over all layouts, empty ones among them."""
    for turn, (shape, attributes) in enumerate(islice(cycle(MOVES[drawer.op.name]), SAMPLES)):
        name = drawer.names[(turn + turn // len(MOVES[drawer.op.name])) % len(drawer.names)]
        more = [((), "contiguous")] if drawer.op.arity == 2 else []
        shapes, names = [shape, *(each for each, _ in more)], [name, *(each for _, each in more)]
        yield drawer.sample(f"{attributes} of {shape}, {name}", drawer.operands(names, shapes), attributes)


def concats(drawer: Drawer) -> Samples:
    """Two and three inputs along both axes, one of them empty."""
    for turn, (axis, lengths) in enumerate(
        islice(cycle([(0, (2, 3)), (1, (3, 1, 2)), (0, (2, 0, 1)), (1, (4, 2))]), SAMPLES)
    ):
        shapes = [(each, 3) if axis == 0 else (2, each) for each in lengths]
        names = drawer.layouts(turn, len(shapes))
        names = [name if 0 not in shape else "contiguous" for name, shape in zip(names, shapes, strict=True)]
        yield drawer.sample(f"{shapes}, {names}", drawer.operands(names, shapes), (axis,))


def takes(drawer: Drawer) -> Samples:
    """Indices that come again, of 0 to 2 dimensions, some outside: those are clamped."""
    places: tuple[Shape, ...] = ((4,), (2, 3), (), (0,))
    for turn in range(SAMPLES):
        shape, axis, wanted = ((3, 5), (4, 2, 3))[turn % 2], turn // 2 % 2, places[turn // 3 % 4]
        (name,) = drawer.layouts(turn, 1)
        index = drawer.generator.integers(-1, shape[axis] + 1, wanted).astype(np.int32)
        inputs = [*drawer.operands([name], [shape]), integer(index)]
        yield drawer.sample(f"axis {axis}, {index.shape} of {shape}, {name}", inputs, (axis,))


def takes_along(drawer: Drawer) -> Samples:
    """Indices of all sizes, of repeated ones, and sources that are repeated."""
    for turn in range(SAMPLES):
        axis = turn % 2
        source, wanted = (((3, 5), (3, 5)), ((3, 5), (1, 1)), ((1, 5), (4, 2)), ((3, 5), (3, 0)))[
            turn // 2 % 4
        ]
        if axis == 0:
            source, wanted = source[::-1], wanted[::-1]
        (name,) = drawer.layouts(turn, 1)
        index = drawer.generator.integers(-1, source[axis] + 1, wanted).astype(np.int32)
        inputs = [*drawer.operands([name], [source]), integer(index)]
        yield drawer.sample(f"axis {axis}, {wanted} of {source}, {name}", inputs, (axis,))


def scatters(drawer: Drawer) -> Samples:
    """Rows that meet, rows outside, none at all."""
    for turn in range(SAMPLES):
        columns, count = (4, 1, 3)[turn % 3], (4, 9, 0, 1)[turn // 2 % 4]
        names = drawer.layouts(turn, 2)
        if not count:
            names[1] = "contiguous"
        base, updates = drawer.operands(names, [(5, columns), (count, columns)])
        index = integer(drawer.generator.integers(-1, 6, count).astype(np.int32))
        yield drawer.sample(f"{count} rows into (5, {columns}), {names}", [base, index, updates])


def folds(drawer: Drawer) -> Samples:
    """Each axis and several; of empty ones too."""
    choices: list[tuple[Shape, tuple[int, ...]]] = [
        ((3, 5), (0,)),
        ((3, 5), (1,)),
        ((3, 5), (0, 1)),
        ((2, 3, 4), (0, 2)),
        ((2, 3, 4), (1,)),
        ((7,), (0,)),
        ((0, 3), (0,)),
        ((3, 0), (1,)),
        ((0, 3), (1,)),
    ]
    for turn, (shape, axes) in enumerate(islice(cycle(choices), SAMPLES)):
        name = (
            drawer.names[(turn + turn // len(choices)) % len(drawer.names)]
            if 0 not in shape
            else "contiguous"
        )
        yield drawer.sample(f"axes {axes} of {shape}, {name}", drawer.operands([name], [shape]), (axes,))


def scans(drawer: Drawer) -> Samples:
    """Along each axis."""
    choices: list[tuple[Shape, int]] = [
        ((3, 5), 0),
        ((3, 5), 1),
        ((2, 3, 4), 1),
        ((7,), 0),
        ((3, 0), 1),
        ((1, 4), 0),
    ]
    for turn, (shape, axis) in enumerate(islice(cycle(choices), SAMPLES)):
        name = (
            drawer.names[(turn + turn // len(choices)) % len(drawer.names)]
            if 0 not in shape
            else "contiguous"
        )
        yield drawer.sample(f"axis {axis} of {shape}, {name}", drawer.operands([name], [shape]), (axis,))


def products(drawer: Drawer) -> Samples:
    """Vectors, batches, batches that broadcast on either side, empty sizes."""
    choices: list[tuple[Shape, Shape]] = [
        ((3, 4), (4, 5)),
        ((1, 5), (5, 1)),
        ((2, 3, 4), (2, 4, 2)),
        ((3, 2, 4), (4, 3)),
        ((2, 4), (3, 4, 2)),
        ((2, 1, 2, 3), (2, 3, 2)),
        ((1, 2, 3), (3, 3, 2)),
        ((3, 0), (0, 2)),
        ((0, 3), (3, 2)),
        ((2, 3, 0), (0, 4)),
        ((2, 0, 3), (3, 2)),
    ]
    for turn, shapes in enumerate(islice(cycle(choices), SAMPLES)):
        empty = any(0 in shape for shape in shapes)
        names = ["contiguous"] * 2 if empty else drawer.layouts(turn, 2)
        yield drawer.sample(f"{shapes}, {names}", drawer.operands(names, shapes))


def attentions(drawer: Drawer) -> Samples:
    """Heads that share keys, masks, windows, lengths below the room and of nothing."""
    choices: list[tuple[tuple[int, ...], tuple[Any, ...], int, Shape | None]] = [
        ((1, 2, 1, 3, 4, 2, 3), (False, 0, False, 0), 4, None),
        ((1, 4, 2, 2, 5, 3, 2), (True, 0, True, 0), 4, None),
        ((1, 2, 2, 4, 4, 2, 2), (True, 2, False, 0), 4, (1, 2, 4, 4)),
        ((2, 1, 1, 2, 3, 2, 2), (False, 0, False, 0), 2, (1, 1, 1, 3)),
        ((1, 1, 1, 1, 3, 2, 2), (False, 0, False, 0), 0, None),
    ]
    for turn, (sizes, attributes, length, mask) in enumerate(islice(cycle(choices), SAMPLES)):
        batches, heads, shared, queries, keys, columns, values = sizes
        shapes: list[Shape] = [
            (batches, heads, queries, columns),
            (batches, shared, keys, columns),
            (batches, shared, keys, values),
        ]
        shapes += [] if mask is None else [mask]
        names = [*drawer.layouts(turn // 5 * 2 + turn, 3), "contiguous"][: len(shapes)]
        q, k, v, *masks = drawer.operands(names, shapes)
        scale, count = integer(np.array(0.3, np.float32)), integer(np.array(length, np.int32))
        inputs = [q, k, v, scale, count, *masks]
        yield drawer.sample(f"{sizes} {attributes}, {names}", inputs, attributes)


def transforms(drawer: Drawer) -> Samples:
    """Lengths of each parity, both directions, scales, and no rows."""
    name = drawer.op.name
    odd = [((3,), 5), ((1, 2), 3)] if name == "fft" else []  # GPUs have even lengths of real numbers only
    choices: list[tuple[Shape, int]] = [((2,), 4), ((), 6), *odd, ((0,), 4), ((2,), 2)]
    for turn, (rows, length) in enumerate(islice(cycle(choices), SAMPLES)):
        tails: dict[str, Shape] = {"fft": (length, 2), "rfft": (length,), "irfft": (length // 2 + 1, 2)}
        inverse, scale = turn % 2 == 1, (1.0, 0.25)[turn % 3 == 0]
        attributes: dict[str, tuple[Any, ...]] = {
            "fft": (inverse, scale, len(rows)),
            "rfft": (scale,),
            "irfft": (length, scale),
        }
        layout = drawer.names[turn // 3 % len(drawer.names)] if 0 not in rows else "contiguous"
        inputs = drawer.operands([layout], [(*rows, *tails[name])])
        yield drawer.sample(f"{rows} {length}, {layout}", inputs, attributes[name])


BUILDERS: dict[str, Callable[[Drawer], Samples]] = {
    "map": maps,
    "cast": casts,
    "move": moves,
    "concat": concats,
    "take": takes,
    "take_along": takes_along,
    "scatter": scatters,
    "reduce": folds,
    "scan": scans,
    "contract": products,
    "attend": attentions,
    "fft": transforms,
}


def samples_of(op: Op) -> list[Sample]:
    """The samples of one row."""
    build = BUILDERS.get(op.name) or BUILDERS[op.kind]
    return list(build(Drawer(op)))
