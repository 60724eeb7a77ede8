"""Sorts and searches of elements by unsigned keys: values stay, and no other sorts are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import graph_of, value
from tests.schedule.graphs import SOFTWARE
from tests.schedule.test_split_reductions import computed, leaves_of, node_of
from webgrad import dtypes
from webgrad.dtypes import DType, as_dtype
from webgrad.graph.node import Node, make
from webgrad.ops.table import TABLE
from webgrad.schedule.schedule import schedule
from webgrad.schedule.sorting import sort_by_keys
from webgrad.schedule.work import work_of

Array = np.ndarray[Any, Any]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.5, -1.5, 3.0, 0.0])


def check(node: Node, *arrays: Array) -> list[str]:
    """That the pass changes no value; gives the ops of order that are left."""
    graph = graph_of(node)
    leaves = leaves_of(graph, *arrays)
    (expected,) = computed(graph, leaves)
    sort_by_keys(graph)
    np.testing.assert_array_equal(computed(graph, leaves)[0], expected)
    return [graph.sigs[each].op.name for each in graph.order() if graph.sigs[each].kind == "sort"]


def drawn(dtype: DType, shape: tuple[int, ...]) -> Array:
    generator = np.random.default_rng(len(shape))
    if dtype.kind == "f":
        values = generator.standard_normal(shape)
        values[..., : len(SPECIAL)] = SPECIAL
        return values.astype(dtype.numpy)
    low, high = (0, 1) if dtype.kind == "b" else dtype.limits
    numbers = generator.integers(low, high, shape, np.uint64 if low == 0 else np.int64, endpoint=True)
    numbers[..., ::3] = numbers[..., :1]
    return numbers.astype(dtype.numpy)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda dtype: dtype.name)
def test_every_dtype(dtype: DType, descending: bool) -> None:
    x = drawn(dtype, (3, 40))
    for count in (40, 7):
        node = make(TABLE["sort_places"], (node_of(x, dtype),), (descending, count))
        assert check(node, x) == ["sort_order"] * (1 + (dtype.itemsize == 8))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda dtype: dtype.name)
def test_searches(dtype: DType, side: str) -> None:
    x = drawn(dtype, (2, 30))
    for length in (0, 1, 8, 13):
        line = drawn(dtype, (length + 10,))[10:]
        line = line[np.argsort(line.astype(np.float32) if dtype.is_half else line, kind="stable")]
        node = make(TABLE["search_places"], (node_of(line, dtype), node_of(x, dtype)), (side,))
        assert check(node, line, x) == []


def test_wide_keys_are_sorted_by_halves() -> None:
    x = drawn(dtypes.int64, (3, 40))
    x[:, ::3] &= 0xFFFFFFFF  # ties in the high word
    x[:, 1::3] &= ~0xFFFFFFFF  # and in the low one
    x[2] = x[2] >> 62
    floats = np.concatenate([SPECIAL, np.array([5e-324, -5e-324, 1.5])])
    for each in (x, floats):
        for descending in (False, True):
            dtype = as_dtype(each.dtype)
            node = make(TABLE["sort_places"], (node_of(each, dtype),), (descending, each.shape[-1]))
            assert check(node, each) == ["sort_order", "sort_order"]


@pytest.mark.parametrize("descending", [False, True])
def test_the_first_few_of_many_are_found_in_parts(descending: bool) -> None:
    x = np.random.default_rng(3).integers(0, 300, (2, 20_001)).astype(np.int32)
    for count in (1, 50):
        node = make(TABLE["sort_places"], (node_of(x, dtypes.int32),), (descending, count))
        assert len(check(node, x)) > 1


@pytest.mark.parametrize("descending", [False, True])
def test_of_equal_ones_in_different_parts_the_first_are_taken(descending: bool) -> None:
    x = np.zeros((1, 20_000), np.int32)
    x[0, 15_000] = 1 if descending else -1
    node = make(TABLE["sort_places"], (node_of(x, dtypes.int32),), (descending, 3))
    assert len(check(node, x)) > 1


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
def test_bins_and_counts(dtype: DType, even: bool) -> None:
    x = drawn(dtype, (500,)) * dtype.numpy.type(2)
    edges = np.array([-3, -1, 1, 3] if even else [-3, -0.5, -0.5, 2, 2], dtype.numpy)
    nodes = tuple(node_of(each, dtype) for each in (x, edges))
    assert check(make(TABLE["bin_places"], nodes, (even,)), x, edges) == []
    assert check(make(TABLE["counts_between"], nodes, (even,)), x, edges) == []
    none = make(TABLE["counts_between"], (node_of(x[:0], dtype), nodes[1]), (even,))
    assert check(none, x[:0], edges) == []


def test_every_kernel_is_about_the_users_node() -> None:
    x = value(3, 20_000)
    sort = make(TABLE["sort_places"], (x,), (False, 5))
    search = make(TABLE["search_places"], (value(1000), x), ("left",))
    for each in (sort, search):
        graph = graph_of(each)
        count = len(graph)
        plan = schedule(graph, SOFTWARE)
        assert {work_of(graph, [group], count).origin for group in plan.groups} == set(graph.roots)
