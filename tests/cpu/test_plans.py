"""Plans of the cpu against the reference: every kind of group, of few and of many elements."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import numpy as np
import pytest

import webgrad as wg
from tests.cpu.helpers import (
    CPU,
    RNG,
    Array,
    Planned,
    apply,
    check,
    drawn,
    fold,
    layer_norm,
    node_of,
    softmax,
    where,
)
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import Node, make
from webgrad.ops import primitives
from webgrad.ops.table import TABLE

# One below the limits of blocks, and several above, even and odd
SIZES = [(5,), (40_000,), (70_001,), (300, 301), (1, 200_003), (3, 5, 7001), (64, 2, 1025)]
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, 3e38, -3e38, 0.5, -2.5], np.float32)


@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_a_chain_of_maps(shape: tuple[int, ...]) -> None:
    a, b = drawn(*shape), drawn(*shape)
    check(apply("tanh", apply("add", apply("multiply", a, b), 0.5)), rounding=4)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((300, 301), (301,)),
        ((300, 1), (1, 301)),
        ((), (90_000,)),
        ((7, 1, 9000), (5, 1)),
        ((1, 1), (300, 300)),
    ],
)
def test_broadcasting(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    a, b = drawn(*one), drawn(*other)
    check(apply("add", apply("exp", a), apply("multiply", b, 2.0)), rounding=4, slack=2e-6)


@pytest.mark.parametrize(
    "name", ["gelu", "gelu_tanh", "erf", "erfc", "sigmoid", "rsqrt", "power", "exp", "where"]
)
@pytest.mark.parametrize("times", [1, 8000])
def test_functions_and_special_values(name: str, times: int) -> None:
    x = node_of(np.tile(SPECIAL, times))
    y = node_of(np.tile(SPECIAL[::-1], times))
    node = where(apply("less", x, y), x, y) if name == "where" else None
    node = node or (apply(name, x, y) if name == "power" else apply(name, x))
    check(node, apply("add", node, y), rounding=4, slack=1e-44)


MOVES: dict[str, Callable[[Node], Node]] = {
    "reshape": lambda x: primitives.reshape(x, (math.prod(x.sig.shape[:2]), *x.sig.shape[2:])),
    "flatten": lambda x: primitives.reshape(x, (x.sig.size,)),
    "split": lambda x: primitives.reshape(x, (*x.sig.shape[:-1], x.sig.shape[-1] // 3, 3)),
    "mix": lambda x: primitives.reshape(x, (x.sig.size // 6, 6)),
    "permute": lambda x: primitives.permute(x, (2, 0, 1)),
    "expand": lambda x: primitives.expand(x, (2, *x.sig.shape)),
    "slice": lambda x: primitives.slice_(x, tuple((1, side, 2) for side in x.sig.shape)),
    "part": lambda x: primitives.slice_(x, (*((0, side, 1) for side in x.sig.shape[:-1]), (2, 5, 1))),
    "flip": lambda x: primitives.flip(x, (0, 2)),
    "window": lambda x: primitives.window(x, 2, 3, 2, 1),
    "windows": lambda x: primitives.window(primitives.window(x, 0, 2, 1, 1), 2, 2, 1, 3),
    "pad": lambda x: primitives.pad(x, ((1, 2), (0, 0), (0, 1)), -3.0),
    "pad last": lambda x: primitives.pad(x, ((0, 0), (0, 0), (2, 1)), 5.0),
}


@pytest.mark.parametrize("shape", [(4, 3, 6), (60, 20, 99)], ids=str)
@pytest.mark.parametrize("name", MOVES)
def test_movement_of_inputs_and_of_computed_values(name: str, shape: tuple[int, ...]) -> None:
    x = drawn(*shape)
    move = MOVES[name]
    check(move(x))
    check(apply("add", move(x), 1.0))
    check(move(apply("multiply", x, 2.0)))
    check(apply("abs", move(apply("multiply", x, 2.0))), apply("add", x, 1.0))
    check(apply("abs", move(apply("multiply", x, 2.0))), move(x))


@pytest.mark.parametrize("shape", [(3, 5, 4), (70, 3, 300), (300, 7, 70)], ids=str)
def test_transposed_operands(shape: tuple[int, ...]) -> None:
    x, y = drawn(*shape), drawn(*shape[::-1])
    turned = primitives.permute(x, (2, 1, 0))
    check(turned)
    check(apply("add", turned, y), primitives.permute(apply("exp", x), (2, 1, 0)), rounding=4)
    check(apply("add", primitives.flip(turned, (0, 2)), y), apply("multiply", y, 2.0))
    check(primitives.permute(apply("add", turned, y), (1, 2, 0)))


@pytest.mark.parametrize("shape", [(3, 5), (600, 301), (301, 5, 90), (2, 300_000), (1, 100_000)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_layer_norm_over_any_axis(shape: tuple[int, ...], axis: int) -> None:
    x = drawn(*shape)
    check(softmax(x, axis % len(shape)), rounding=64)
    check(layer_norm(x, axis % len(shape), drawn(shape[-1])), rounding=64, slack=1e-4)


def test_rows_are_one_group() -> None:
    x = drawn(600, 301)
    for node in (softmax(x, 1), layer_norm(x, 1)):
        planned = check(node, rounding=64, slack=1e-4)
        assert [each.kind for each in planned.schedule.groups] == ["rows"]


@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (40, 50, 60), (300_000, 2, 1), (2, 2, 60_000), (1, 129, 1025)], ids=str
)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_folds_over_any_axes(name: str, axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    whole = drawn(*shape, dtype=dtypes.int32)
    check(fold(name, whole, *axes))
    values = RNG.uniform(0.99999, 1.00001, shape).astype(np.float32)
    x, turned = node_of(values), primitives.permute(node_of(values), (2, 0, 1))
    results = (
        (fold(name, apply("multiply", x, x), *axes, keep=True), values.astype(np.float64) ** 2, True),
        (apply("abs", fold(name, turned, *axes)), values.astype(np.float64).transpose(2, 0, 1), False),
    )
    for node, wide, keep in results:  # in float64: NumPy's own float32 sums drift over leading axes
        (got,) = Planned(node).run()
        want = getattr(np, name)(wide, axis=axes, keepdims=keep)
        length = wide.size // want.size  # every factor of a product may be rounded, in whatever order
        np.testing.assert_allclose(got, want, rtol=2e-6 if name != "prod" else 6e-8 * (length + 2))


def test_nan_and_infinity_go_through_folds() -> None:
    values = RNG.standard_normal((400, 500)).astype(np.float32)
    values[3, 7], values[5, 9], values[8, 8], values[8, 9] = np.nan, np.inf, np.inf, -np.inf
    x = node_of(values)
    for name in ("sum", "max", "min"):
        for axes in ((0,), (1,), (0, 1)):
            check(fold(name, x, *axes), rounding=512, slack=1e-3)
    check(softmax(x, 1), rounding=64)


@pytest.mark.parametrize("axis", [0, 1], ids=["axis 0", "last"])
def test_a_long_sum_has_no_running_accumulator(axis: int) -> None:
    x = np.full((1 << 24, 1) if axis == 0 else (1, 1 << 24), 0.1, np.float32)
    (total,) = Planned(fold("sum", node_of(x), axis)).run()
    exact = float(np.float32(0.1)) * (1 << 24)
    assert abs(float(total[0]) - exact) < 1e-6 * exact


@pytest.mark.parametrize("shape", [(3, 5), (40, 300), (300, 400), (90, 2100)], ids=str)
def test_sums_of_products(shape: tuple[int, ...]) -> None:
    """One step, where nobody else reads the products; two where they are a result, or are repeated."""
    a, b = drawn(*shape), drawn(*shape)
    products = apply("multiply", a, b)
    for axis in (0, 1):
        check(fold("sum", products, axis), rounding=64, slack=1e-4)
        check(products, fold("sum", products, axis), rounding=64, slack=1e-4)
        check(apply("add", fold("sum", products, axis), fold("max", products, axis)), rounding=64, slack=1e-4)
    repeated = apply("multiply", a, drawn(shape[1]))
    check(fold("sum", repeated, 1), rounding=64, slack=1e-4)


def test_a_long_sum_over_the_first_axis_of_two_columns() -> None:
    x = np.full((1 << 22, 4), 0.1, np.float32)
    (total,) = Planned(fold("sum", node_of(x), 0)).run()
    np.testing.assert_allclose(total, float(np.float32(0.1)) * (1 << 22), rtol=1e-6)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((257, 65), (65, 300)),
        ((4, 3, 65, 33), (33, 90)),
        ((6, 1, 70, 80), (5, 80, 90)),
        ((2, 0), (0, 300)),
    ],
    ids=str,
)
def test_products_with_epilogue(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, w = drawn(*a), drawn(*b)
    shape = primitives.contract(x, w).sig.shape
    rows = (math.prod(shape[:-1]), shape[-1])
    check(primitives.contract(x, w), rounding=16, slack=1e-4)
    biased = apply("maximum", apply("add", primitives.contract(x, w), drawn(b[-1])), 0.0)
    planned = check(primitives.reshape(biased, rows), rounding=16, slack=1e-4)
    assert planned.schedule.groups[0].kind == "contract"
    check(primitives.reshape(primitives.contract(x, w), (math.prod(shape),)), rounding=16, slack=1e-4)
    turned = primitives.contract(primitives.permute(drawn(b[-1], a[-1]), (1, 0)), drawn(b[-1], 7))
    check(apply("exp", apply("multiply", turned, 0.01)), rounding=64)


def test_a_product_of_computed_operands() -> None:
    x, w = drawn(300, 200), drawn(300, 400)
    turned = primitives.permute(apply("multiply", x, 2.0), (1, 0))
    check(primitives.contract(turned, apply("abs", w)), rounding=16, slack=1e-3)


@pytest.mark.parametrize("shape", [(4, 5), (300, 301)], ids=str)
def test_several_outputs(shape: tuple[int, ...]) -> None:
    a, b = drawn(*shape), drawn(*shape)
    sums = apply("add", a, b)
    scaled = apply("multiply", sums, 3.0)
    planned = check(sums, scaled, apply("subtract", scaled, a))
    assert len(planned.schedule.groups) == 1
    check(sums, primitives.reshape(scaled, (sums.sig.size,)), primitives.permute(sums, (1, 0)))
    check(sums, fold("sum", scaled, 1), softmax(scaled, 0), rounding=256, slack=1e-4)


def test_roots_that_are_inputs_or_repeat() -> None:
    a = drawn(3, 4)
    b = apply("add", a, 1.0)
    planned = check(a, b)
    assert planned.run()[0] is a.storage
    twice = Planned(b, b).run()
    np.testing.assert_array_equal(twice[0], a.storage + 1)


@pytest.mark.parametrize("rows", [7, 5000])
def test_gathers(rows: int) -> None:
    table = drawn(50, 33)
    index = node_of(RNG.integers(-20, 80, rows).astype(np.int32))  # some out of range: clamped
    check(primitives.take(table, index, 0))
    check(apply("multiply", primitives.take(apply("add", table, 1.0), apply("add", index, 1), 0), 2.0))
    check(primitives.take(table, index, 1))
    pairs = node_of(RNG.integers(-5, 60, (50, rows)).astype(np.uint8))
    check(apply("abs", primitives.take_along(table, pairs, 1)))
    single = node_of(RNG.integers(0, 33, (50, 1)).astype(np.int64))
    check(primitives.take_along(apply("exp", table), single, 1), rounding=4)


@pytest.mark.parametrize("shape", [(3, 4), (200, 301)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_concat(shape: tuple[int, int], axis: int) -> None:
    a, b = drawn(*shape), drawn(*shape)
    joined = primitives.concat([a, apply("multiply", b, 2.0), primitives.flip(a, (0,))], axis)
    check(joined)
    check(apply("add", joined, 1.0), apply("negative", b))
    check(fold("sum", joined, axis), rounding=64, slack=1e-3)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod", "cumulative_max"])
@pytest.mark.parametrize("shape", [(5, 6), (300, 301)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_scans(name: str, shape: tuple[int, int], axis: int) -> None:
    x = drawn(*shape, dtype=dtypes.int16)
    check(apply("add", primitives.scan(TABLE[name], apply("multiply", x, 3), axis), 1))


@pytest.mark.parametrize("shape", [(0,), (9,), (4, 40_001)], ids=str)
def test_sorting(shape: tuple[int, ...]) -> None:
    keys = node_of(RNG.integers(0, 1000, shape).astype(np.uint32))
    order = primitives.sort_order(apply("bitwise_xor", keys, 5))
    check(order, primitives.take_along(keys, order, len(shape) - 1))


@pytest.mark.parametrize("name", ["scatter_set", "scatter_add", "scatter_max"])
@pytest.mark.parametrize("rows", [5, 3000])
def test_scatters(name: str, rows: int) -> None:
    base, updates = drawn(rows, 20), drawn(2 * rows, 20)
    index = node_of(RNG.integers(-2, rows + 2, 2 * rows).astype(np.int32))
    written = primitives.scatter(TABLE[name], base, index, apply("add", updates, 1.0))
    check(apply("multiply", written, 2.0), rounding=4)


def test_iota() -> None:
    for dtype in (dtypes.int32, dtypes.uint8, dtypes.float32, dtypes.float16):
        check(primitives.iota(100_000, dtype, CPU))
        line = primitives.iota(100_000, dtype, CPU)
        check(primitives.reshape(apply("add", line, line), (100, 1000)))
    row, column = primitives.iota(400, dtypes.int32, CPU), primitives.iota(300, dtypes.int32, CPU)
    check(apply("less", primitives.reshape(row, (400, 1)), column))


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7,), (300, 301)], ids=str)
def test_every_dtype(dtype: DType, shape: tuple[int, ...]) -> None:
    a, b = drawn(*shape, dtype=dtype), drawn(*shape, dtype=dtype)
    check(apply("maximum", a, b), where(apply("less", a, b), a, b))
    if dtype.kind != "b":
        check(
            apply("subtract", apply("multiply", a, b), 3),
            rounding=8,
            slack=0.05 if dtype.itemsize == 2 else 0,
        )
    for other in dtypes.REAL:
        check(primitives.cast(primitives.reshape(a, (a.sig.size,)), other))
    if shape:
        name = "sum" if dtype.kind != "b" else "max"
        check(fold(name, a, len(shape) - 1), fold(name, a, 0), rounding=512, slack=0.5)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_half_floats_move_without_being_converted(dtype: DType) -> None:
    x = drawn(300, 302, dtype=dtype)
    parts = primitives.concat(
        [primitives.permute(x, (1, 0)), primitives.flip(primitives.permute(x, (1, 0)), (0,))], 1
    )
    check(primitives.pad(parts, ((1, 0), (0, 0)), 2.5))
    check(primitives.take(x, node_of(np.array([3, 1], np.int32)), 0))
    bits = make(TABLE["bitcast"], (x,), (dtypes.uint16,))
    check(make(TABLE["bitcast"], (apply("bitwise_xor", bits, 1 << 15),), (dtype,)))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("rows", [3, 400])
def test_half_floats_are_computed_in_float32_and_rounded_once(dtype: DType, rows: int) -> None:
    a, b = drawn(rows, 301, dtype=dtype), drawn(rows, 301, dtype=dtype)
    (got,) = Planned(apply("subtract", apply("multiply", a, b), apply("add", a, 1000.0))).run()
    wide = a.storage.astype(np.float32)
    exact = wide * b.storage.astype(np.float32) - (wide + np.float32(1000))
    np.testing.assert_array_equal(got, exact.astype(dtype.numpy))
    through = primitives.cast(primitives.cast(apply("multiply", a, b), dtypes.float32), dtype)
    check(through, fold("sum", a, 1), fold("sum", b, 0), rounding=2, slack=0.01)


def test_casts_of_floats_to_integers_saturate() -> None:
    values = np.tile(
        np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 300.7, -300.7, 127.9, -0.9], np.float64), 9000
    )
    for source in (dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16):
        with np.errstate(all="ignore"):
            x = node_of(values.astype(source.numpy))
        for target in dtypes.REAL:
            check(primitives.cast(x, target))
    check(primitives.cast(node_of(np.array(np.nan, np.float32)), dtypes.int8))


def test_random_bits() -> None:
    counter = primitives.iota(100_003, dtypes.uint32, CPU)
    bits = apply("random_bits", counter, 7, 9)
    check(apply("right_shift", bits, 8))


def test_intermediate_values_share_memory() -> None:
    """A chain of products needs room for two of them and for x as panels, not for all."""
    x = drawn(400, 400)
    node = x
    for _ in range(6):
        node = primitives.contract(node, x)
        node = apply("divide", node, 20.0)
    planned = Planned(node)
    planned.run()
    (layout,) = planned.plan._layouts.values()
    scratch = max(each.kernel.program.scratch for each in planned.plan._steps)  # type: ignore[union-attr]
    panels = 400 * -(-400 // 32) * 32 * 4
    assert layout._room <= 2 * x.sig.nbytes + panels + scratch + 1024


def reshaped_product(dtype: DType = dtypes.float32) -> Node:
    product = primitives.contract(drawn(300, 40, dtype=dtype), drawn(40, 300, dtype=dtype))
    return primitives.reshape(product, (3, 100, 300))


def test_memory_that_a_reshape_still_needs_is_not_taken() -> None:
    for again in (
        lambda x: x,
        lambda x: primitives.reshape(x, (300, 300)),
        lambda x: primitives.permute(x, (1, 0, 2)),
        lambda x: apply("subtract", primitives.permute(x, (0, 2, 1)), 1),
    ):
        x = reshaped_product(dtypes.int32)
        check(again(x), apply("add", x, 2))
        check(apply("add", x, 2), again(x))


def test_memory_that_a_view_still_needs_is_not_taken() -> None:
    """A view of a value is a result: it is copied after the loop that could take the value's memory."""
    total = fold("sum", drawn(30, 4, 6, dtype=dtypes.int32), 2)
    check(primitives.flip(total, (0,)), apply("add", total, total))
    product = primitives.contract(drawn(9, 4, dtype=dtypes.int32), drawn(4, 9, dtype=dtypes.int32))
    check(primitives.permute(product, (1, 0)), apply("add", product, 1), apply("add", product, 2))


