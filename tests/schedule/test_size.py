"""No kernel is larger than a driver compiles in half a second, whatever is computed.

Sizes are counted, not timed: `scripts/fuzz_compiles.py` measures the processor time of compilers.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.graph.helpers import tensor
from tests.schedule.graphs import SOFTWARE, launches, planned
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.array.elementwise import exp, sin
from webgrad.functions.learning.activations import softmax
from webgrad.graph.snapshot import Snapshot
from webgrad.lower.size import emitted_size
from webgrad.schedule.plan import Group
from webgrad.schedule.size import COMPONENT, MAX_SIZE, group_size
from webgrad.tensor import Tensor

# What a prediction may be off by: indices that are computed, lanes that are loaded one by one.
SLACK = 1.3


def largest(*roots: Tensor, profile: DeviceProfile = SOFTWARE) -> int:
    """The size of the largest kernel; each is bounded as it was predicted and as it was written."""
    plan = planned(*roots, profile=profile)
    assert all(group_size(plan.graph, group) <= MAX_SIZE for group in plan.groups)
    return max(emitted_size(each.kernel) for each in launches(*roots, profile=profile))


def random_maps(seed: int, count: int, size: int) -> list[Tensor]:
    """The newest of many values, each made of two before it, all of which are wanted."""
    draw = random.Random(seed)
    pool = [tensor(size)]
    for _ in range(count):
        pool.append(draw.choice(pool[-50:]) * 0.5 + draw.choice(pool[-50:]) * 0.5)
    return pool[-50:]


@pytest.mark.parametrize(("seed", "size"), [(0, 3), (1, 1 << 16)])
def test_random_maps_that_are_never_read(seed: int, size: int, profile: DeviceProfile) -> None:
    assert largest(*random_maps(seed, 150, size), profile=profile) <= SLACK * MAX_SIZE


def product(count: int, *shape: int) -> Tensor:
    made = tensor(*shape)
    for _ in range(count - 1):
        made = made * tensor(*shape)
    return made


MANY: dict[str, Callable[[], Tensor]] = {
    "a map of many": lambda: product(47, 64),
    "a map of many, in halves": lambda: product(47, 64).astype(dtypes.float16),
    "a fold of many": lambda: product(31, 64, 128).sum(axis=1),
    "three loops over many": lambda: softmax(product(31, 64, 128), -1),
    "a product and many": lambda: tensor(64, 64) @ tensor(64, 64) + product(31, 64, 64),
    "sines of float64": lambda: sin(sin(sin(sin(tensor(64, dtype=dtypes.float64))))),
}


@pytest.mark.parametrize("name", MANY)
def test_what_loads_or_computes_much_is_cut(name: str, profile: DeviceProfile) -> None:
    assert largest(MANY[name](), profile=profile) <= SLACK * MAX_SIZE


def test_a_value_counts_wherever_it_is_loaded() -> None:
    """The folds of a softmax are loops of their own, each of which loads the row again."""
    row = tensor(64, 128)
    one = group_size(*_only(row.sum(axis=1)))
    three = group_size(*_only(softmax(row, -1)))
    assert three - one >= 2 * 4 * COMPONENT
    shared = row * row + row
    assert group_size(*_only(shared)) == 2 + 2 * COMPONENT  # loaded once, stored once


def test_a_function_of_float64_is_longer() -> None:
    short, long = (
        group_size(*_only(exp(tensor(8, dtype=each)))) for each in (dtypes.float32, dtypes.float64)
    )
    assert long > short + 2 * COMPONENT  # by more than its wider elements


def test_many_loads_go_one_by_one() -> None:
    """By fours there would be four times as many; few loads stay by fours, which runs faster."""
    (many,), (few,) = (launches(product(each, 64), profile=SOFTWARE) for each in (40, 4))
    assert "vec4" not in many.program.text
    assert "vec4" in few.program.text


def _only(root: Tensor) -> tuple[Snapshot, Group]:
    plan = planned(root, profile=SOFTWARE)
    (group,) = plan.groups
    return plan.graph, group
