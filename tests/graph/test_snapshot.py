"""Snapshots: equal structures have equal keys, whatever their values; what someone holds is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.graph.helpers import CPU, apply, fold, graph_of, numbers, tensor, value
from webgrad import dtypes
from webgrad.functions.learning.activations import log_softmax, softmax
from webgrad.functions.learning.normalisation import layer_norm
from webgrad.graph.node import Node, scalar
from webgrad.graph.snapshot import Snapshot, snapshot, walk
from webgrad.ops import primitives


def key(build: Callable[..., Node], *leaves: Node) -> Any:
    """The key of a graph of which only the root is held."""
    root = build(*leaves)
    return walk([root]).key


def a_plus_a(a: Node, b: Node) -> Node:
    return apply("add", a, a)


def a_plus_b(a: Node, b: Node) -> Node:
    return apply("add", a, b)


def test_a_plus_a_is_not_a_plus_b() -> None:
    assert key(a_plus_a, value(3), value(3)) != key(a_plus_b, value(3), value(3))


def test_equal_structures_have_equal_keys() -> None:
    def build(a: Node, b: Node) -> Node:
        return fold("sum", apply("multiply", apply("exp", a), apply("add", a, b)), 1)

    first = key(build, numbers([[1.0, 2.0]]), numbers([[3.0, 4.0]]))
    assert key(build, numbers([[5.0, 6.0]]), numbers([[7.0, 8.0]])) == first
    assert key(build, numbers([[5.0, 6.0, 7.0]]), numbers([[7.0, 8.0, 9.0]])) != first
    same = numbers([[1.0, 2.0]])
    assert key(build, same, same) != first


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda a, b: apply("subtract", a, b), lambda a, b: apply("subtract", b, apply("negative", a))),
        (lambda a, b: fold("sum", a, 0), lambda a, b: fold("sum", a, 1)),
        (lambda a, b: fold("sum", a, 0), lambda a, b: fold("max", a, 0)),
        (lambda a, b: apply("exp", a), lambda a, b: apply("exp", apply("exp", a))),
        (lambda a, b: primitives.flip(a, (0,)), lambda a, b: primitives.flip(a, (1,))),
        # as trees the same; the second computes the shared part once
        (
            lambda a, b: apply("add", apply("exp", a), apply("exp", a)),
            lambda a, b: (lambda e: apply("add", e, e))(apply("exp", a)),
        ),
    ],
)
def test_different_structures_have_different_keys(first: Any, second: Any) -> None:
    a, b = value(4, 4), value(4, 4)
    assert key(first, a, b) != key(second, a, b)


def test_roots_are_part_of_the_key() -> None:
    a = apply("exp", value(3))
    b = apply("negative", a)
    assert len({walk(roots).key for roots in ([a, b], [b, a], [b])}) == 3


def test_the_key_is_flat_numbers() -> None:
    made = key(a_plus_b, value(2), value(2))
    assert type(made) is tuple
    assert {type(each) for each in made} == {int}
    hash(made)


# Scalars


def test_values_of_scalars_are_not_in_the_key() -> None:
    def scaled(factor: float) -> Any:
        return key(lambda a: apply("multiply", a, factor), value(3))

    assert scaled(2.0) == scaled(3.5) == scaled(math.nan)


def two_scalars(first: float, second: float) -> Any:
    return key(lambda a: apply("multiply", apply("multiply", a, first), second), value(3))


def test_equal_scalars_are_shared() -> None:
    assert two_scalars(2.0, 2.0) == two_scalars(7.0, 7.0)
    assert two_scalars(2.0, 2.0) != two_scalars(2.0, 3.0)
    node = apply("multiply", apply("multiply", value(3), 2.0), 2.0)
    graph = graph_of(node)
    used = {each for inputs in graph.inputs for each in inputs if graph.sigs[each].kind == "scalar"}
    assert len(used) == 1


def test_equal_scalars_of_different_ops_are_apart() -> None:
    def mixed(first: float, second: float) -> Any:
        return key(lambda a: apply("add", apply("multiply", a, first), second), value(3))

    assert mixed(2.0, 2.0) == mixed(
        2.0, 3.0
    )  # else a step in which two happen to agree were another structure


def test_minus_zero_is_not_zero() -> None:
    assert two_scalars(0.0, -0.0) == two_scalars(1.0, 2.0)
    assert two_scalars(-0.0, -0.0) == two_scalars(0.0, 0.0) == two_scalars(1.0, 1.0)


def test_scalars_of_different_dtypes_are_not_shared() -> None:
    a, b = value(3), value(3, dtype=dtypes.int32)
    node = apply("add", apply("multiply", a, 2.0), primitives.cast(apply("multiply", b, 2), dtypes.float32))
    graph = graph_of(node)
    used = {each for inputs in graph.inputs for each in inputs if graph.sigs[each].kind == "scalar"}
    assert {graph.sigs[each].dtype.name for each in used} == {"float32", "int32"}


def test_true_and_one_are_not_shared_across_dtypes() -> None:
    true, one = scalar(True, dtypes.bool, CPU), scalar(1, dtypes.int32, CPU)
    walked = walk([true, one])
    assert walked.numbers[true] != walked.numbers[one]


# What is held


def held(*roots: Node) -> set[int]:
    return set(graph_of(*roots).held) - set(graph_of(*roots).roots)


def test_nothing_inside_is_held_when_only_the_root_is() -> None:
    def chain(a: Node) -> Node:
        return apply("negative", apply("exp", apply("negative", a)))

    root = chain(value(3))
    assert held(root) == set()


def test_no_input_of_the_root_is_held_by_the_walk_itself() -> None:
    x = tensor(4, 8)
    for function in (softmax, log_softmax, layer_norm):
        made = function(x)
        assert held(made.node) == set(), function.__name__


def test_a_value_that_a_variable_refers_to_is_held() -> None:
    inner = apply("exp", value(3))
    root = apply("negative", inner)
    walked = walk([root])
    assert walked.nodes[walked.numbers[inner]] is inner
    assert walked.numbers[inner] in walked.held
    number = walked.numbers[inner]
    before = walked.key
    del walked, inner
    again = walk([root])
    assert number not in again.held
    assert again.key != before  # another plan: it need not be stored


def test_a_value_used_twice_is_not_held_for_it() -> None:
    def build(a: Node) -> Node:
        inner = apply("exp", a)
        return apply("add", apply("multiply", inner, inner), inner)

    assert held(build(value(3))) == set()


def test_a_value_that_another_graph_needs_is_held() -> None:
    def build(a: Node) -> tuple[Node, Node]:
        inner = apply("exp", a)
        return apply("negative", inner), apply("sqrt", inner)

    first, second = build(value(3))
    graph = graph_of(first)
    kinds = {graph.sigs[each].op.name for each in graph.held - set(graph.roots)}
    assert kinds == {"exp"}
    assert held(first, second) == set()


def test_leaves_and_scalars_are_never_held() -> None:
    a = value(3)
    number = scalar(2.0, dtypes.float32, CPU)
    root = apply("multiply", a, number)
    assert held(root) == set()


# As numbers


def test_a_snapshot_is_the_graph_as_numbers() -> None:
    a, b = value(2, 3), value(3)
    root = fold("sum", apply("add", a, b), 0)
    walked = walk([root])
    graph = snapshot(walked, [root])
    assert len(graph) == 4
    assert graph.roots == (3,)
    assert [each.op.name for each in graph.sigs] == ["leaf", "leaf", "add", "sum"]
    first, second = graph.inputs[2]
    assert (graph.sigs[first].shape, graph.sigs[second].shape) == ((2, 3), (3,))
    assert graph.inputs[3] == (2,)
    assert graph.order()[2:] == [2, 3]
    assert repr(graph).splitlines()[2:] == [
        f"%2 = add (2, 3) float32(%{first}, %{second})",
        "%3 = sum ((0,),) (3) float32(%2)  → result",
    ]
    assert f"%{second} = leaf (3) float32()" in repr(graph)


def test_what_is_added_comes_in_order_where_the_roots_need_it() -> None:
    graph = graph_of(apply("exp", value(3)))
    extra = graph.add(graph.sigs[1], (0,))
    assert extra == 2
    assert graph.order() == [0, 1]
    graph.inputs[1] = (extra,)
    assert graph.order() == [0, 2, 1]


def test_order_of_a_graph_with_shared_parts() -> None:
    sig = value(1).sig
    graph = Snapshot([sig] * 5, [(), (0,), (0, 1), (2, 1), (3, 3)], (4, 1))
    order = graph.order()
    assert sorted(order) == [0, 1, 2, 3, 4]
    place = {each: at for at, each in enumerate(order)}
    assert all(place[i] < place[each] for each in order for i in graph.inputs[each])
