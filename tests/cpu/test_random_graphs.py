"""Random small graphs of every kind of op: native plans give what the reference gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cpu.helpers import Planned, apply, compare, drawn, fold, where
from webgrad import dtypes
from webgrad.graph.node import Node
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.reference.plan import compute

SIDES = st.integers(1, 6)
EQUAL = st.tuples(st.integers(2, 6), st.integers(2, 4)).map(lambda each: [each[0]] * each[1])
SHAPES = st.one_of(st.lists(SIDES, min_size=0, max_size=4), EQUAL)
MOST = 3000  # elements


class Grower:
    """Adds one node at a time, over those that are there."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.nodes: list[Node] = []
        for _ in range(data.draw(st.integers(1, 3))):
            shape = data.draw(SHAPES)
            self.nodes.append(drawn(*shape, dtype=dtypes.int32))

    def pick(self, rank: int = 0) -> Node | None:
        found = [each for each in self.nodes if len(each.sig.shape) >= rank]
        return self.data.draw(st.sampled_from(found)) if found else None

    def grow(self) -> None:
        made = getattr(self, self.data.draw(st.sampled_from(KINDS)))()
        if made is not None and 0 < made.sig.size <= MOST:
            self.nodes.append(made)

    def binary(self) -> Node | None:
        a = self.pick()
        fitting = [each for each in self.nodes if _broadcasts(a, each)]
        name = self.data.draw(st.sampled_from(["add", "subtract", "multiply", "maximum", "bitwise_xor"]))
        return apply(name, a, self.data.draw(st.sampled_from(fitting)))

    def unary(self) -> Node | None:
        name = self.data.draw(st.sampled_from(["negative", "abs", "sign", "bitwise_invert"]))
        return apply(name, self.pick())

    def number(self) -> Node | None:
        return apply("add", self.pick(), self.data.draw(st.integers(-5, 5)))

    def choice(self) -> Node | None:
        a = self.pick()
        assert a is not None
        b = self.data.draw(st.sampled_from([each for each in self.nodes if _broadcasts(a, each)]))
        return where(apply("less", a, b), a, b) if _same_rank(a, b) else None

    def fold(self) -> Node | None:
        x = self.pick(1)
        if x is None:
            return None
        axes = self.data.draw(st.sets(st.integers(0, len(x.sig.shape) - 1), min_size=1))
        name = self.data.draw(st.sampled_from(["sum", "max", "min", "prod"]))
        return fold(name, x, *axes, keep=self.data.draw(st.booleans()))

    def centred(self) -> Node | None:
        x = self.pick(1)
        if x is None:
            return None
        axis = self.data.draw(st.integers(0, len(x.sig.shape) - 1))
        return apply("subtract", x, fold("max", x, axis, keep=True))

    def permute(self) -> Node | None:
        x = self.pick()
        assert x is not None
        return primitives.permute(x, tuple(self.data.draw(st.permutations(range(len(x.sig.shape))))))

    def between_transposes(self) -> Node | None:
        x = self.pick(2)
        if x is None:
            return None
        order = self.data.draw(st.permutations(range(len(x.sig.shape))))
        turned = primitives.permute(x, tuple(order))
        axis = self.data.draw(st.integers(0, len(order) - 1))
        made = {
            "map": lambda: apply("subtract", turned, 3),
            "two": lambda: apply("multiply", turned, apply("negative", turned)),
            "rows": lambda: apply("subtract", turned, fold("max", turned, axis, keep=True)),
            "scan": lambda: primitives.scan(TABLE["cumulative_sum"], turned, axis),
        }[self.data.draw(st.sampled_from(["map", "two", "rows", "scan"]))]()
        return primitives.permute(made, tuple(order.index(each) for each in range(len(order))))

    def reshape(self) -> Node | None:
        x = self.pick()
        assert x is not None
        sides: list[int] = []
        left = x.sig.size
        while left > 1 and len(sides) < 3:
            side = self.data.draw(st.sampled_from([each for each in range(1, left + 1) if left % each == 0]))
            sides.append(side)
            left //= side
        return primitives.reshape(x, (*sides, left) if left > 1 else tuple(sides))

    def expand(self) -> Node | None:
        x = self.pick()
        assert x is not None
        sides = [self.data.draw(SIDES) if each == 1 else each for each in x.sig.shape]
        return primitives.expand(
            x, (*([self.data.draw(SIDES)] if self.data.draw(st.booleans()) else []), *sides)
        )

    def slice(self) -> Node | None:
        x = self.pick()
        assert x is not None
        ranges = []
        for side in x.sig.shape:
            start = self.data.draw(st.integers(0, side - 1))
            ranges.append(
                (start, self.data.draw(st.integers(start + 1, side)), self.data.draw(st.integers(1, 2)))
            )
        return primitives.slice_(x, tuple(ranges))

    def flip(self) -> Node | None:
        x = self.pick(1)
        if x is None:
            return None
        return primitives.flip(
            x, tuple(sorted(self.data.draw(st.sets(st.integers(0, len(x.sig.shape) - 1)))))
        )

    def pad(self) -> Node | None:
        x = self.pick(1)
        assert x is None or x.sig.shape
        width = st.tuples(st.integers(0, 2), st.integers(0, 2))
        return x and primitives.pad(x, tuple(self.data.draw(width) for _ in x.sig.shape), 7)

    def concat(self) -> Node | None:
        x = self.pick(1)
        if x is None:
            return None
        axis = self.data.draw(st.integers(0, len(x.sig.shape) - 1))
        fitting = [each for each in self.nodes if _beside(x, each, axis)]
        return primitives.concat([x, self.data.draw(st.sampled_from(fitting))], axis)

    def take(self) -> Node | None:
        x, index = self.pick(1), self.pick()
        if x is None or index is None or len(x.sig.shape) + len(index.sig.shape) > 5:
            return None
        return primitives.take(x, index, self.data.draw(st.integers(0, len(x.sig.shape) - 1)))

    def take_along(self) -> Node | None:
        x = self.pick(1)
        if x is None:
            return None
        axis = self.data.draw(st.integers(0, len(x.sig.shape) - 1))
        fitting = [each for each in self.nodes if _beside(x, each, axis)]
        return primitives.take_along(x, self.data.draw(st.sampled_from(fitting)), axis)

    def product(self) -> Node | None:
        x = self.pick(2)
        if x is None:
            return None
        fitting = [each for each in self.nodes if _multiplies(x, each)]
        return primitives.contract(x, self.data.draw(st.sampled_from(fitting))) if fitting else None

    def scan(self) -> Node | None:
        x = self.pick(1)
        if x is None:
            return None
        return primitives.scan(
            TABLE["cumulative_sum"], x, self.data.draw(st.integers(0, len(x.sig.shape) - 1))
        )

    def iota(self) -> Node | None:
        x = self.pick(1)
        return x and apply("add", x, primitives.iota(x.sig.shape[-1], dtypes.int32, x.sig.device))

    def other_type(self) -> Node | None:
        x = self.pick()
        assert x is not None
        return primitives.cast(primitives.cast(x, self.data.draw(st.sampled_from(TYPES))), dtypes.int32)


