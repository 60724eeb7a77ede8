"""How gradients go through graphs: order, depth, sharing, and what is let go."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.selection import first
from webgrad.gradients.differentiate import order_of
from webgrad.gradients.history import History


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is let go is let go by its references, not by the collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def parameter(values: Any) -> Any:
    """A tensor that asks for a gradient."""
    return wg.asarray(values).requires_grad_()


# Graphs


def test_order_has_inputs_first_and_each_once() -> None:
    x = parameter([1.0])
    a = x * 2
    b = a * a
    c = a + b
    order = order_of([c.node])
    assert len(order) == len({id(each) for each in order}) == 4
    places = {id(each): at for at, each in enumerate(order)}
    assert [places[id(each.node)] for each in (x, a, b, c)] == [0, 1, 2, 3]
    assert order_of([c.node], {id(a.node)})[0] is a.node


def test_a_value_used_in_many_ways_is_passed_once() -> None:
    """Two paths at each of 60 levels: 2**60 of them if each were walked."""
    x = parameter([1.0])
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    y.sum().backward()
    assert x.grad.item() == 1.0


def test_rules_are_only_used_for_inputs_that_are_asked_for() -> None:
    x, frozen = parameter(np.ones((3, 4), np.float32)), wg.ones((4, 5))
    made: list[str] = []
    (x @ frozen).register_hook(lambda g: made.append("product"))
    y = x @ frozen
    y.register_hook(lambda g: made.append("y"))
    y.sum().backward()
    assert made == ["y"]
    assert frozen.grad is None


@pytest.mark.parametrize("length", first(1, [10_000, 100_000]))
def test_long_chains_do_not_recurse(length: int) -> None:
    x = parameter([1.0, 2.0])
    y = x
    limit = sys.getrecursionlimit()
    for _ in range(length):
        y = y + 0.001
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert sys.getrecursionlimit() == limit
    del y


def test_long_chains_are_dropped_without_being_differentiated() -> None:
    x = parameter([1.0])
    y = x
    for _ in range(12_000):
        y = y * 1.0
    del y
    assert (x * 2).sum().item() == 2.0


def test_second_derivatives_of_long_chains() -> None:
    x = parameter([0.5])
    y = x
    for _ in range(40):
        y = y * 1.0 + 0.0 * y * y
    y.sum().backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.sum().backward()
    assert x.grad.tolist() == [0.0]


# What is let go


def test_histories_are_let_go_by_backward(no_collector: None) -> None:
    x = parameter(np.ones((4, 4), np.float32))
    hidden = wg.exp(x @ x)
    inner = weakref.ref(hidden.node)
    loss = (hidden * hidden).sum()
    loss.backward()
    assert isinstance(loss.node.history, History)
    assert loss.node.history.inputs == ()
    del hidden
    wg.eval(loss, x.grad)
    assert inner() is None
    assert loss.requires_grad


def test_what_nobody_holds_dies_without_backward(no_collector: None) -> None:
    x = parameter([1.0, 2.0])
    y = wg.exp(x) * 2
    z = (y * y).sum()
    nodes = [weakref.ref(each.node) for each in (y, z)]
    del y, z
    assert [each() for each in nodes] == [None, None]


def test_tensors_and_gradients_die_with_their_owner(no_collector: None) -> None:
    x = parameter([1.0, 2.0])
    (x * x).sum().backward()
    wg.eval()  # until it is computed, a gradient refers to the values it is made of
    seen = [weakref.ref(x), weakref.ref(x.grad), weakref.ref(x.node)]
    del x
    assert [each() for each in seen] == [None, None, None]


def test_second_order_graphs_die_too(no_collector: None) -> None:
    """With create_graph a gradient refers to its tensor, and is held by it: setting it to None parts them."""
    x = parameter([1.0, 2.0])
    (x**3).sum().backward(create_graph=True)
    seen = weakref.ref(x.grad.node)
    x.grad = None
    assert seen() is None
    second = wg.grad(wg.grad(lambda x: x**3))(wg.asarray(2.0))
    node = weakref.ref(second.node)
    del second
    assert node() is None


def test_a_loop_of_training_holds_no_more_nodes(no_collector: None) -> None:
    from webgrad.graph.node import Node

    w, x = parameter(np.ones((3, 3), np.float32)), wg.ones((2, 3))

    def count() -> int:
        return sum(isinstance(each, Node) for each in gc.get_objects())

    counts = []
    for _ in range(8):
        wg.relu(x @ w).sum().backward()
        with wg.no_grad():
            w -= 0.01 * w.grad
        w.grad = None
        wg.eval()
        counts.append(count())
    assert counts[-1] <= counts[2]


def test_backward_without_reading_holds_nothing_that_it_does_not_need(no_collector: None) -> None:
    """exp needs its result, not its input: the product before it is not kept."""
    x = parameter(np.ones((4, 4), np.float32))
    product = x @ x
    inner = weakref.ref(product.node)
    y = wg.exp(product)
    wg.eval(y)
    del product
    history = y.node.history
    assert history.inputs[0] is inner()  # the way on to x goes through it
    y.sum().backward()
    wg.eval()
    assert inner() is None
