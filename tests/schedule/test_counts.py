"""How many kernels the important graphs take: the promises of the scheduler, pinned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.graph.helpers import apply, tensor
from tests.schedule.graphs import (
    PORTABLE,
    SOFTWARE,
    adam_step,
    assert_valid,
    fused_block,
    launches,
    planned,
    rolled_sums,
    tall_stack,
    transformer_block,
)
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import gelu, log_softmax, relu, softmax
from webgrad.functions.learning.attention import scaled_dot_product_attention
from webgrad.functions.learning.losses import cross_entropy, mse_loss
from webgrad.functions.learning.normalisation import layer_norm, rms_norm
from webgrad.schedule.size import MAX_SIZE, group_size
from webgrad.tensor import Tensor

pytestmark = pytest.mark.golden

SHAPES = [(256, 512), (4, 128, 512), (2, 3, 5, 77), (1, 1, 4096), (1000, 3), (7,)]


def weighted_layer_norm(x: Tensor) -> Tensor:
    size = x.shape[-1]
    return layer_norm(x, size, tensor(size), tensor(size))


def weighted_rms_norm(x: Tensor) -> Tensor:
    return rms_norm(x, x.shape[-1], tensor(x.shape[-1]))


ROWS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "layer_norm": weighted_layer_norm,
    "rms_norm": weighted_rms_norm,
}


def count(build: Callable[[], Tensor | list[Tensor]], profile: DeviceProfile) -> int:
    """How many kernels run, each of them lowered, verified and written.

    The graph is built here: pytest keeps every part of an asserted expression, and what is held is stored.
    """
    made = build()
    roots = made if isinstance(made, list) else [made]
    plan = planned(*roots, profile=profile)
    assert_valid(plan)
    ready = launches(*roots, profile=profile)
    assert len(ready) == len(plan.bundles)
    for each in ready:
        assert len(each.bound) <= profile.max_storage_buffers, each.kernel.name
    return len(ready)


def test_a_chain_of_maps_is_one_kernel(profile: DeviceProfile) -> None:
    a, b, c = tensor(256, 512), tensor(256, 512), tensor(256, 512)
    assert count(lambda: gelu(a * b + c), profile) == 1
    assert count(lambda: gelu(a * tensor(512) + tensor(256, 1)), profile) == 1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_row_ops_are_one_kernel(name: str, shape: tuple[int, ...], profile: DeviceProfile) -> None:
    # A single long row is split so that every thread has work: that takes kernels of its own.
    rows = 1
    for size in shape[:-1]:
        rows *= size
    made = count(lambda: ROWS[name](tensor(*shape)), profile)
    assert made == 1 if rows > 1 or shape[-1] < 2048 else made <= 5


@pytest.mark.parametrize("name", ROWS)
def test_row_ops_of_halves_are_one_kernel(name: str, profile: DeviceProfile) -> None:
    x = tensor(64, 128, dtype=dtypes.float16)
    assert ROWS[name](x).dtype is dtypes.float16
    assert count(lambda: ROWS[name](x), profile) == 1


def test_row_ops_take_maps_before_and_after(profile: DeviceProfile) -> None:
    x, y = tensor(64, 128), tensor(64, 128)
    assert count(lambda: relu(softmax(x * 0.5 + y)) * y, profile) == 1
    assert count(lambda: x + weighted_rms_norm(x + y), profile) == 1


@pytest.mark.parametrize(
    "shapes", [((64, 128), (128, 256)), ((3, 5, 7), (7, 9)), ((4, 2, 16, 8), (4, 2, 8, 16))]
)
def test_a_matrix_product_takes_its_bias_and_activation(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], profile: DeviceProfile
) -> None:
    x, w = tensor(*shapes[0]), tensor(*shapes[1])
    assert count(lambda: relu(x @ w + tensor(shapes[1][-1])), profile) == 1


def test_a_matrix_product_takes_layouts_and_a_residual(profile: DeviceProfile) -> None:
    x, w = tensor(128, 64), tensor(256, 128)
    assert count(lambda: tensor(64, 256) + gelu(x.mT @ w.mT), profile) == 1


@pytest.mark.parametrize("shape", [(64, 128), (4096, 1024), (5, 3), (1, 7)], ids=str)
def test_mean_squared_error(shape: tuple[int, ...], profile: DeviceProfile) -> None:
    assert count(lambda: mse_loss(tensor(*shape), tensor(*shape)), profile) in (1, 2)


@pytest.mark.parametrize("shape", [(64, 1000), (32, 10), (4096, 1000)], ids=str)
def test_cross_entropy(shape: tuple[int, int], profile: DeviceProfile) -> None:
    labels = tensor(shape[0], dtype=dtypes.int32)
    assert count(lambda: cross_entropy(tensor(*shape), labels), profile) <= 3


def test_a_transformer_block(profile: DeviceProfile) -> None:
    assert count(lambda: transformer_block(tensor(1, 128, 512)), profile) <= 12


def test_a_transformer_block_in_batches(profile: DeviceProfile) -> None:
    assert count(lambda: transformer_block(tensor(4, 33, 64), heads=4, hidden=96), profile) <= 12


def test_a_transformer_block_with_the_attention_function(profile: DeviceProfile) -> None:
    # norm, q k v, attention, projection with its residual, norm, gelu, projection with its residual
    assert count(lambda: fused_block(tensor(1, 128, 512)), profile) == 7
    assert count(lambda: fused_block(tensor(4, 33, 64), heads=4, hidden=96), profile) == 7


def test_a_step_of_decoding_joins_the_chunks_of_a_cache(profile: DeviceProfile) -> None:
    q, k, v = tensor(1, 8, 1, 64), tensor(1, 2, 2048, 64), tensor(1, 2, 2048, 64)

    def build() -> Tensor:
        made = scaled_dot_product_attention(q, k, v, enable_gqa=True, length=100)
        return made.permute((0, 2, 1, 3)).reshape((1, 1, 512))

    assert count(build, profile) == 2


def test_an_optimiser_step_over_many_parameters() -> None:
    assert count(lambda: adam_step(20), SOFTWARE) <= 4
    assert count(lambda: adam_step(20), PORTABLE) == 20  # eight buffers: a kernel for each


def test_rolled_sums_do_not_explode(profile: DeviceProfile) -> None:
    made = launches(rolled_sums(tensor(64, 1024)), profile=profile)
    assert 2 <= len(made) <= 10
    assert max(len(each.kernel.body) for each in made) < 400
    assert max(len(each.program.text) for each in made) < 40_000


def test_a_thousand_nodes_do_not_become_one_kernel(profile: DeviceProfile) -> None:
    plan = planned(tall_stack(tensor(16, 64), 160), profile=profile)
    assert_valid(plan)
    assert len(plan.graph.order()) > 1000
    assert 30 <= len(plan.groups) <= 160  # at most one for each call
    graph = plan.graph
    for group in plan.groups:
        assert group_size(graph, group) <= MAX_SIZE


def test_a_long_chain_of_maps_is_cut(profile: DeviceProfile) -> None:
    x = tensor(64).node
    for _ in range(2000):
        x = apply("add", apply("multiply", x, 0.5), 1.0)
    plan = planned(x, profile=profile)
    assert_valid(plan)
    assert 5 <= len(plan.groups) <= 40
    for group in plan.groups:
        assert group_size(plan.graph, group) <= MAX_SIZE


def test_every_kernel_fits_the_least_device() -> None:
    roots = [
        transformer_block(tensor(1, 16, 64), heads=4, hidden=128),
        *adam_step(5),
        tall_stack(tensor(8, 16), 9),
        rolled_sums(tensor(4, 64), 5),
        sum((tensor(33, 5) for _ in range(30)), start=tensor(33, 5)),
    ]
    plan = planned(*roots, profile=PORTABLE)
    assert_valid(plan)
    for each in launches(*roots, profile=PORTABLE):
        assert len(each.bound) <= 8, each.kernel.name


def test_without_fusion_every_op_is_a_kernel() -> None:
    x = tensor(8, 16)
    plan = planned(softmax(x), fuse=False)
    assert_valid(plan)
    kinds = [plan.graph.sigs[group.outputs[0]].op.name for group in plan.groups]
    assert sorted(kinds) == ["divide", "exp", "max", "subtract", "sum"]
