"""Kernels that share: maps of one shape become one kernel, maps of one structure one launch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graph.helpers import apply, fold, numbers, value
from tests.schedule.graphs import INTEGRATED, PORTABLE, PROFILES, SOFTWARE, assert_valid, planned
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.graph.node import Node
from webgrad.ops import primitives
from webgrad.schedule.size import MAX_SIZE, group_size


def test_maps_that_read_the_same_become_one_kernel() -> None:
    def build() -> list[Node]:
        x = value(8, 16)
        return [apply("exp", x), apply("negative", x), apply("add", x, 1.0)]

    plan = planned(*build())
    assert_valid(plan)
    (group,) = plan.groups
    assert len(group.outputs) == 3
    assert len(group.reads) == 1


def test_a_map_that_reads_another_in_place_joins_it() -> None:
    inner = apply("exp", value(8, 16))
    outer = apply("negative", apply("sqrt", inner))
    plan = planned(inner, outer)
    (group,) = plan.groups
    assert len(group.outputs) == 2
    assert len(group.reads) == 1  # the inner one is not read back


@pytest.mark.parametrize("each", [0, 1, 4])
def test_many_elements_of_longer_values_spare_a_binding_for_their_places(each: int) -> None:
    """Each place is a parameter, and what is more than travels with a command is bound."""
    x = value(1) if each == 0 else value(100)

    def element(at: int) -> Node:
        return primitives.slice_(x, ((at, at + 1, 1),)) if each else x

    def result(at: int) -> Node:
        total = apply("add", element(at), float(at))
        for more in range(1, each):
            total = apply("multiply", total, element(at + 10 * more))
        return total

    profile = dataclasses.replace(PORTABLE, max_storage_buffers=8)
    plan = planned(*[result(at) for at in range(7)], profile=profile)
    assert_valid(plan)
    bound = [len(group.reads) + len(group.outputs) for group in plan.groups]
    assert max(bound) == (7 if each == 4 else 8)


@pytest.mark.parametrize("move", ["flip", "roll", "transpose"])
def test_a_map_that_reads_another_elsewhere_does_not_join_it(move: str) -> None:
    inner = apply("exp", value(8, 8))
    moved = {
        "flip": primitives.flip(inner, (0,)),
        "roll": primitives.concat(
            [
                primitives.slice_(inner, ((1, 8, 1), (0, 8, 1))),
                primitives.slice_(inner, ((0, 1, 1), (0, 8, 1))),
            ],
            0,
        ),
        "transpose": primitives.permute(inner, (1, 0)),
    }[move]
    plan = planned(inner, apply("add", moved, inner))
    assert_valid(plan)
    assert [len(group.outputs) for group in plan.groups] == [1, 1]
    assert len({each for group in plan.groups for each in group.inside}) == sum(
        len(group.inside) for group in plan.groups
    )  # nothing is computed twice


def test_maps_of_other_shapes_stay_apart() -> None:
    x = value(8, 16)
    plan = planned(apply("exp", x), primitives.reshape(apply("sqrt", x), (128,)))
    assert_valid(plan)
    assert len(plan.groups) == 2


@pytest.mark.parametrize(("first", "second", "kernels"), [(0, 0, 1), (1, 1, 1), (0, 1, 2), (1, 0, 2)])
def test_folds_of_a_square_share_a_kernel_along_one_axis_only(first: int, second: int, kernels: int) -> None:
    x = value(8, 8)
    plan = planned(fold("sum", x, first), fold("max", x, second))
    assert_valid(plan)
    assert len(plan.groups) == kernels


def test_folds_of_other_lengths_stay_apart() -> None:
    x = value(6, 4, 4)
    part = primitives.slice_(x, ((0, 6, 1), (0, 1, 1), (0, 4, 1)))
    plan = planned(fold("sum", primitives.reshape(x, (6, 16)), 1), fold("max", part, 2))
    assert_valid(plan)
    assert len(plan.groups) == 2


def test_nothing_is_merged_around_another_kernel() -> None:
    """c needs a through a fold: a and c must not become one kernel, though both read x."""
    x = value(8, 16)
    a = apply("exp", x)
    total = fold("sum", a, 1)
    c = apply("add", x, primitives.reshape(fold("max", primitives.flip(a, (1,)), 1), (8, 1)))
    d = apply("multiply", x, primitives.expand(primitives.reshape(total, (8, 1)), (8, 16)))
    for profile in PROFILES.values():
        assert_valid(planned(a, total, c, d, profile=profile))


def test_merged_kernels_stay_within_the_limits() -> None:
    def build() -> list[Node]:
        x = value(8, 16)
        return [apply("add", apply("multiply", x, value(8, 16)), value(8, 16)) for _ in range(12)]

    for profile in (PORTABLE, SOFTWARE, dataclasses.replace(SOFTWARE, max_storage_buffers=12)):
        plan = planned(*build(), profile=profile)
        assert_valid(plan)
        for group in plan.groups:
            assert len(group.reads) + len(group.outputs) + 1 <= profile.max_storage_buffers
            assert group_size(plan.graph, group) <= MAX_SIZE


# Bundles


def step(shape: tuple[int, ...], rate: float = 0.1, dtype: dtypes.DType = dtypes.float32) -> Node:
    return apply("subtract", value(*shape, dtype=dtype), apply("multiply", value(*shape, dtype=dtype), rate))


def test_independent_maps_of_one_structure_share_a_launch() -> None:
    plan = planned(*[step((side, 3)) for side in range(5, 15)])
    assert_valid(plan)
    assert len(plan.groups) == 10
    assert len(plan.bundles) == 1


def test_other_structures_and_dtypes_take_other_launches() -> None:
    plan = planned(step((5,)), step((6,)), apply("exp", value(7)), step((8,), dtype=dtypes.float16))
    assert_valid(plan)
    assert sorted(map(len, plan.bundles)) == [1, 1, 2]


def test_maps_that_store_other_values_take_other_launches() -> None:
    """The same is computed, but only one of them keeps what comes between."""
    between = apply("exp", value(5))
    plan = planned(between, apply("sqrt", between), apply("sqrt", apply("exp", value(6))))
    assert_valid(plan)
    assert [len(group.outputs) for group in plan.groups] == [2, 1]
    assert sorted(map(len, plan.bundles)) == [1, 1]


def test_maps_that_need_each_other_do_not_share_a_launch() -> None:
    def build() -> list[Node]:
        first = [apply("exp", value(side)) for side in (5, 6)]
        second = [apply("exp", apply("add", fold("sum", each, 0), value(9))) for each in first]
        return [*first, *second]

    plan = planned(*build())
    assert_valid(plan)


def test_broadcast_maps_are_not_bundled() -> None:
    plan = planned(apply("add", value(5, 8), value(8)), apply("add", value(6, 8), value(8)))
    assert_valid(plan)
    assert len(plan.bundles) == 2


def test_bundles_bind_no_more_than_the_device_allows() -> None:
    roots = [step((side,)) for side in range(10, 60)]
    plan = planned(*roots)
    assert_valid(plan)
    for bundle in plan.bundles:
        bound = {e for at in bundle for e in (*plan.groups[at].reads, *plan.groups[at].outputs)}
        assert len(bound) + 1 <= SOFTWARE.max_storage_buffers
    assert 4 <= len(plan.bundles) <= 6
    assert max(len(bundle) for bundle in planned(*roots, profile=PORTABLE).bundles) <= 2


def test_values_over_the_binding_limit_are_not_bundled() -> None:
    small = dataclasses.replace(SOFTWARE, max_binding_bytes=1024)
    plan = planned(step((500,)), step((501,)), step((10,)), step((11,)), profile=small)
    assert sorted(map(len, plan.bundles)) == [1, 1, 2]


# Any graph

OPS = ("add", "multiply", "maximum")


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """A few nodes over leaves of (6, 4): maps, folds put back, flips and products; several roots."""
    made = [numbers(np.sin(np.arange(24.0) + at).reshape(6, 4)) for at in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, 14))):
        a, b = draw(st.sampled_from(made)), draw(st.sampled_from(made))
        kind = draw(st.integers(0, 6))
        if kind < 3:
            node = apply(OPS[kind], a, b)
        elif kind == 3:
            node = apply("subtract", a, primitives.reshape(fold("max", b, 1), (6, 1)))
        elif kind == 4:
            node = apply("add", a, fold("sum", b, 0))
        elif kind == 5:
            node = primitives.flip(a, (draw(st.integers(0, 1)),))
        else:
            node = primitives.contract(primitives.contract(a, primitives.permute(b, (1, 0))), a)
        made.append(node)
    return [made[-1], *draw(st.lists(st.sampled_from(made), max_size=3))]


@pytest.mark.property
@given(roots=graphs())
def test_any_schedule_is_valid(roots: list[Node]) -> None:
    for profile in PROFILES.values():
        assert_valid(planned(*roots, profile=profile))
        assert_valid(planned(*roots, profile=profile, fuse=False))


def test_maps_with_a_number_from_memory_share_a_launch() -> None:
    rate = value()
    plan = planned(*[apply("multiply", value(side), rate) for side in (8, 5, 16)])
    assert_valid(plan)
    assert len(plan.groups) == 3
    assert len(plan.bundles) == 1


def test_a_number_that_both_read_is_no_reason_to_become_one_kernel() -> None:
    rate = value()
    plan = planned(*[apply("multiply", value(8), rate) for _ in range(3)])
    assert len(plan.groups) == 3  # of one structure, so that any count of them has one text
    assert len(plan.bundles) == 1


def test_what_nobody_reads_waits_for_its_kin() -> None:
    first = value(8)
    second = primitives.contract(value(4, 3), value(3, 2))
    plan = planned(second, apply("sqrt", apply("exp", first)), apply("sqrt", apply("exp", second)))
    assert_valid(plan)
    assert [len(each) for each in plan.bundles] == [1, 2]


def test_long_maps_go_by_fours_and_fewer_share_a_launch() -> None:
    def updates(sides: list[int]) -> list[Node]:
        rate = value()
        made: list[Node] = []
        for side in sides:
            gradient = value(side)
            mean = apply("add", value(side), apply("multiply", gradient, 0.1))
            square = apply("add", value(side), apply("multiply", gradient, 0.2))
            made += [mean, square, apply("divide", apply("multiply", mean, rate), apply("sqrt", square))]
        return made

    def sizes(sides: list[int], profile: DeviceProfile = SOFTWARE) -> list[int]:
        plan = planned(*updates(sides), profile=profile)
        assert_valid(plan)
        return [len(each) for each in plan.bundles]

    long = 1 << 15
    assert sizes([50] * 5) == [5]
    assert sizes([long] * 5) == [2, 2, 1]
    assert sizes([50, long, 60]) == [3]  # short ones fill the last launch
    assert sizes([long] * 4, INTEGRATED) == sizes([50] * 4, INTEGRATED)
