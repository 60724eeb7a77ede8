"""A product that only its transpose is read of is computed transposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.functions.devices import everywhere, place
from tests.graph.helpers import apply, graph_of, numbers, value
from tests.schedule.graphs import planned
from webgrad.graph.node import Node
from webgrad.graph.snapshot import Snapshot
from webgrad.ops import primitives
from webgrad.schedule.transposed_products import transpose_products


def transposed(x: Node) -> Node:
    rank = len(x.sig.shape)
    return primitives.permute(x, (*range(rank - 2), rank - 1, rank - 2))


def transposed_products(*roots: Node) -> Snapshot:
    graph = graph_of(*roots)
    transpose_products(graph)
    return graph


def names(graph: Snapshot) -> list[str]:
    return [graph.sigs[each].op.name for each in graph.order() if graph.sigs[each].kind != "leaf"]


def test_the_gradient_of_a_weight_is_stored_as_the_weight_is() -> None:
    x, dy = value(8, 5), value(8, 3)
    graph = transposed_products(transposed(primitives.contract(transposed(x), dy)))
    (root,) = graph.roots
    assert (graph.sigs[root].kind, graph.sigs[root].shape) == ("contract", (3, 5))
    assert names(graph) == ["permute", "matmul"]  # of dy; that of x is undone


def test_one_that_somebody_else_reads_is_left() -> None:
    product = primitives.contract(value(4, 5), value(5, 3))
    assert names(transposed_products(transposed(product), apply("exp", product))) == [
        "matmul",
        "permute",
        "exp",
    ]
    assert names(transposed_products(transposed(product), product)) == ["matmul", "permute"]


def test_other_orders_of_axes_are_left() -> None:
    product = primitives.contract(value(2, 4, 5), value(2, 5, 3))
    assert names(transposed_products(primitives.permute(product, (1, 0, 2)))) == ["matmul", "permute"]


def test_an_update_with_such_a_gradient_reads_it_in_place() -> None:
    x, dy, w = value(8, 6), value(8, 4), value(4, 6)
    gradient = transposed(primitives.contract(transposed(x), dy))
    mean = apply("multiply", gradient, 0.1)
    plan = planned(mean, apply("subtract", w, apply("sqrt", gradient)))
    assert [group.kind for group in plan.groups] == ["contract", "map"]


@everywhere
@pytest.mark.parametrize("shapes", [((5, 4), (4, 3)), ((2, 5, 4), (2, 4, 3)), ((1, 7), (7, 1))], ids=str)
def test_the_values_are_the_same(kind: str, shapes: Any) -> None:
    a, b = (
        np.random.default_rng(at).normal(size=shape).astype(np.float32) for at, shape in enumerate(shapes)
    )
    found = (place(kind, a) @ place(kind, b)).mT + 1.0
    np.testing.assert_allclose(found.numpy(), np.swapaxes(a @ b, -1, -2) + 1, rtol=1e-5, atol=1e-5)


def test_numbers_of_nodes_stay() -> None:
    product = primitives.contract(numbers(np.ones((2, 3))), numbers(np.ones((3, 2))))
    graph = graph_of(apply("exp", transposed(product)))
    roots, size = graph.roots, len(graph)
    transpose_products(graph)
    assert graph.roots == roots
    assert len(graph) >= size
