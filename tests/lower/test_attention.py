"""Attention's lowering: what its holes are, and that every choice of it gives the same results."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import tensor
from tests.lower.helpers import lowered
from tests.properties.helpers import gpu
from tests.properties.running import profiled
from tests.schedule.graphs import INTEGRATED, PORTABLE, SOFTWARE, planned
from webgrad.device_profile import DeviceProfile
from webgrad.evaluate.evaluate import clear_plans
from webgrad.evaluate.gpu_plan import GpuPlan
from webgrad.functions.learning.attention import scaled_dot_product_attention
from webgrad.graph.snapshot import Snapshot, snapshot, walk
from webgrad.lower import attention
from webgrad.lower.choices import Choice
from webgrad.lower.ir import Kernel
from webgrad.schedule.plan import Group
from webgrad.tensor import Tensor

WITHOUT = DeviceProfile("software", max_storage_buffers=16)  # software without subgroups
FOUR = DeviceProfile("software", frozenset({"subgroups"}), 4)


def attended(queries: int = 128, columns: int = 64, heads: int = 8, room: int = 128) -> Tensor:
    q, k = tensor(1, heads, queries, columns), tensor(1, heads, room, columns)
    return scaled_dot_product_attention(q, k, tensor(*k.shape), is_causal=True)


def only(made: Tensor, profile: DeviceProfile) -> Kernel:
    (kernel,) = lowered(made, profile=profile)
    assert kernel.template is not None
    return kernel


def options(made: Tensor, profile: DeviceProfile) -> tuple[Choice, ...]:
    plan = planned(made, profile=profile)
    return attention.attention_choices(plan.graph, plan.groups[0], profile)


@pytest.mark.parametrize(
    ("profile", "file", "workgroup"),
    [
        (SOFTWARE, "attention.pwgsl", 8),
        (WITHOUT, "attention.pwgsl", 8),
        (INTEGRATED, "attention_tile.pwgsl", 128),
        (PORTABLE, "attention_tile.pwgsl", 128),
    ],
)
def test_the_profile_chooses_the_template(profile: DeviceProfile, file: str, workgroup: int) -> None:
    kernel = only(attended(), profile)
    assert kernel.template is not None
    assert (kernel.template.file, kernel.workgroup) == (file, workgroup)
    assert ("subgroups" in kernel.template.requires) == (profile is SOFTWARE)


def test_large_heads_have_fewer_rows_and_roll_their_loads() -> None:
    rows = {}
    for columns in (32, 64, 128, 192, 256):
        template = only(attended(columns=columns), SOFTWARE).template
        assert template is not None
        defines = dict(template.defines)
        rows[columns] = int(defines["ROWS"])
        assert ("ROLLED" in defines) == (columns > 128)
    assert rows == {32: 16, 64: 16, 128: 8, 192: 8, 256: 8}


def test_few_queries_have_few_rows() -> None:
    assert [dict(options(attended(queries=each), SOFTWARE)[0])["rows"] for each in (1, 2, 3, 9)] == [
        1,
        2,
        4,
        16,
    ]


def test_four_lanes_have_half_the_rows_and_look_at_one_key_in_a_step() -> None:
    for columns in (16, 32, 64, 128):
        assert options(attended(columns=columns), FOUR)[0] == (("rows", 8), ("keys", 1))
    assert dict(options(attended(queries=3), FOUR)[0])["rows"] == 4


@pytest.mark.parametrize("profile", [SOFTWARE, FOUR, WITHOUT, PORTABLE])
def test_choices_are_different_and_the_first_is_the_default(profile: DeviceProfile) -> None:
    made = attended()
    found = options(made, profile)
    assert len(set(found)) == len(found) >= 2
    plan = planned(made, profile=profile)
    default = attention.lower_attention(plan.graph, plan.groups[0], profile)
    first = attention.lower_attention(plan.graph, plan.groups[0], profile, found[0])
    assert default.template == first.template


@pytest.mark.gpu
def test_every_choice_gives_the_same() -> None:
    arrays = [
        np.random.default_rng(each).standard_normal((1, 2, 21, 12)).astype(np.float32) for each in range(3)
    ]
    tensors = [wg.asarray(each, device=gpu()) for each in arrays]
    made = scaled_dot_product_attention(tensors[0], tensors[1], tensors[2])
    found = options(made, gpu().profile)
    wanted = made.numpy()
    for choice in found[1:]:

        def chosen(
            graph: Snapshot, group: Group, profile: DeviceProfile, choice: Choice = choice
        ) -> tuple[Choice]:
            return (choice,)

        clear_plans()
        with patch.object(attention, "attention_choices", chosen):
            again = scaled_dot_product_attention(tensors[0], tensors[1], tensors[2]).numpy()
        np.testing.assert_allclose(again, wanted, rtol=1e-5, atol=1e-6)
    clear_plans()


@pytest.mark.gpu
@pytest.mark.parametrize("fuse", [True, False])
def test_small_bindings_and_grids(fuse: bool) -> None:
    """Values in several parts, more workgroups than a line of the grid has; every op by itself, too."""
    device = profiled(max_storage_buffers=16, max_binding_bytes=8192, max_workgroups=7)
    arrays = [
        np.random.default_rng(each).standard_normal((2, 3, 50, 16)).astype(np.float32) for each in range(3)
    ]
    q, k, v = (wg.asarray(each, device=device) for each in arrays)
    nodes = [wg.relu(scaled_dot_product_attention(q, k, v)).node]
    walked = walk(nodes)
    plan = GpuPlan(snapshot(walked, nodes), device, fuse=fuse)
    assert len(plan.steps) == (1 if fuse else 2)
    (stored,) = plan.run(walked.nodes)
    scores = np.exp(arrays[0].astype(np.float64) @ arrays[1].swapaxes(2, 3) / 4)
    wanted = np.maximum(scores @ arrays[2] / scores.sum(3, keepdims=True), 0)
    found = device.read(stored).view(np.float32).reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_explain_shows_it() -> None:
    x = wg.asarray(np.ones((2, 8, 16), np.float32), device="cpu")
    (kernel,) = wg.explain(wg.relu(scaled_dot_product_attention(x, x, x))).kernels
    assert kernel.ops == ("reshape", "attention", "reshape", "clamp_min")
    assert "hole finish" in kernel.ir
    assert "@finish(" in kernel.text
