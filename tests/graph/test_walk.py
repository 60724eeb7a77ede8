"""Walking: inputs first, each node once, and graphs of any depth, without recursion."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator

import pytest

from tests.graph.helpers import apply, graph_of, numbers, value
from tests.limits import HANG
from webgrad.graph.node import Node
from webgrad.graph.snapshot import walk
from webgrad.graph.walk import pending
from webgrad.ops import primitives
from webgrad.ops.table import TABLE

DEPTH = 100_000


@pytest.fixture
def shallow_stack() -> Iterator[None]:
    """Little room for recursion: what recurses by depth fails."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(250)
    yield
    sys.setrecursionlimit(limit)


def chain(start: Node, length: int = DEPTH) -> Node:
    negative = TABLE["negative"]
    node = start
    for _ in range(length):
        node = primitives.elementwise(negative, node)
    return node


def assert_inputs_first(order: list[Node]) -> None:
    place = {id(node): at for at, node in enumerate(order)}
    assert len(place) == len(order)
    for node in order:
        assert all(place[id(each)] < place[id(node)] for each in node.inputs)


def test_inputs_come_first_and_once() -> None:
    a, b = value(2), value(2)
    shared = apply("add", a, b)
    left, right = apply("exp", shared), apply("negative", shared)
    root = apply("multiply", left, apply("add", right, a))
    order = pending([root, right])
    assert_inputs_first(order)
    assert {id(each) for each in order} >= {id(each) for each in (a, b, shared, left, right, root)}
    assert len(order) == 7
    assert order[-1] is root


def test_several_roots_equal_roots_and_leaves() -> None:
    a = value(2)
    b = apply("negative", a)
    assert pending([]) == []
    assert pending([a]) == [a]
    assert pending([a, a]) == [a]
    assert pending([b, a, b]) == [a, b]


def test_an_operand_used_twice() -> None:
    a = value(2)
    assert len(pending([apply("add", a, a)])) == 2


def test_a_ladder_of_shared_values_is_walked_in_linear_time() -> None:
    node = value(2)
    for _ in range(2_000):  # 2^2000 paths
        node = apply("add", node, node)
    assert len(pending([node])) == 2_001


def test_a_deep_chain_is_built_walked_and_dropped(shallow_stack: None) -> None:
    start = numbers([1.0])
    last = chain(start)
    order = pending([last])
    assert len(order) == DEPTH + 1
    assert order[0] is start
    assert_inputs_first(order)
    walked = walk([last])
    assert len(walked.nodes) == DEPTH + 1
    middle = weakref.ref(order[DEPTH // 2])
    del order, walked, last
    assert middle() is None  # at once, by reference counts


def test_a_deep_snapshot_is_ordered_and_shown(shallow_stack: None) -> None:
    graph = graph_of(chain(numbers([1.0]), 20_000))
    assert graph.order() == list(range(20_001))
    assert repr(graph).count("\n") == 20_000


def test_a_wide_and_deep_comb_is_dropped(shallow_stack: None) -> None:
    add = TABLE["add"]
    node = start = numbers([1.0])
    for _ in range(DEPTH // 4):
        node = primitives.elementwise(add, primitives.elementwise(add, node, start), node)
    assert len(pending([node])) == DEPTH // 2 + 1
    node = start


def test_a_deep_chain_is_dropped_in_a_thread_with_a_small_stack() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            last = chain(numbers([1.0]))
            assert len(pending([last])) == DEPTH + 1
        except BaseException as error:
            failures.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(HANG)
    finally:
        threading.stack_size(before)
    assert not thread.is_alive()
    assert failures == []
