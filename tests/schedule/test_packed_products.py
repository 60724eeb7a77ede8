"""Products with quantised blocks: when they stay packed, and what is stored around them."""

from __future__ import annotations

import pytest

from tests.graph.helpers import CPU, apply, value
from tests.schedule.graphs import PORTABLE, SOFTWARE, assert_valid, planned
from tests.schedule.test_fuse import stored_ops
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.graph.node import Node, leaf, make
from webgrad.ops import primitives
from webgrad.ops.blocks import FORMATS, word_count
from webgrad.ops.table import TABLE
from webgrad.schedule.plan import MAX_THIN_ROWS


def weights(rows: int = 64, columns: int = 256, words: Node | None = None) -> Node:
    count = word_count(FORMATS["Q4_K"], rows * columns // 256)
    found = leaf(object(), (count,), dtypes.uint32, CPU) if words is None else words
    return make(TABLE["decode"], (found,), ("Q4_K", (rows, columns)))


def turned(rows: int = 64, columns: int = 256, words: Node | None = None) -> Node:
    return primitives.permute(weights(rows, columns, words), (1, 0))


@pytest.mark.parametrize("profile", [SOFTWARE, PORTABLE])
def test_a_thin_product_is_one_kernel_over_words(profile: DeviceProfile) -> None:
    def build() -> Node:
        product = primitives.contract(apply("multiply", value(2, 256), 2.0), turned())
        return apply("add", apply("exp", product), value(64))

    plan = planned(build(), profile=profile)
    assert_valid(plan)
    (group,) = plan.groups
    assert plan.graph.sigs[group.center].op.name == "matmul_blocks"
    assert sorted(plan.graph.sigs[each].dtype.name for each in group.reads) == [
        "float32",
        "float32",
        "uint32",
    ]


def test_a_gpu_unpacks_for_tiles_as_they_are_loaded() -> None:
    plan = planned(primitives.contract(value(MAX_THIN_ROWS + 1, 256), turned()), profile=PORTABLE)
    assert stored_ops(plan) == ["matmul"]
    assert [plan.graph.sigs[each].dtype.name for each in plan.groups[0].reads] == ["float32", "uint32"]
    assert stored_ops(planned(primitives.contract(value(MAX_THIN_ROWS + 1, 256), turned()))) == [
        "matmul_blocks"
    ]


def test_other_products_unpack_as_they_load() -> None:
    assert stored_ops(planned(primitives.contract(value(4, 64), weights()))) == ["matmul"]
    assert stored_ops(planned(primitives.contract(weights(), value(256, 8)))) == ["matmul"]


def test_words_that_are_computed_are_stored() -> None:
    def words() -> Node:
        count = word_count(FORMATS["Q4_K"], 64)
        return apply("bitwise_or", value(count, dtype=dtypes.uint32), value(count, dtype=dtypes.uint32))

    assert stored_ops(planned(primitives.contract(value(4, 256), turned(words=words())))) == [
        "bitwise_or",
        "matmul_blocks",
    ]
    assert stored_ops(planned(apply("exp", weights(words=words())))) == ["bitwise_or", "exp"]


def test_weights_are_unpacked_inside_maps_and_folds() -> None:
    assert stored_ops(planned(apply("exp", weights()))) == ["exp"]
    rows = make(TABLE["sum"], (weights(),), ((1,),))
    assert stored_ops(planned(rows)) == ["sum"]


def test_nothing_is_kept_packed_for_an_empty_result() -> None:
    assert stored_ops(planned(primitives.contract(value(0, 256), turned()))) == ["matmul"]
