"""Writing random programs: from a seed, a `Program` whose results mean something when they are compared.

Each step is computed by NumPy while the program is written, in its own dtype and in float64. A step that
rounding changes by a good part of what tests allow, or that decides by a hair, is not taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.properties.drawing import draw_few, draw_shape
from tests.properties.helpers import Array, Shape, wide
from tests.properties.programs import Program, Step, Value, allowed, needed, value_of_step
from tests.properties.transforms import offered
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.ops.table import TABLE

__all__ = ["write_program"]

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
            if other.dtype is value.dtype and at != x and _broadcasts(other.array.shape, shape)
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


def _broadcasts(a: Shape, b: Shape) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


# Moves of the game: each adds a step, or a known pattern of steps.


def _unary(w: Writer, x: int | None = None) -> int:
    x = w.pick() if x is None else x
    kind = w.values[x].dtype.kind
    if kind == "f":
        return w.put(w.one(UNARY if w.chance(0.85) else JUMPS), x)
    if kind == "b":
        return w.put("logical_not", x)
    return w.put(w.one(("negative", "abs", "bitwise_invert", "sign")), x)


def _binary(w: Writer, x: int | None = None) -> int:
    x = w.pick() if x is None else x
    kind = w.values[x].dtype.kind
    y = w.beside(x)
    pair = (x, y) if w.chance(0.7) or w.steps[x].op == "scalar" else (y, x)
    return w.put(w.one(BINARY if kind == "f" else LOGIC if kind == "b" else WHOLE + BITS), *pair)


def _compare(w: Writer) -> None:
    x = w.pick()
    w.put(w.one(COMPARISONS), x, w.beside(x))


def _where(w: Writer) -> None:
    condition = w.pick("b")
    shape = w.values[condition].array.shape
    fitting = [at for at, value in enumerate(w.values) if _broadcasts(value.array.shape, shape)]
    x = w.one(fitting)
    y = w.beside(x)
    if not _broadcasts(shape, np.broadcast_shapes(w.values[x].array.shape, w.values[y].array.shape)):
        raise Refused("three shapes")
    w.put("where", condition, x, y)


def _cast(w: Writer) -> None:
    target = w.one(
        (dtypes.float32, dtypes.float16, dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.bool, dtypes.int16)
    )
    w.put("cast", w.pick(), attributes=(target,))


def _reduce(w: Writer) -> None:
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


def _move(w: Writer) -> None:
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


def _take(w: Writer) -> None:
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


def _concat(w: Writer) -> None:
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


def _scan(w: Writer, x: int | None = None) -> int:
    x = w.pick("iuf") if x is None else x
    rank = w.values[x].array.ndim
    if not rank:
        raise Refused("0-d")
    if w.values[x].dtype.kind == "b":
        raise Refused("bools")
    name = w.one(("cumulative_sum", "cumulative_max", "cumulative_min"))
    return w.put(name, x, attributes=(int(w.random.integers(rank)),))


def _matmul(w: Writer) -> None:
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


def _row_pattern(w: Writer, x: int | None = None) -> int:
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


def _between_transposes(w: Writer) -> None:
    """Axes in another order, some steps, and the axes back: NumPy's results lie as its inputs do."""
    x = w.pick()
    rank = w.values[x].array.ndim
    if rank < 2:
        raise Refused("nothing to transpose")
    order = tuple(int(each) for each in w.random.permutation(rank))
    turned = w.put("permute", x, attributes=(order,))
    shape = w.values[turned].array.shape
    for _ in range(int(w.random.integers(1, 4))):
        turned = w.one((_unary, _binary, _binary, _row_pattern, _scan))(w, turned)
    if w.values[turned].array.shape == shape:
        back = tuple(int(each) for each in np.argsort(order))
        w.put("permute", turned, attributes=(back,))


def _roll(w: Writer) -> None:
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


def _one_hot(w: Writer) -> None:
    """An iota compared with indices."""
    x = w.pick("iu", most=3)
    value = w.values[x]
    count = int(w.random.integers(1, 9))
    step = Step("iota", (), (count,), None, value.dtype)
    iota = w.append(step, value_of_step(step, []))
    hot = w.put("equal", w.put("reshape", x, attributes=((*value.array.shape, 1),)), iota)
    w.put("cast", hot, attributes=(w.one((dtypes.float32, dtypes.int32)),))


def _sorted(w: Writer) -> None:
    """Rows in the order of their keys."""
    x = w.pick("iu")
    if not w.values[x].array.ndim:
        raise Refused("nothing to sort")
    keys = x if w.values[x].dtype is dtypes.uint32 else w.put("cast", x, attributes=(dtypes.uint32,))
    order = w.put("sort_order", keys)
    w.put("take_along", x, order, attributes=(w.values[x].array.ndim - 1,))


