"""Sorts whose order nobody else wants are sorts of the elements; others are left as they are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.helpers import graph_of
from tests.schedule.test_split_reductions import computed, leaves_of, node_of
from webgrad import dtypes
from webgrad.graph.node import Node, make
from webgrad.graph.snapshot import Snapshot
from webgrad.ops.table import TABLE
from webgrad.schedule.sorted_values import sort_values

X = np.array([[3.0, -0.0, np.nan, 1.0, 0.0, 3.0]], np.float32)


def ops_of(graph: Snapshot) -> list[str]:
    return [graph.sigs[each].op.name for each in graph.order() if graph.sigs[each].kind in ("sort", "gather")]


def sorted_by(x: Node, of: Node, descending: bool = False, count: int = 6) -> tuple[Node, Node]:
    places = make(TABLE["sort_places"], (of,), (descending, count))
    return places, make(TABLE["take_along"], (x, places), (1,))


@pytest.mark.parametrize("descending", [False, True])
def test_a_sort_is_one_of_elements(descending: bool) -> None:
    x = node_of(X, dtypes.float32)
    graph = graph_of(sorted_by(x, x, descending)[1])
    (expected,) = computed(graph, leaves_of(graph, X))
    sort_values(graph)
    assert ops_of(graph) == ["sort_values"]
    np.testing.assert_array_equal(computed(graph, leaves_of(graph, X))[0], expected)


def test_places_that_are_wanted_and_other_values_stay() -> None:
    x, y = node_of(X, dtypes.float32), node_of(X[:, ::-1].copy(), dtypes.float32)
    for roots in (sorted_by(x, x), sorted_by(x, x, count=5)[1:], sorted_by(y, x)[1:]):
        graph = graph_of(*roots)
        sort_values(graph)
        assert ops_of(graph) == ["sort_places", "take_along"]
