"""What shares a kernel with matrix products, scans, sorts and scatters, and which results need no kernel."""

from __future__ import annotations

import pytest

from tests.graph.helpers import CPU, apply, fold, graph_of, value
from tests.schedule.graphs import SOFTWARE, assert_valid, planned
from tests.schedule.test_fuse import stored_ops
from webgrad import dtypes
from webgrad.functions.learning.activations import leaky_relu
from webgrad.graph.node import Node, scalar
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule import fuse
from webgrad.schedule.fuse import choose_stored
from webgrad.tensor import Tensor

# Contractions, scans, sorts, scatters


def test_a_contraction_takes_cheap_maps_on_its_way_in() -> None:
    a, b = value(16, 32), value(32, 8)

    def cheap() -> Node:
        return primitives.contract(
            apply("multiply", a, 2.0), primitives.cast(value(32, 8, dtype=dtypes.float16), dtypes.float32)
        )

    def dear() -> Node:
        x = a
        for _ in range(fuse.MAX_OPERAND_COST // TABLE["exp"].cost + 1):
            x = apply("exp", x)
        return primitives.contract(x, b)

    assert stored_ops(planned(cheap())) == ["matmul"]
    assert stored_ops(planned(dear())) == ["exp", "matmul"]


def test_two_contractions_are_two_kernels() -> None:
    a, b = value(16, 16), value(16, 16)

    def build() -> Node:
        return apply("add", primitives.contract(a, b), primitives.contract(b, a))

    assert len(stored_ops(planned(build()))) == 2


def test_a_fold_of_a_contraction_is_another_kernel() -> None:
    a, b = value(16, 16), value(16, 16)
    assert stored_ops(planned(fold("max", primitives.contract(a, b), 1))) == ["matmul", "max"]


def test_a_contraction_with_two_readers_is_stored() -> None:
    def build() -> list[Node]:
        product = primitives.contract(value(16, 32), value(32, 16))
        return [apply("exp", product), apply("negative", primitives.permute(product, (1, 0)))]

    assert "matmul" in stored_ops(planned(*build()))


def test_a_contraction_may_be_asked_for_twice_on_its_way_out() -> None:
    def product(columns: int) -> Node:
        return primitives.contract(value(16, 32), value(32, columns))

    def silu(*shape: int) -> Node:
        x = primitives.reshape(product(16), shape)
        return apply("multiply", x, apply("sigmoid", x))

    def leaky() -> Tensor:
        return leaky_relu(Tensor(product(17)))

    def gated() -> Node:
        return apply("multiply", silu(16, 16), product(16))

    assert stored_ops(planned(silu(16, 16))) == ["multiply"]
    assert stored_ops(planned(silu(4, 64))) == ["multiply"]
    assert stored_ops(planned(leaky())) == ["where"]  # its mask is packed, and not stored
    assert stored_ops(planned(gated())) == ["matmul", "multiply"]


def test_halves_whose_rows_share_words_are_not_stored_by_a_contraction() -> None:
    def build(columns: int, wide: bool = False) -> Node:
        product = primitives.contract(value(16, 32), value(32, columns))
        half = apply("negative", apply("exp", primitives.cast(product, dtypes.float16)))
        return primitives.cast(half, dtypes.float32) if wide else half

    assert stored_ops(planned(build(16))) == ["negative"]
    assert stored_ops(planned(build(17))) == ["matmul", "negative"]
    assert stored_ops(planned(build(17, wide=True))) == ["cast"]


@pytest.mark.parametrize("name", ["scan", "sort", "scatter"])
def test_scans_sorts_and_scatters_stand_alone(name: str) -> None:
    def build() -> Node:
        if name == "scan":
            made = primitives.scan(TABLE["cumulative_sum"], apply("exp", value(8, 16)), 1)
        elif name == "sort":
            made = primitives.sort_order(apply("add", value(8, 16, dtype=dtypes.uint32), 1))
            return apply("negative", made)
        else:
            base, updates = apply("exp", value(8, 4)), apply("exp", value(5, 4))
            made = primitives.scatter(TABLE["scatter_set"], base, value(5, dtype=dtypes.int32), updates)
        return apply("negative", made)

    plan = planned(build())
    assert_valid(plan)
    group = next(each for each in plan.groups if each.kind == name)
    assert group.outputs == (group.center,)
    inputs = plan.graph.inputs[group.center]
    if name == "scan":  # takes maps before it
        assert len(plan.groups) == 2
    else:
        assert set(inputs) == set(group.reads)


# Roots


def test_roots_that_are_there_need_no_kernel() -> None:
    plan = planned(value(3), scalar(2.0, dtypes.float32, CPU))
    assert (plan.groups, plan.bundles) == ((), ())


def test_a_root_inside_another_root_is_stored() -> None:
    inner = apply("exp", value(8, 16))
    outer = fold("sum", apply("multiply", inner, 2.0), 1)
    assert sorted(stored_ops(planned(outer, inner))) == ["exp", "sum"]


def test_without_fusion_all_but_movement_is_stored() -> None:
    x = value(4, 6)
    root = apply("exp", primitives.permute(apply("add", x, 1.0), (1, 0)))
    stored, _ = choose_stored(graph_of(root), SOFTWARE, fuse=False)
    graph = graph_of(root)
    assert sorted(graph.sigs[each].op.name for each in stored) == ["add", "exp"]
