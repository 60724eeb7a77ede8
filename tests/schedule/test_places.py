"""Movement that begins where a run says: the gathers that it becomes give what slices and pads gave."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.helpers import graph_of
from tests.schedule.test_split_reductions import computed, leaves_of, node_of
from webgrad import dtypes
from webgrad.graph.node import Node
from webgrad.ops import primitives
from webgrad.schedule.places import begin_anywhere, numbers_at

X = np.arange(60.0, dtype=np.float32).reshape(5, 12)


def moved(start: int, column: int, kind: str) -> Node:
    x = node_of(X, dtypes.float32)
    ranges = ((start, start + 2, 1), (column, column + 7, 3))
    if kind == "slice":
        return primitives.slice_(x, ranges)
    if kind == "element":
        return primitives.slice_(x, ((start, start + 1, 1), (column, column + 1, 1)))
    if kind == "pad":
        return primitives.pad(x, ((start, 4 - start), (column, 6 - column)), 7)
    one = primitives.slice_(x, ((2, 3, 1), (0, 12, 1)))
    return primitives.pad(one, ((start, 4 - start), (0, 0)))


@pytest.mark.parametrize("kind", ["slice", "element", "pad", "row"])
def test_a_plan_for_one_place_serves_all(kind: str) -> None:
    first, other = moved(1, 2, kind), moved(3, 0, kind)
    assert first.sig is not other.sig
    assert first.sig.form == other.sig.form
    graph = graph_of(first)
    count = len(graph)
    places = begin_anywhere(graph, {first.sig.form})
    assert [graph.sigs[each].kind for each in range(count, count + len(places))] == ["scalar"] * len(places)
    for node, start, column in ((first, 1, 2), (other, 3, 0)):
        values = leaves_of(graph, X)
        nodes = [node] * count
        for at, each in enumerate(numbers_at(places, nodes), count):
            values[at] = np.array(each, np.int32)
        for at, sig in enumerate(graph.sigs[:count]):
            if sig.kind == "scalar":
                values[at] = np.array(7 if kind == "pad" else 0, sig.dtype.numpy)
        (wanted,) = computed_plainly(start, column, kind)
        np.testing.assert_array_equal(computed(graph, values)[0], wanted)


def computed_plainly(start: int, column: int, kind: str) -> list[np.ndarray]:
    if kind == "slice":
        return [X[start : start + 2, column : column + 7 : 3]]
    if kind == "element":
        return [X[start : start + 1, column : column + 1]]
    if kind == "pad":
        return [np.pad(X, ((start, 4 - start), (column, 6 - column)), constant_values=7)]
    return [np.pad(X[2:3], ((start, 4 - start), (0, 0)))]


def test_what_differs_in_more_than_its_place_has_another_form() -> None:
    x = node_of(X, dtypes.float32)
    whole = (0, 12, 1)
    forms = [
        primitives.slice_(x, (rows, whole)).sig.form for rows in ((0, 2, 1), (1, 3, 1), (0, 3, 1), (0, 3, 2))
    ]
    assert forms[0] == forms[1]
    assert len(set(forms)) == 3


def test_movement_of_other_forms_stays() -> None:
    graph = graph_of(moved(1, 2, "slice"))
    before = list(graph.sigs)
    assert begin_anywhere(graph, {-5}) == []
    assert graph.sigs == before
