"""The important graphs, and the devices they are scheduled for; nothing here needs a GPU.

`SOFTWARE` is the profile of Mesa's software adapter, `PORTABLE` what every WebGPU device has. `planned`
schedules, `launches` goes on to the text.
"""

from __future__ import annotations

import pytest

from tests.graph.helpers import CPU, graph_of, tensor
from webgrad.device_profile import PORTABLE, DeviceProfile
from webgrad.functions.array.creation import arange
from webgrad.functions.array.elementwise import sqrt, where
from webgrad.functions.array.manipulation import roll
from webgrad.functions.array.products import linear
from webgrad.functions.learning.activations import gelu, softmax
from webgrad.functions.learning.attention import scaled_dot_product_attention
from webgrad.functions.learning.normalisation import layer_norm
from webgrad.graph.node import Node
from webgrad.graph.snapshot import Snapshot
from webgrad.kernels.launch import Launch
from webgrad.lower.compile import compile_schedule
from webgrad.schedule.plan import Group, Schedule
from webgrad.schedule.schedule import schedule
from webgrad.tensor import Tensor

__all__ = [
    "INTEGRATED",
    "PORTABLE",
    "PROFILES",
    "SOFTWARE",
    "adam_step",
    "assert_valid",
    "fused_block",
    "launches",
    "planned",
    "profile",
    "rolled_sums",
    "tall_stack",
    "transformer_block",
]

SOFTWARE = DeviceProfile(
    kind="software",
    features=frozenset({"f16", "f64", "int64", "subgroups", "immediates"}),
    subgroup_size=8,
    max_storage_buffers=48,
)
INTEGRATED = DeviceProfile("integrated", frozenset({"subgroups"}), 32, max_storage_buffers=16)
PROFILES = {"software": SOFTWARE, "integrated": INTEGRATED, "portable": PORTABLE}


@pytest.fixture(params=list(PROFILES.values()), ids=list(PROFILES))
def profile(request: pytest.FixtureRequest) -> DeviceProfile:
    """Each kind of device."""
    assert isinstance(request.param, DeviceProfile)
    return request.param


def planned(*roots: Node | Tensor, profile: DeviceProfile = SOFTWARE, fuse: bool = True) -> Schedule:
    """The schedule of a graph."""
    return schedule(graph_of(*roots), profile, fuse=fuse)


def launches(*roots: Node | Tensor, profile: DeviceProfile = SOFTWARE) -> list[Launch]:
    """Every launch of a graph, verified after each pass."""
    compiled = compile_schedule(planned(*roots, profile=profile), profile, check=True)
    return [each for _, made in compiled for each in made]


def assert_valid(plan: Schedule) -> None:
    """Each read is a leaf or comes from an earlier bundle; each value is stored once; roots are stored."""
    graph = plan.graph
    stored: set[int] = set()
    assert sorted(each for bundle in plan.bundles for each in bundle) == list(range(len(plan.groups)))
    for bundle in plan.bundles:
        made: list[int] = []
        for at in bundle:
            group = plan.groups[at]
            for each in group.reads:
                assert graph.sigs[each].kind == "leaf" or each in stored, (
                    f"%{each} is read before it is stored"
                )
            for each in group.scalars:
                assert graph.sigs[each].kind == "scalar"
            assert len({sizes_of(graph, group, place) for place in range(len(group.outputs))}) == 1
            assert set(group.outputs) <= set(group.inside)
            assert_closed(plan, at)
            made += group.outputs
        assert not stored & set(made)
        assert len(set(made)) == len(made)
        stored |= set(made)
    assert {each for each in graph.roots if graph.sigs[each].kind not in ("leaf", "scalar")} <= stored


def sizes_of(graph: Snapshot, group: Group, place: int) -> tuple[int, ...]:
    """What all outputs of a group have in common: the shape, or the sizes of the rows."""
    shape = graph.sigs[group.outputs[place]].shape
    return tuple(shape[axis] for axis in group.row_axes[place]) if group.kind == "rows" else shape


def assert_closed(plan: Schedule, at: int) -> None:
    """All that a group's nodes need is inside of it, read, or a number; inputs come first."""
    group = plan.groups[at]
    known = {*group.reads, *group.scalars}
    for number in group.inside:
        assert set(plan.graph.inputs[number]) <= known, f"%{number} needs what its group does not have"
        known.add(number)


# Graphs


def transformer_block(x: Tensor, heads: int = 8, hidden: int = 2048) -> Tensor:
    """Pre-norm: attention with a causal mask and separate q, k and v, then a gelu network."""
    batch, length, width = x.shape

    def norm(x: Tensor) -> Tensor:
        return layer_norm(x, width, tensor(width), tensor(width))

    def dense(x: Tensor, to: int) -> Tensor:
        return linear(x, tensor(to, x.shape[-1]), tensor(to))

    def by_head(x: Tensor) -> Tensor:
        return x.reshape((batch, length, heads, width // heads)).permute((0, 2, 1, 3))

    h = norm(x)
    q, k, v = (by_head(dense(h, width)) for _ in range(3))
    place = arange(length, device=CPU)
    visible = place.reshape((length, 1)) >= place.reshape((1, length))
    weights = softmax(where(visible, (q @ k.mT) * (width // heads) ** -0.5, -1e9))
    x = x + dense((weights @ v).permute((0, 2, 1, 3)).reshape((batch, length, width)), width)
    return x + dense(gelu(dense(norm(x), hidden)), width)


def fused_block(x: Tensor, heads: int = 8, hidden: int = 2048) -> Tensor:
    """The same with one matrix for q, k and v, and the attention function."""
    batch, length, width = x.shape

    def norm(x: Tensor) -> Tensor:
        return layer_norm(x, width, tensor(width), tensor(width))

    def dense(x: Tensor, to: int) -> Tensor:
        return linear(x, tensor(to, x.shape[-1]), tensor(to))

    parts = (
        dense(norm(x), 3 * width).reshape((batch, length, 3, heads, width // heads)).permute((2, 0, 3, 1, 4))
    )
    attended = scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
    x = x + dense(attended.permute((0, 2, 1, 3)).reshape((batch, length, width)), width)
    return x + dense(gelu(dense(norm(x), hidden)), width)


def adam_step(count: int = 20) -> list[Tensor]:
    """New parameters and moments of `count` parameters, all of different shapes."""
    results: list[Tensor] = []
    for number in range(count):
        shape = [(64 + number, 64), (64 + number,), (3, 5, number + 2)][number % 3]
        parameter, gradient, mean, square = (tensor(*shape) for _ in range(4))
        mean = mean * 0.9 + gradient * 0.1
        square = square * 0.999 + gradient * gradient * 0.001
        step = (mean / 0.19) / (sqrt(square / 0.002) + 1e-8)
        results += [parameter - step * 1e-3, mean, square]
    return results


def rolled_sums(x: Tensor, count: int = 10) -> Tensor:
    """x + roll(x, 1), and so on with 2, 4, …: computed by pulling alone this would double every time."""
    for number in range(count):
        x = x + roll(x, 2**number, axis=1)
    return x


def tall_stack(x: Tensor, count: int) -> Tensor:
    """Norms, gelus and softmaxes on top of each other."""
    for number in range(count):
        x = (layer_norm, gelu, softmax)[number % 3](x)
    return x
