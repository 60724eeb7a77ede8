"""What is stored and what is computed inside a kernel: the rules of fusion, one test each."""

from __future__ import annotations

import dataclasses

import pytest

from tests.graph.helpers import apply, fold, graph_of, tensor, value
from tests.schedule.graphs import PORTABLE, SOFTWARE, assert_valid, planned
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import softmax
from webgrad.graph.node import Node
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule import fuse
from webgrad.schedule.plan import Schedule


def stored_ops(plan: Schedule) -> list[str]:
    """The names of the ops whose results are stored, in order."""
    assert_valid(plan)
    return [plan.graph.sigs[each].op.name for group in plan.groups for each in group.outputs]


def column(x: Node) -> Node:
    """(n,) as (n, 1)."""
    return primitives.reshape(x, (*x.sig.shape, 1))


# Maps and movement


def test_movement_vanishes() -> None:
    x = value(8, 12)

    def build() -> Node:
        turned = primitives.permute(x, (1, 0))
        cut = primitives.slice_(turned, ((1, 11, 2), (0, 8, 1)))
        return apply("add", primitives.flip(cut, (1,)), primitives.expand(value(1, 8), (5, 8)))

    (group,) = planned(build()).groups
    assert group.kind == "map"
    assert len(group.reads) == 2


def test_a_cheap_map_with_several_readers_is_computed_again() -> None:
    def build() -> list[Node]:
        cheap = apply("add", value(8, 16), 1.0)
        return [fold("sum", cheap, 0), fold("max", cheap, 1)]

    assert stored_ops(planned(*build())) == ["sum", "max"]