TYPES = (dtypes.uint8, dtypes.int16, dtypes.uint32, dtypes.int64, dtypes.bool)
KINDS = [name for name in vars(Grower) if not name.startswith("_") and name not in ("pick", "grow")]


def _broadcasts(a: Node | None, b: Node) -> bool:
    assert a is not None
    try:
        np.broadcast_shapes(a.sig.shape, b.sig.shape)
    except ValueError:
        return False
    return True


def _same_rank(a: Node, b: Node) -> bool:
    return len(a.sig.shape) == len(b.sig.shape)


def _beside(a: Node, b: Node, axis: int) -> bool:
    return _same_rank(a, b) and all(
        one == other
        for at, (one, other) in enumerate(zip(a.sig.shape, b.sig.shape, strict=True))
        if at != axis
    )


def _multiplies(a: Node, b: Node) -> bool:
    if len(b.sig.shape) < 2 or a.sig.shape[-1] != b.sig.shape[-2]:
        return False
    try:
        np.broadcast_shapes(a.sig.shape[:-2], b.sig.shape[:-2])
    except ValueError:
        return False
    return True


def _grown(data: st.DataObject) -> list[Node]:
    grower = Grower(data)
    for _ in range(data.draw(st.integers(1, 14))):
        grower.grow()
    extra = data.draw(st.lists(st.sampled_from(grower.nodes), max_size=2))
    return list(dict.fromkeys([grower.nodes[-1], *extra]))


@settings(max_examples=60)
@given(data=st.data())
def test_integers_are_equal(data: st.DataObject) -> None:
    """Integers wrap, so whatever the order of additions, every bit is the same."""
    roots = _grown(data)
    wanted = compute(roots)
    planned = Planned(*roots)
    for by_reference in (False, False, True):
        for got, want, root in zip(planned.run(by_reference=by_reference), wanted, roots, strict=True):
            assert got.dtype == want.dtype
            assert got.shape == root.sig.shape
            assert got.flags.c_contiguous
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.bfloat16], ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_floats_are_close(dtype: Any, data: st.DataObject) -> None:
    """Sums of a few small integers are exact in float32; half-width floats round where they are stored."""
    shape = data.draw(st.lists(SIDES, min_size=2, max_size=3))
    x, y = drawn(*shape, dtype=dtype), drawn(*shape, dtype=dtype)
    for _ in range(data.draw(st.integers(1, 6))):
        axis = data.draw(st.integers(0, len(shape) - 1))
        z = {
            "exp": lambda: apply("tanh", apply("add", x, y)),  # noqa: B023
            "norm": lambda: apply("subtract", x, fold("max", y, axis, keep=True)),  # noqa: B023
            "flip": lambda: primitives.flip(apply("multiply", x, y), (axis,)),  # noqa: B023
            "mean": lambda: apply("multiply", y, apply("tanh", fold("sum", x, axis, keep=True))),  # noqa: B023
        }[data.draw(st.sampled_from(["exp", "norm", "flip", "mean"]))]()
        x, y = z, x
    wanted = compute([x, y])
    found = Planned(x, y).run()
    for got, want in zip(found, wanted, strict=True):
        compare(got, want, rounding=64, slack=1e-5 if dtype is dtypes.float32 else 0.5)