def test_one_plan_in_several_threads() -> None:
    shared = drawn(500, 400)
    planned = Planned(softmax(apply("multiply", shared, 3.0), 1), fold("sum", apply("exp", shared), 0))
    wanted = planned.run()
    found: list[list[Array]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            found.extend(planned.run() for _ in range(5))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert len(found) == 20
    for results in found:
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_new_values_for_the_same_plan() -> None:
    a = drawn(300, 300)
    planned = Planned(apply("multiply", a, 2.0))
    (number,) = planned.graph.roots
    (leaf,) = [at for at, sig in enumerate(planned.graph.sigs) if sig.kind == "leaf"]
    (scalar,) = [at for at, sig in enumerate(planned.graph.sigs) if sig.kind == "scalar"]
    for factor in (2.0, -1.5):
        array = RNG.standard_normal((300, 300)).astype(np.float32)
        found = planned.plan.run({leaf: array}, {scalar: factor})
        np.testing.assert_array_equal(found[number], array * np.float32(factor))


def test_a_deep_graph() -> None:
    x = drawn(3)
    node: Node = x
    for _ in range(3000):
        node = apply("add", node, x)
    check(node, rounding=8)


def test_no_two_results_share_memory() -> None:
    x = wg.asarray(np.ones((300, 400), np.float32), device="cpu")
    index = wg.asarray(np.arange(300), device="cpu")
    written = wg.index_set(x, index, 2.0)
    flat = written.reshape(-1)
    del written
    assert flat.numpy().tolist() == [2.0] * 120_000
    first = wg.index_add(x, index, 1.0)
    results = [first.reshape(-1), first, first.reshape(400, 300), x.reshape(-1), (x @ x.T).reshape(-1)]
    wg.eval(*results)
    arrays = [each.node.storage for each in (*results, x)]
    for at, one in enumerate(arrays):
        assert one.flags.c_contiguous
        assert not any(np.shares_memory(one, other) for other in arrays[:at])


@pytest.mark.parametrize("columns", [16, 20, 700])
def test_rows_added_to_a_number_are_one_kernel(columns: int) -> None:
    rows, count = 40, 300
    number = primitives.constant("scatter", 0.5, dtypes.float32, CPU)
    base = primitives.expand(number, (rows, columns))
    index = apply("subtract", node_of(RNG.integers(0, rows + 2, count).astype(np.int32)), 1)
    x, factor = drawn(count, columns), drawn(count, 1)
    product = apply("multiply", x, primitives.expand(factor, (count, columns)))
    added = primitives.scatter(TABLE["scatter_add"], base, index, product)
    assert len(check(apply("add", added, 0.0), rounding=4, slack=1e-5).schedule.groups) == 2
    assert len(check(added, rounding=4, slack=1e-5).schedule.groups) == 1
    check(added, product, index, rounding=4, slack=1e-5)
    for heavy in (softmax(x, 1), apply("subtract", x, fold("max", x, 0, keep=True))):
        check(primitives.scatter(TABLE["scatter_add"], base, index, heavy), rounding=64, slack=1e-4)
    twice = primitives.scatter(TABLE["scatter_add"], base, index, primitives.take(added, index, 0))
    check(twice, rounding=8, slack=1e-4)
