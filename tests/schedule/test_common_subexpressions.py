"""Equal values of a graph: read from one place, unless somebody wants each of them."""

from __future__ import annotations

from tests.graph.helpers import apply, graph_of, value
from tests.schedule.graphs import planned
from tests.schedule.test_fuse import stored_ops
from webgrad.graph.node import Node
from webgrad.ops import primitives
from webgrad.schedule.common_subexpressions import share_common_subexpressions


def sources(root: Node) -> tuple[int, ...]:
    """What a graph's only root reads, after sharing."""
    graph = graph_of(root)
    share_common_subexpressions(graph)
    return graph.inputs[graph.roots[0]]


def test_what_is_computed_twice_from_the_same_is_one_value() -> None:
    x = value(4, 4)
    first, second = sources(apply("add", apply("exp", apply("sin", x)), apply("exp", apply("sin", x))))
    assert first == second


def test_large_values_stay_apart() -> None:
    """A checkpoint computes them again to spare memory."""
    x = value(128, 128)
    first, second = sources(apply("add", apply("exp", apply("sin", x)), apply("exp", apply("sin", x))))
    assert first != second


def test_other_leaves_ops_and_attributes_are_other_values() -> None:
    x, y = value(4, 4), value(4, 4)
    pairs = [
        (apply("exp", x), apply("exp", y)),
        (apply("exp", x), apply("sin", x)),
        (apply("subtract", x, y), apply("subtract", y, x)),
        (primitives.flip(x, (0,)), primitives.flip(x, (1,))),
    ]
    for pair in pairs:
        first, second = sources(apply("add", *pair))
        assert first != second


def test_roots_stay_values_of_their_own() -> None:
    x = value(4, 4)
    assert stored_ops(planned(apply("exp", x), apply("exp", x))) == ["exp", "exp"]


def test_a_dear_value_made_by_each_of_its_readers_is_stored_once() -> None:
    x = value(64, 64)

    def read(axis: int) -> Node:
        dear = apply("sin", apply("exp", apply("sin", apply("exp", x))))
        return primitives.contract(dear, primitives.flip(x, (axis,)))

    assert stored_ops(planned(read(0), read(1))).count("sin") == 1
