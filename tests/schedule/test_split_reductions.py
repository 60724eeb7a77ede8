"""Rewriting before fusion: long folds in parts, and ops that no kernel does; results stay what they were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import CPU, apply, fold, graph_of, numbers
from tests.schedule.graphs import PORTABLE, SOFTWARE
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.graph.node import Node, leaf
from webgrad.graph.snapshot import Snapshot
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of
from webgrad.schedule.legalise import legalise
from webgrad.schedule.split_reductions import split_reductions

Array = np.ndarray[Any, Any]
PROFILES = [pytest.param(SOFTWARE, id="software"), pytest.param(PORTABLE, id="portable")]


def computed(graph: Snapshot, leaves: dict[int, Array]) -> list[Array]:
    """The roots' values, node by node."""
    values = dict(leaves)
    for number in graph.order():
        sig = graph.sigs[number]
        if number not in values:
            values[number] = value_of(sig, [values[each] for each in graph.inputs[number]])
        assert values[number].shape == sig.shape
        assert values[number].dtype == sig.dtype.numpy
    return [values[each] for each in graph.roots]


def leaves_of(graph: Snapshot, *arrays: Array) -> dict[int, Array]:
    places = [at for at, sig in enumerate(graph.sigs) if sig.kind == "leaf"]
    found: dict[int, Array] = {}
    for at in places:
        sig = graph.sigs[at]
        found[at] = next(each for each in arrays if each.shape == sig.shape and each.dtype == sig.dtype.numpy)
    return found


