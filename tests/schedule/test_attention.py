"""Attention in the schedule: what it takes on its way in and out, and when keys are dealt out to chunks."""

from __future__ import annotations

import pytest

from tests.graph.helpers import tensor
from tests.schedule.graphs import PORTABLE, SOFTWARE, assert_valid, planned
from tests.schedule.test_fuse import stored_ops
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.array.elementwise import exp
from webgrad.functions.learning.activations import softmax
from webgrad.functions.learning.attention import scaled_dot_product_attention as attention
from webgrad.functions.learning.positions import rotary_embedding
from webgrad.tensor import Tensor


def some(
    queries: int = 64, keys: int = 64, heads: int = 8, columns: int = 64
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        tensor(1, heads, queries, columns),
        tensor(1, heads, keys, columns),
        tensor(1, heads, keys, columns),
    )


def test_layouts_and_casts_cost_no_kernel(profile: DeviceProfile) -> None:
    def build() -> Tensor:
        q, k, v = (tensor(2, 33, 4, 16, dtype=dtypes.float16).permute((0, 2, 1, 3)) for _ in range(3))
        made = attention(q.astype(dtypes.float32), k.astype(dtypes.float32), v.astype(dtypes.float32))
        return made.permute((0, 2, 1, 3)).reshape((2, 33, 64)) * 2.0 + tensor(2, 33, 64)

    plan = planned(build(), profile=profile)
    assert_valid(plan)
    (group,) = plan.groups
    assert (group.kind, plan.graph.sigs[group.center].op.name) == ("attend", "attention")


def test_a_rotary_embedding_of_queries_costs_no_kernel() -> None:
    angles = tensor(64, 32)

    def build() -> Tensor:
        q, k, v = some()
        return attention(rotary_embedding(q, angles[:, 0].astype(dtypes.int32)), k, v)

    assert len(planned(build()).groups) <= 2


def test_dear_maps_of_keys_are_stored_and_cheap_ones_are_not() -> None:
    q, k, v = some()
    assert stored_ops(planned(attention(q, k * 2.0, v))) == ["attention"]
    assert stored_ops(planned(attention(q, exp(k), v))) == ["exp", "attention"]
    assert stored_ops(planned(attention(exp(q), k, v))) == ["attention"]


def test_folds_before_and_after_are_kernels_of_their_own() -> None:
    q, k, v = some()
    assert len(planned(attention(softmax(q), k, v)).groups) == 2
    assert len(planned(softmax(attention(q, k, v))).groups) == 2


def test_columns_that_move_apart_are_another_kernel() -> None:
    q, k, v = some()
    assert len(planned(attention(q, k, v).mT * 2.0).groups) == 2


def test_halves_that_would_share_words_are_another_kernel() -> None:
    q, k, v = (tensor(1, 2, 9, 7, dtype=dtypes.float16) for _ in range(3))
    plan = planned(attention(q, k, v))
    assert_valid(plan)
    assert [group.kind for group in plan.groups] == ["attend", "map"]


@pytest.mark.parametrize(
    ("queries", "keys", "software", "gpu"),
    [
        (1, 128, 1, 1),
        (1, 300, 1, 2),
        (1, 2048, 2, 16),
        (1, 100_000, 8, 64),
        (64, 2048, 2, 16),
        (512, 2048, 1, 2),
    ],
)
def test_few_queries_over_many_keys_are_dealt_out(queries: int, keys: int, software: int, gpu: int) -> None:
    for profile, chunks in ((SOFTWARE, software), (PORTABLE, gpu)):
        plan = planned(attention(*some(queries, keys)), profile=profile)
        assert_valid(plan)
        (center,) = [group.center for group in plan.groups if group.kind == "attend"]
        assert max(1, plan.graph.sigs[center].attributes[3]) == chunks
        assert len(plan.groups) == (1 if chunks == 1 else 2)
