"""The builder places every value in the outermost block where it is known, and makes equal values once."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from tests.lower.helpers import F32, F32x4, kernel_of
from webgrad import dtypes
from webgrad.lower.builder import LANE, Builder
from webgrad.lower.index import Index, constant, variable
from webgrad.lower.ir import U32, Instruction, Type, verify
from webgrad.ops.table import TABLE


@pytest.fixture
def build() -> Builder:
    return Builder()


def ops(build: Builder) -> list[str]:
    return [each.op for each in build.body()]


def loop(build: Builder, stop: int = 16) -> Instruction:
    return build.open_loop(build.constant(0), build.constant(stop), build.constant(1))


def test_what_a_loop_does_not_change_comes_before_it(build: Builder) -> None:
    thread = build.emit("thread", U32, (), "local")
    i = loop(build)
    invariant = build.arithmetic("*", thread, build.constant(7))
    variant = build.arithmetic("+", invariant, i)
    build.here("store", None, (variant, build.emit("load", F32, (variant,), 0)), 1)
    build.close()
    body = build.body()
    assert body.index(invariant) < body.index(i) < body.index(variant)
    verify(kernel_of(*body))


def test_loads_are_hoisted_out_of_loops_but_not_out_of_conditions(build: Builder) -> None:
    thread = build.emit("thread", U32, (), "local")
    condition = build.open_if(build.compare("<", thread, build.constant(3)))
    i = loop(build)
    value = build.emit("load", F32, (thread,), 0)
    build.here("store", None, (i, value), 1)
    build.close()
    build.close()
    body = build.body()
    assert body.index(condition) < body.index(value) < body.index(i)
    verify(kernel_of(*body))


def test_index_arithmetic_leaves_conditions(build: Builder) -> None:
    thread = build.emit("thread", U32, (), "local")
    condition = build.open_if(build.compare("<", thread, build.constant(3)))
    doubled = build.arithmetic("*", thread, build.constant(2))
    build.here("store", None, (doubled, build.emit("load", F32, (doubled,), 0)), 1)
    build.close()
    body = build.body()
    assert body.index(doubled) < body.index(condition)


def test_equal_values_are_made_once(build: Builder) -> None:
    a, b = build.constant(5), build.constant(6)
    assert build.arithmetic("+", a, b) is build.arithmetic("+", a, b)
    assert build.arithmetic("+", a, b) is not build.arithmetic("+", b, a)
    assert build.constant(1) is not build.constant(1.0, F32)
    assert build.constant(1) is not build.constant(True, Type("bool"))


def test_values_of_a_closed_block_are_not_used_again(build: Builder) -> None:
    made = []
    for _ in range(2):
        i = loop(build)
        made.append(build.arithmetic("+", i, build.constant(3)))
        build.here("store", None, (made[-1], build.emit("load", F32, (made[-1],), 0)), 1)
        build.close()
    assert made[0] is not made[1]
    verify(kernel_of(*build.body()))


def test_what_has_an_effect_stays_and_is_never_shared(build: Builder) -> None:
    register = build.here("register", F32, (build.constant(0.0, F32),))
    i = loop(build)
    first, second = (build.here("read", F32, (register,)) for _ in range(2))
    build.here("write", None, (register, first))
    build.close()
    assert first is not second
    body = build.body()
    assert body.index(i) < body.index(first) < body.index(second)
    verify(kernel_of(*body))


def test_stepping_out_puts_a_loop_before_the_open_ones(build: Builder) -> None:
    outer = loop(build)
    suspended = build.outside(0)
    early = loop(build, 4)
    build.here("store", None, (early, build.emit("load", F32, (early,), 0)), 1)
    build.close()
    build.blocks += suspended
    build.here("store", None, (outer, build.emit("load", F32, (outer,), 0)), 1)
    build.close()
    body = build.body()
    ends = [each.args[0] for each in body if each.op == "end_loop"]
    assert ends == [early, outer]
    assert body.index(early) < body.index(outer)
    verify(kernel_of(*body))


def test_depth_of_an_index(build: Builder) -> None:
    build.values["t"] = build.emit("thread", U32, (), "local")
    build.values["i"] = loop(build)
    build.values["j"] = loop(build)
    t, i, j, lane = variable("t", 8), variable("i", 16), variable("j", 16), variable("lane", 4, LANE)
    assert [build.depth_of(each) for each in (constant(3), t, lane, t + i, (t + j) // 3)] == [0, 0, 0, 1, 2]


def test_outer_parts_of_an_index_are_summed_first(build: Builder) -> None:
    build.values["t"] = build.emit("thread", U32, (), "local")
    build.values["i"] = loop(build)
    total = build.index(variable("i", 16) * 3 + variable("t", 8) * 5)
    build.here("store", None, (total, build.emit("load", F32, (total,), 0)), 1)
    build.close()
    body = build.body()
    at = body.index(build.values["i"])
    before = [each.data for each in body[:at] if each.op == "arithmetic"]
    after = [each.data for each in body[at:] if each.op == "arithmetic"]
    assert before == ["*"]
    assert sorted(after) == ["*", "+"]


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "min": min,
}


def run(index: Index, values: dict[str, int]) -> int:
    """What the instructions of an index compute, in unsigned 32-bit arithmetic."""
    build = Builder()
    build.values.update({name: build.emit("argument", U32, (), name) for name in values})
    last = build.index(index)
    numbers: dict[int, int] = {}
    for each in build.body():
        if each.op == "arithmetic":
            a, b = (numbers[id(arg)] for arg in each.args)
            numbers[id(each)] = ARITHMETIC[each.data](a, b) % (1 << 32)
        else:
            numbers[id(each)] = each.data if each.op == "const" else values[each.data]
    return numbers[id(last)]


@pytest.mark.parametrize("x", [0, 1, 7, 19])
@pytest.mark.parametrize("y", [0, 5])
def test_indices_are_computed_exactly_in_unsigned_arithmetic(x: int, y: int) -> None:
    a, b = variable("x", 20), variable("y", 6)
    known = {"x": x, "y": y}
    assert run((a * -1).shifted(19), known) == 19 - x
    assert run(a * 6 + b, known) == 6 * x + y
    assert run((a * 3 + b) // 7, known) == (3 * x + y) // 7
    assert run((a * 3 + b) % 7 + b * 2, known) == (3 * x + y) % 7 + 2 * y
    shifted = a.shifted(-4)
    assert run(shifted.limited(10), known) == (min(x - 4, 9) if x >= 4 else 9)
    assert run(constant(5), known) == 5


# Lanes


def test_operands_are_spread_where_others_have_four_lanes(build: Builder) -> None:
    one, four = build.constant(1.0, F32), build.emit("load", F32x4, (build.constant(0),), 0)
    total = build.apply(TABLE["add"], "f32", one, four)
    assert total.type == F32x4
    assert [each.op for each in total.args] == ["splat", "load"]
    chosen = build.select(build.constant(True, Type("bool")), one, four)
    assert {each.type.width for each in chosen.args if each.type} == {4}
    assert build.cast(four, dtypes.float32, dtypes.int32).type == Type("i32", 4)


def test_lanes_are_taken_from_where_they_come(build: Builder) -> None:
    parts = [build.constant(each, F32) for each in (1.0, 2.0, 3.0, 4.0)]
    together = build.lanes(parts)
    assert together.type == F32x4
    assert [build.lane(together, each) for each in range(4)] == parts
    assert build.lanes([parts[0]] * 4) is parts[0]
    assert build.lane(build.widened(parts[1], 4), 2) is parts[1]
    loaded = build.emit("load", F32x4, (build.constant(0),), 0)
    assert build.lane(loaded, 3).op == "extract"
    assert build.lane(parts[0], 3) is parts[0]


def test_indices_with_lanes(build: Builder) -> None:
    build.values["i"] = build.emit("thread", U32, (), "local")
    flat = variable("i", 16) * 4 + variable("lane", 4, LANE)
    assert build.has_lanes(flat)
    assert not build.has_lanes(flat // 4)
    assert build.in_lane(flat, 3) == (variable("i", 16) * 4).shifted(3)
    assert build.index_lanes(flat).type == Type("u32", 4)
    assert build.index_lanes(flat // 4).type == U32


def test_computed_indices(build: Builder) -> None:
    loaded = build.emit("load", Type("u32", 4), (build.constant(0),), 0)
    index = build.dynamic(loaded, 10)
    assert (index.low, index.high) == (0, 9)
    assert build.has_lanes(index)
    assert not build.has_lanes(build.in_lane(index, 1))