def folds_of(graph: Snapshot) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(shape, axes) of every fold that is needed."""
    return [
        (graph.sigs[graph.inputs[each][0]].shape, graph.sigs[each].attributes[0])
        for each in graph.order()
        if graph.sigs[each].kind == "reduce"
    ]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((100_003,), (0,)),
        ((1 << 18,), (0,)),
        ((3, 70_000), (1,)),
        ((5000, 6), (0,)),
        ((9, 7000, 2), (1,)),
        ((70, 80, 90), (0, 2)),
        ((70, 80, 90), (0, 1, 2)),
        ((4, 1, 5, 1, 6), (0, 1, 4)),
        ((0, 5), (0,)),
        ((1, 5), (0,)),
    ],
)
def test_folds_in_parts_give_the_same(
    name: str, shape: tuple[int, ...], axes: tuple[int, ...], profile: DeviceProfile
) -> None:
    generator = np.random.default_rng(7)
    array = generator.integers(-3, 4, shape).astype(np.int32)
    graph = graph_of(fold(name, numbers(array, np.int32), *axes))
    leaves = leaves_of(graph, array)
    expected = computed(graph, leaves)
    split_reductions(graph, profile)
    (result,) = computed(graph, leaves)
    np.testing.assert_array_equal(result, expected[0])
    for source, folded in folds_of(graph):  # one stretch of axes each
        real = [axis for axis in folded if source[axis] != 1]
        assert not real or real == list(range(real[0], real[-1] + 1)) or math.prod(source) == 0


@pytest.mark.parametrize("profile", PROFILES)
def test_a_long_fold_has_work_for_many_threads(profile: DeviceProfile) -> None:
    graph = graph_of(fold("sum", numbers(np.zeros(1 << 24, np.float32)), 0))
    split_reductions(graph, profile)
    lengths = [math.prod(shape[axis] for axis in axes) for shape, axes in folds_of(graph)]
    assert len(lengths) == 2
    assert all(length <= (1 << 24) // 64 for length in lengths)


def test_a_long_fold_of_an_odd_length_keeps_its_parts_aligned() -> None:
    graph = graph_of(fold("sum", numbers(np.zeros((1 << 20) + 3, np.float32)), 0))
    split_reductions(graph, SOFTWARE)
    shapes = [shape for shape, _ in folds_of(graph) if len(shape) == 4]
    assert shapes
    assert all(shape[2] % 4 == 0 for shape in shapes)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("shape", "axis"), [((4096, 1024), 1), ((64, 128), 1), ((300, 16), 1)])
def test_folds_of_many_rows_stay(shape: tuple[int, int], axis: int, profile: DeviceProfile) -> None:
    graph = graph_of(fold("sum", numbers(np.zeros(shape, np.float32)), axis))
    before = (list(graph.sigs), list(graph.inputs))
    split_reductions(graph, profile)
    assert (graph.sigs, graph.inputs) == before


def test_the_numbers_of_nodes_stay() -> None:
    first = fold("sum", numbers(np.ones(1 << 20, np.float32)), 0)
    graph = graph_of(apply("negative", first), first)
    roots = graph.roots
    split_reductions(graph, SOFTWARE)
    assert graph.roots == roots
    assert graph.sigs[roots[0]].op.name == "negative"
    assert graph.sigs[roots[1]].shape == ()


# Rewriting


def node_of(array: Array, dtype: dtypes.DType) -> Node:
    return leaf(array, array.shape, dtype, CPU)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.float16, dtypes.bfloat16])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod", "cumulative_max"])
def test_running_totals_of_packed_types_go_through_32_bits(name: str, dtype: dtypes.DType) -> None:
    array = np.random.default_rng(1).integers(1, 3, (3, 9)).astype(dtype.numpy)
    graph = graph_of(primitives.scan(TABLE[name], node_of(array, dtype), 1))
    expected = computed(graph, leaves_of(graph, array))
    legalise(graph)
    scans = [graph.sigs[each] for each in graph.order() if graph.sigs[each].kind == "scan"]
    assert [each.dtype.itemsize for each in scans] == [4]
    assert graph.sigs[graph.roots[0]].dtype is dtype
    np.testing.assert_array_equal(computed(graph, leaves_of(graph, array))[0], expected[0])


@pytest.mark.parametrize(
    "dtype", [dtypes.int32, dtypes.uint32, dtypes.int8, dtypes.uint16, dtypes.int64, dtypes.float64]
)
@pytest.mark.parametrize(
    ("left", "right"), [((5, 7), (7, 3)), ((2, 5, 7), (7, 3)), ((4, 1, 5, 7), (2, 7, 3)), ((5, 0), (0, 3))]
)
def test_products_that_are_no_float32_become_sums(
    dtype: dtypes.DType, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    generator = np.random.default_rng(2)
    a, b = (generator.integers(0, 9, shape).astype(dtype.numpy) for shape in (left, right))
    graph = graph_of(primitives.contract(node_of(a, dtype), node_of(b, dtype)))
    leaves = leaves_of(graph, a, b)
    expected = computed(graph, leaves)
    legalise(graph)
    assert not any(graph.sigs[each].kind == "contract" for each in graph.order())
    (result,) = computed(graph, leaves)
    assert result.dtype == dtype.numpy
    np.testing.assert_array_equal(result, expected[0])
    np.testing.assert_array_equal(result, np.matmul(a, b))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_products_of_halves_are_summed_in_float32(dtype: dtypes.DType) -> None:
    a = np.random.default_rng(3).normal(size=(4, 6)).astype(dtype.numpy)
    b = np.random.default_rng(4).normal(size=(6, 5)).astype(dtype.numpy)
    graph = graph_of(primitives.contract(node_of(a, dtype), node_of(b, dtype)))
    legalise(graph)
    (inner,) = [graph.sigs[each] for each in graph.order() if graph.sigs[each].kind == "contract"]
    assert inner.dtype is dtypes.float32
    assert graph.sigs[graph.roots[0]].dtype is dtype


def test_what_kernels_do_is_left_alone() -> None:
    a, b = numbers(np.ones((4, 4))), numbers(np.ones((4, 4)))
    graph = graph_of(primitives.scan(TABLE["cumulative_sum"], primitives.contract(a, b), 0))
    before = (list(graph.sigs), list(graph.inputs))
    legalise(graph)
    assert (graph.sigs, graph.inputs) == before