def test_dear_work_with_several_readers_is_stored() -> None:
    def build() -> list[Node]:
        dear = value(8, 16)
        for _ in range(fuse.MAX_RECOMPUTE_COST // TABLE["exp"].cost + 1):
            dear = apply("exp", dear)
        return [fold("sum", dear, 0), fold("max", dear, 1)]

    assert stored_ops(planned(*build())) == ["exp", "sum", "max"]


def test_a_pool_takes_a_cheap_map_into_its_kernel() -> None:
    def build() -> Node:
        positive = primitives.pad(apply("maximum", value(2, 8, 8), 0.0), ((0, 0), (1, 1), (1, 1)))
        return fold("max", primitives.window(primitives.window(positive, 1, 3, 1), 2, 3, 1), 3, 4)

    assert stored_ops(planned(build())) == ["max"]


def test_dear_work_under_overlapping_windows_is_stored() -> None:
    def build(stride: int) -> Node:
        dear = primitives.permute(apply("exp", apply("exp", value(8, 8))), (1, 0))
        return fold("max", primitives.window(primitives.window(dear, 0, 3, stride), 1, 3, stride), 2, 3)

    assert stored_ops(planned(build(1))) == ["exp", "max"], "the value itself, not what is moved of it"
    assert stored_ops(planned(build(3))) == ["max"], "windows side by side compute nothing twice"


def test_windows_of_a_sum_of_many_values_store_the_sum_and_not_the_windows() -> None:
    """As of a depthwise convolution after residuals, whose products are nine times as large."""

    def build() -> Node:
        total = value(8, 8)
        for _ in range(6):
            total = apply("add", primitives.permute(total, (1, 0)), value(8, 8))
        padded = primitives.pad(total, ((1, 1), (1, 1)))
        windows = primitives.window(primitives.window(padded, 0, 3), 1, 3)
        return fold("sum", apply("multiply", windows, value(8, 8, 3, 3)), 2, 3)

    plan = planned(build())
    assert stored_ops(plan) == ["add", "sum"]


def test_a_map_pulled_at_many_indices_is_stored() -> None:
    def build(count: int) -> Node:
        inner = apply("exp", value(8, 16))
        total = primitives.flip(inner, (0,))
        for number in range(1, count):
            part = primitives.flip(
                primitives.slice_(primitives.pad(inner, ((0, 0), (number, 0))), ((0, 8, 1), (0, 16, 1))), (1,)
            )
            total = apply("add", total, part)
        return total

    assert stored_ops(planned(build(fuse.MAX_INDEX_MAPS))) == ["add"]
    assert stored_ops(planned(build(fuse.MAX_INDEX_MAPS + 2))) == ["exp", "add"]


def test_a_kernel_reads_no_more_than_the_device_binds() -> None:
    def total() -> Node:
        made = value(8)
        for _ in range(20):
            made = apply("add", made, value(8))
        return made

    for profile, most in (
        (PORTABLE, 8),
        (SOFTWARE, 48),
        (dataclasses.replace(PORTABLE, max_storage_buffers=4), 4),
    ):
        plan = planned(total(), profile=profile)
        assert_valid(plan)
        for group in plan.groups:
            assert len(group.reads) + len(group.outputs) <= most
    assert len(planned(total(), profile=SOFTWARE).groups) == 1


def test_a_kernel_takes_at_most_so_many_scalars() -> None:
    def total() -> Node:
        made = value(8)
        for number in range(40):
            made = apply("multiply" if number % 2 else "add", made, 1.5 + number)
        return made

    plan = planned(total())
    assert_valid(plan)
    assert len(plan.groups) >= 4
    assert all(len(group.scalars) <= fuse.MAX_SCALARS for group in plan.groups)


def test_equal_scalars_count_once() -> None:
    def total() -> Node:
        made = value(8)
        for number in range(40):
            made = apply("multiply" if number % 2 else "add", made, 1.5)
        return made

    assert len(planned(total()).groups) == 1


# Folds


def test_a_fold_takes_maps_before_and_after_it() -> None:
    x, y = value(8, 16), value(8)

    def build() -> Node:
        return apply("exp", apply("add", fold("sum", apply("multiply", x, x), 1), y))

    (group,) = planned(build()).groups
    assert (group.kind, group.row_axes) == ("rows", ((0,),))
    assert set(group.reads) == {at for at, sig in enumerate(graph_of(build()).sigs) if sig.kind == "leaf"}


def test_folds_over_the_same_rows_share_a_kernel() -> None:
    x = value(8, 16)

    def build() -> Node:
        spread = apply("subtract", column(fold("max", x, 1)), column(fold("min", x, 1)))
        return apply("divide", x, spread)

    assert stored_ops(planned(build())) == ["divide"]


def test_folds_over_other_rows_do_not_share_a_kernel() -> None:
    x = value(32, 16)

    def build() -> Node:
        return apply("add", apply("add", x, column(fold("max", x, 1))), fold("max", x, 0))

    assert len(stored_ops(planned(build()))) == 2


def test_a_fold_of_a_fold_over_its_rows_is_another_kernel() -> None:
    x = value(64, 100)
    assert len(planned(fold("sum", fold("max", x, 1), 0)).groups) == 2


def test_a_fold_with_more_rows_is_another_kernel() -> None:
    """In one kernel the maximum of a whole sample would be computed again for each of its rows."""
    x = value(40, 50, 60)

    def build() -> Node:
        whole = primitives.reshape(fold("max", x, 1, 2), (40, 1, 1))
        return fold("sum", apply("subtract", x, whole), 2)

    assert len(stored_ops(planned(build()))) == 2


def test_a_reshape_that_mixes_rows_ends_the_kernel() -> None:
    x = value(6, 8)

    def kept() -> Node:
        return apply("exp", primitives.reshape(apply("divide", x, column(fold("sum", x, 1))), (2, 3, 8)))

    def mixed() -> Node:
        return apply("exp", primitives.reshape(apply("divide", x, column(fold("sum", x, 1))), (8, 6)))

    assert len(planned(kept()).groups) == 1
    assert stored_ops(planned(mixed())) == ["sum", "exp"]


def test_a_value_with_a_fold_before_it_that_two_kernels_need_is_stored() -> None:
    x = value(32, 64)

    def build() -> list[Node]:
        soft = softmax_of(x)
        return [fold("sum", soft, 0), fold("max", soft, 0)]

    assert stored_ops(planned(*build()))[0] == "divide"


def softmax_of(x: Node) -> Node:
    powers = apply("exp", apply("subtract", x, column(fold("max", x, 1))))
    return apply("divide", powers, column(fold("sum", powers, 1)))


def test_halves_that_would_share_words_end_the_kernel() -> None:
    def build(columns: int) -> Node:
        x = primitives.cast(value(8, columns, dtype=dtypes.float16), dtypes.float32)
        return primitives.cast(apply("divide", x, column(fold("sum", x, 1))), dtypes.float16)

    assert len(planned(build(12)).groups) == 1
    assert len(planned(build(13)).groups) == 2


@pytest.mark.parametrize(("op", "dtype"), [("multiply", dtypes.float16), ("less", dtypes.float32)])
def test_a_fold_that_is_stored_for_one_operand_is_read_by_the_other(op: str, dtype: dtypes.DType) -> None:
    def build() -> Node:
        total = fold("sum", value(5, 7, dtype=dtype), 1)  # of halves it is cast, of floats it is the operand
        return apply(op, apply("exp", primitives.expand(total, (8, 5))), total)

    assert stored_ops(planned(build())) == ["sum", op]


# What the user holds


def test_a_held_value_with_a_fold_before_it_is_stored() -> None:
    x = tensor(16, 64)
    weights = softmax(x)
    result = weights * 2.0
    graph = graph_of(result)
    assert "divide" in stored_ops(planned(result))
    del weights
    assert graph.sigs[graph.roots[0]].op.name == "multiply"
    assert stored_ops(planned(result)) == ["multiply"]


def test_a_held_map_is_not_stored_for_it() -> None:
    inner = apply("exp", value(8))
    result = apply("negative", inner)
    assert stored_ops(planned(result)) == ["negative"]
    assert inner.storage is None


def test_a_mask_inside_a_kernel_of_rows_may_share_words() -> None:
    def build(stored: bool) -> list[Node]:
        x = value(6, 3, 5)
        mask = apply("equal", x, primitives.reshape(fold("max", x, 1), (6, 1, 5)))
        count = fold("sum", primitives.cast(mask, dtypes.float32), 1)
        return [mask, count] if stored else [count]

    assert stored_ops(planned(*build(False))) == ["sum"]
    assert stored_ops(planned(*build(True))) == ["max", "equal", "sum"]


def test_what_a_product_would_compute_too_often_is_stored_before_it_is_moved() -> None:
    """Windows of it would be several times as large."""

    def build() -> Node:
        dear = apply("exp", apply("add", apply("exp", value(2, 3, 10)), value(2, 3, 10)))
        windows = primitives.permute(primitives.window(dear, 2, 5), (0, 3, 1, 2))
        return primitives.contract(value(4, 15), primitives.reshape(windows, (2, 15, 6)))

    assert stored_ops(planned(build())) == ["exp", "matmul"]


def test_a_part_of_what_a_product_would_compute_too_often_is_stored_alone() -> None:
    def build() -> Node:
        dear = apply("exp", apply("add", apply("exp", value(64, 10)), value(64, 10)))
        return primitives.contract(value(4, 2), primitives.slice_(dear, ((0, 2, 1), (0, 10, 1))))

    assert stored_ops(planned(build())) == ["slice", "matmul"]


def test_rows_that_many_kernels_gather_are_gathered_once() -> None:
    def gathered(readers: int) -> list[str]:
        table, index = value(512, 64), value(4, dtype=dtypes.int32)
        rows = primitives.take(table, index, 0)
        return stored_ops(planned(*[primitives.contract(rows, value(64, 32)) for _ in range(readers)]))

    assert "take" not in gathered(2)
    assert gathered(12).count("take") == 1


@pytest.mark.parametrize("bindings", [8, 16, 48])
def test_a_chain_of_residuals_stores_nothing_for_want_of_room(bindings: int) -> None:
    def layer(x: Node) -> Node:
        squares = fold("sum", apply("multiply", x, x), 1)
        normed = apply("multiply", apply("multiply", x, column(apply("rsqrt", squares))), value(64))
        return apply("add", x, primitives.contract(normed, value(64, 64)))

    x = value(1, 64)
    for _ in range(24):
        x = layer(x)
    profile = DeviceProfile("discrete", max_storage_buffers=bindings)
    assert len(planned(x, profile=profile).groups) == 48
