"""Ops that no kernel has become others: what is left over is what kernels have, and values stay."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.helpers import graph_of
from tests.schedule.test_split_reductions import computed, leaves_of, node_of
from webgrad import dtypes
from webgrad.dtypes import as_dtype
from webgrad.graph.snapshot import Snapshot
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule.legalise import legalise


def index_dtypes(graph: Snapshot) -> list[str]:
    """The dtypes of the indices of all scatters and gathers that are needed."""
    needed = [each for each in graph.order() if graph.sigs[each].kind in ("scatter", "gather")]
    return [graph.sigs[graph.inputs[each][1]].dtype.name for each in needed]


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_places_of_every_width_become_int32_and_do_not_wrap(name: str) -> None:
    low, high = as_dtype(name).limits
    places = np.array([low, 1, high, min(high, 2**32 + 2)], name)
    base, updates = np.zeros((5, 2), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2) + 1
    index = node_of(places, as_dtype(name))
    nodes = [node_of(each, dtypes.float32) for each in (base, updates)]
    written = primitives.scatter(TABLE["scatter_add"], nodes[0], index, nodes[1])
    graph = graph_of(written, primitives.take(nodes[1], index, 0))
    leaves = leaves_of(graph, base, updates, places)
    expected = computed(graph, leaves)
    legalise(graph)
    narrow = name if as_dtype(name).itemsize < 8 else "int32"
    assert index_dtypes(graph) == ["int32", narrow]
    for found, wanted in zip(computed(graph, leaves), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
