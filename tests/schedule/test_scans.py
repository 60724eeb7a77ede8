"""Long running totals in chunks: which are cut, that results stay what they were, and what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.helpers import apply, graph_of, value
from tests.schedule.graphs import PORTABLE, SOFTWARE, assert_valid, planned
from tests.schedule.test_split_reductions import PROFILES, computed, leaves_of, node_of
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.graph.snapshot import Snapshot
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule.scans import split_scans


def chunks_of(graph: Snapshot) -> list[tuple[int, ...]]:
    """The attributes of every scan that is needed: (axis,), or (axis, chunk)."""
    return [graph.sigs[each].attributes for each in graph.order() if graph.sigs[each].kind == "scan"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((70_001,), 0), ((3, 9_000), 1), ((9_000, 8), 0), ((2, 5_000, 3), 1)]
)
def test_long_axes_are_cut_and_results_stay(
    profile: DeviceProfile, name: str, shape: tuple[int, ...], axis: int
) -> None:
    array = np.random.default_rng(1).integers(-3, 3, shape).astype(np.int32)
    graph = graph_of(primitives.scan(TABLE[name], node_of(array, dtypes.int32), axis))
    expected = computed(graph, leaves_of(graph, array))
    split_scans(graph, profile)
    found = chunks_of(graph)
    assert len(found) > 1
    assert [len(each) for each in found][-1] == 2
    assert all(chunk % 4 == 0 and chunk % 32 for _, chunk in (each for each in found if len(each) == 2))
    assert graph.sigs[graph.roots[0]].shape == shape
    np.testing.assert_array_equal(computed(graph, leaves_of(graph, array))[0], expected[0])


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_not_cut(profile: DeviceProfile) -> None:
    for shape, axis in [
        ((100,), 0),
        ((20_000, 500), 1),
        ((500, 20_000), 0),
        ((0, 9_000), 1),
        ((9_000, 0), 0),
    ]:
        graph = graph_of(primitives.scan(TABLE["cumulative_sum"], value(*shape), axis))
        split_scans(graph, profile)
        assert chunks_of(graph) == [(axis,)]
    graph = graph_of(primitives.scan(TABLE["cumulative_prod"], value(10**6), 0))  # floats
    split_scans(graph, profile)
    assert chunks_of(graph) == [(0,)]


def test_totals_of_very_many_chunks_are_cut_again() -> None:
    graph = graph_of(primitives.scan(TABLE["cumulative_sum"], value(1 << 24), 0))
    split_scans(graph, PORTABLE)
    assert [len(each) for each in chunks_of(graph)] == [1, 2, 2]


def test_cheap_maps_are_computed_in_both_passes_and_dear_ones_stored() -> None:
    def stored(name: str) -> list[str]:
        x = apply(name, apply(name, value(1 << 20)))
        plan = planned(primitives.scan(TABLE["cumulative_sum"], x, 0), profile=SOFTWARE)
        assert_valid(plan)
        return [plan.graph.sigs[group.outputs[0]].op.name for group in plan.groups]

    assert stored("negative") == ["sum", "cumulative_sum", "cumulative_sum"]
    assert stored("exp") == ["exp", "sum", "cumulative_sum", "cumulative_sum"]
