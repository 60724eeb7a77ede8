"""What a program is written by: leaves, and steps whose values are known as they are put.

In: a seed. Out: `Writer`, to which the families add steps. A step that rounding changes by a good part of
what tests allow, or that decides by a hair, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.properties.drawing import draw_few, draw_shape
from tests.properties.helpers import Array, Shape, wide
from tests.properties.programs import Step, Value, allowed, value_of_step
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.ops.table import TABLE

__all__ = [
    "BINARY",
    "BITS",
    "COMPARISONS",
    "JUMPS",
    "LOGIC",
    "UNARY",
    "WHOLE",
    "Refused",
    "Writer",
    "broadcasts",
]


MOST_ELEMENTS = 100_000
# Rows that a workgroup shares, and folds that are split in parts.
LONG: tuple[Shape, ...] = (
    (40_003,),
    (65_536,),
    (3, 1_028),
    (6, 515),
    (1_024, 5),
    (2, 20_001),
    (33_000, 2),
    (4, 2, 260),
)
KINDS_OF_GRAPH: dict[DType, float] = {
    dtypes.float32: 0.6,
    dtypes.float16: 0.08,
    dtypes.bfloat16: 0.04,
    dtypes.int32: 0.1,
    dtypes.int8: 0.06,
    dtypes.uint8: 0.04,
    dtypes.int16: 0.04,
    dtypes.uint32: 0.04,
}


class Refused(Exception):
    """A step that would make the comparison meaningless, or too large."""


UNARY = (
    "tanh",
    "negative",
    "abs",
    "sigmoid",
    "sin",
    "cos",
    "gelu",
    "erf",
    "atan",
    "exp",
    "sqrt",
    "log1p",
    "exp2",
    "rsqrt",
)
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "atan2")
WHOLE = ("add", "subtract", "multiply", "maximum", "minimum", "floor_divide", "remainder")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
LOGIC = ("logical_and", "logical_or", "logical_xor")
COMPARISONS = ("less", "greater", "less_equal", "greater_equal", "equal", "not_equal")
JUMPS = ("floor", "ceil", "round", "trunc", "sign")  # of floats: not near a place where they jump
# Where NumPy rounds nothing, no device does.
ROUND_NOTHING = (
    *("leaf", "scalar", "iota", "reshape", "permute", "expand", "pad", "slice", "flip", "window", "concat"),
    *("take", "take_along", "where", "negative", "abs", "maximum", "minimum", "max", "min", "cast", *JUMPS),
    *("add", "subtract", "multiply", "scatter_set", "scatter_max", "cumulative_max", "cumulative_min"),
)
FEW = 1 / 3  # of leaves: of few different values


class Writer:
    """Writes one program, step by step."""

    def __init__(self, seed: int, long: float = 0.06) -> None:
        self.random = np.random.default_rng(seed)
        self.long = long  # share of leaves
        self.steps: list[Step] = []
        self.values: list[Value] = []
        self.exact: list[bool] = []  # whether every device gives a step's value to the last bit
        kinds = list(KINDS_OF_GRAPH)
        self.dtype = kinds[self.random.choice(len(kinds), p=list(KINDS_OF_GRAPH.values()))]

    # Putting steps

    def put(self, op: str, *inputs: int, attributes: tuple[Any, ...] = ()) -> int:
        """A step, if its value may be compared."""
        step = Step(op, inputs, attributes)
        given = [self.values[each] for each in inputs]
        if TABLE[op].kind == "map" and _together(given) > MOST_ELEMENTS:
            raise Refused(op)
        if not all(self.exact[each] for each in inputs):
            self._refuse_hairs(op, given, attributes)
        value = value_of_step(step, given)
        if value.array.size > MOST_ELEMENTS:
            raise Refused(op)
        self._refuse_rounding(value)
        return self.append(step, value)

    def append(self, step: Step, value: Value) -> int:
        """A step whose value is known to be good."""
        self.steps.append(step)
        self.values.append(value)
        exact = step.op in ROUND_NOTHING and all(self.exact[each] for each in step.inputs)
        self.exact.append(exact and bool(np.array_equal(wide(value.array), value.exact)))
        return len(self.steps) - 1

    def _refuse_rounding(self, value: Value) -> None:
        if value.dtype.kind != "f":
            return
        with np.errstate(all="ignore"):
            most = 1e4 if value.dtype.itemsize >= 4 else 200
            if not np.all(np.abs(value.exact) < most):
                raise Refused("range")
            if not np.all(np.abs(wide(value.array) - value.exact) <= 0.2 * allowed(value)):
                raise Refused("rounding")

    def _refuse_hairs(self, op: str, given: list[Value], attributes: tuple[Any, ...]) -> None:
        """Steps whose result jumps where two floats, or a float and an integer, all but meet."""
        if not given or given[0].dtype.kind != "f":
            return
        if op in COMPARISONS:
            gap = given[0].exact - given[1].exact
        elif op == "atan2":  # jumps by 2π where its first crosses 0, and depends on the signs of zeros
            gap = np.where(given[1].exact > 0.1, 1.0, given[0].exact)
        elif op in JUMPS or (op == "cast" and attributes[0].kind != "f"):
            gap = 2 * given[0].exact - np.rint(2 * given[0].exact)  # halves are where rounding jumps
        else:
            return
        if not np.all(np.abs(gap) > 4 * np.max([np.max(allowed(each), initial=0.0) for each in given])):
            raise Refused(op)

    def leaf(self, shape: Shape, dtype: DType | None = None) -> int:
        """New data."""
        dtype = dtype or self.dtype
        if dtype.kind != "b" and self.chance(FEW):
            array = draw_few(self.random, dtype, shape)
        elif dtype.kind == "f":
            array = self.random.uniform(-2, 2, shape).astype(dtype.numpy)
        elif dtype.kind == "b":
            array = self.random.integers(0, 2, shape).astype(np.bool_)
        else:
            array = self.random.integers(-9 if dtype.kind == "i" else 0, 20, shape).astype(dtype.numpy)
        return self.data(array)

    def data(self, array: Array) -> int:
        """An array as a leaf."""
        step = Step("leaf", (), (), np.asarray(array))
        return self.append(step, value_of_step(step, []))

    def number(self, dtype: DType, choices: Sequence[float] = (0.5, 1.0, 2.0, -1.0, 3.0, 0.0)) -> int:
        """A number known to the host."""
        value: Any = choices[int(self.random.integers(len(choices)))]
        value = (
            float(value) if dtype.kind == "f" else bool(value > 0) if dtype.kind == "b" else abs(int(value))
        )
        step = Step("scalar", (), (), value, dtype)
        return self.append(step, value_of_step(step, []))

    # Choosing

    def chance(self, share: float) -> bool:
        """Whether, so often."""
        return bool(self.random.random() < share)

    def one(self, choices: Sequence[Any]) -> Any:
        """One of some choices."""
        return choices[int(self.random.integers(len(choices)))]

    def size(self) -> int:
        """A length: mostly small, at times a multiple of 4, one or none."""
        if self.chance(0.02):
            return 0
        if self.chance(0.12):
            return int(self.one((16, 20, 32, 64, 17, 33)))
        return int(self.random.integers(1, 10))

    def shape(self) -> Shape:
        """Sizes of 0 to 4 dimensions; at times long ones."""
        if self.chance(self.long):
            return self.one(LONG)  # type: ignore[no-any-return]
        return draw_shape(self.random)

    def pick(self, kinds: str = "biuf", most: int = 4) -> int:
        """An earlier value, rather a late one, of some kinds of dtype."""
        found = [
            at
            for at, value in enumerate(self.values)
            if value.dtype.kind in kinds and value.array.ndim <= most and self.steps[at].op != "scalar"
        ]
        if not found:
            raise Refused("nothing to pick")
        return found[-1 - min(int(self.random.exponential(3.0)), len(found) - 1)]

    def beside(self, x: int) -> int:
        """An operand that broadcasts with x: a number, another value, or new data."""
        value = self.values[x]
        if self.chance(0.2):
            return self.number(value.dtype)
        shape = value.array.shape
        fitting = [
            at
            for at, other in enumerate(self.values)
            if other.dtype is value.dtype and at != x and broadcasts(other.array.shape, shape)
        ]
        if fitting and self.chance(0.7):
            return fitting[-1 - min(int(self.random.exponential(4.0)), len(fitting) - 1)]
        sizes = tuple(1 if self.chance(0.3) else size for size in shape)
        return self.leaf(
            sizes[int(self.random.integers(0, len(sizes) + 1)) if self.chance(0.3) else 0 :], value.dtype
        )

    def axes(self, rank: int) -> tuple[int, ...]:
        """Some axes, in order, at least one."""
        count = 1 if self.chance(0.7) else int(self.random.integers(1, rank + 1))
        return tuple(sorted(int(each) for each in self.random.choice(rank, count, replace=False)))


def _together(values: Sequence[Value]) -> int:
    """How many elements a map of some values has."""
    return math.prod(np.broadcast_shapes(*(each.array.shape for each in values)))


def broadcasts(a: Shape, b: Shape) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True