def _scatter(w: Writer) -> None:
    """Rows written, added or maxed into others, some of them to the same place."""
    x = w.pick("iuf")
    value = w.values[x]
    if value.array.ndim != 2 or not len(value.array):
        raise Refused("no rows")
    rows, columns = value.array.shape
    count = int(w.random.integers(1, 12))
    index = w.data(w.random.integers(0, rows, count).astype(np.int32))
    w.put(
        w.one(("scatter_set", "scatter_add", "scatter_max")), x, index, w.leaf((count, columns), value.dtype)
    )


def _complex(w: Writer) -> None:
    """Both parts of pairs, something of each by a formula over both, and pairs of that again."""
    x = w.pick("f", most=3)
    shape = w.values[x].array.shape
    if shape[-1:] != (2,):
        x, shape = w.leaf((*shape, 2), w.values[x].dtype), (*shape, 2)
    whole, rest = tuple((0, size, 1) for size in shape[:-1]), shape[:-1]
    cut = [w.put("slice", x, attributes=((*whole, (at, at + 1, 1)),)) for at in (0, 1)]
    first, second = (w.put("reshape", each, attributes=(rest,)) for each in cut)
    for _ in range(int(w.random.integers(1, 3))):
        crossed = w.put("multiply", first, second)
        apart = w.put("subtract", w.put("multiply", first, first), w.put("multiply", second, second))
        first, second = (w.put("tanh", each) for each in (apart, w.put("add", crossed, first)))
    ends = [w.put("reshape", each, attributes=((*rest, 1),)) for each in (first, second)]
    pairs = w.put("concat", *ends, attributes=(len(rest),))
    if w.chance(0.5):
        w.put(w.one(("add", "multiply")), pairs, w.beside(pairs))


def _transform(w: Writer) -> None:
    """A Fourier transform of what are pairs, or of real numbers, where there is a length for it."""
    x = w.pick("f", most=3)
    if w.values[x].dtype is not dtypes.float32:
        raise Refused("half precision")
    shape = w.values[x].array.shape
    scale = w.one((1.0, 0.5))
    if shape and offered("rfft", shape[-1]) and w.chance(0.5):
        half = w.put("rfft", x, attributes=(scale,))
        if w.chance(0.3):
            w.put("irfft", half, attributes=(shape[-1], 1 / shape[-1]))
        return
    axes = [axis for axis in range(len(shape) - 1) if offered("fft", shape[axis])]
    if shape[-1:] != (2,) or not axes:  # numbers that are real so far
        ends = [
            w.put("reshape", each, attributes=((*shape, 1),)) for each in (x, w.leaf(shape, dtypes.float32))
        ]
        x = w.put("concat", *ends, attributes=(len(shape),))
        axes = [axis for axis, size in enumerate(shape) if offered("fft", size)]
    if axes:
        w.put("fft", x, attributes=(w.chance(0.5), scale, w.one(axes)))


MOVES: dict[Callable[[Writer], object], float] = {
    _unary: 4,
    _binary: 6,
    _compare: 1,
    _where: 1,
    _cast: 1,
    _reduce: 3,
    _move: 8,
    _take: 1,
    _concat: 1,
    _scan: 0.5,
    _matmul: 1.5,
    _row_pattern: 2,
    _between_transposes: 5,
    _roll: 0.5,
    _one_hot: 0.5,
    _sorted: 0.4,
    _scatter: 0.4,
    _complex: 1,
    _transform: 1,
}


def write_program(seed: int, *, small: bool = False) -> Program:
    """A program of about 3 to 30 steps, with one to four roots; a small one has up to 6, and nothing long."""
    w = Writer(seed, 0.0 if small else 0.06)
    for _ in range(int(w.random.integers(1, 4))):
        w.leaf(w.shape())
    moves, weights = list(MOVES), np.array(list(MOVES.values()))
    wanted = int(w.random.integers(2, 7) if small else w.random.integers(3, 31))
    for _ in range(200):
        if sum(bool(step.inputs) for step in w.steps) >= wanted:
            break
        try:
            moves[w.random.choice(len(moves), p=weights / weights.sum())](w)
        except Refused:
            continue
    made = [at for at, step in enumerate(w.steps) if step.inputs]
    if not made:
        return write_program(seed + 1_000_003, small=small)
    used = {each for step in w.steps for each in step.inputs}
    ends = [at for at in made if at not in used]
    roots = {made[-1], *[w.one(ends if w.chance(0.7) else made) for _ in range(w.random.integers(0, 4))]}
    held = {w.one(made) for _ in range(w.random.integers(0, 3))} if w.chance(0.4) else set()
    return needed(Program(tuple(w.steps), tuple(sorted(roots)), tuple(sorted(held - roots))))
