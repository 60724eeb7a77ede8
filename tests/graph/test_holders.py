"""What is alive, found by the collector, and what other threads do meanwhile."""

from __future__ import annotations

import threading

import webgrad as wg
from webgrad.graph.holders import alive, holders
from webgrad.graph.node import Node
from webgrad.tensor import Tensor


def test_objects_of_a_class_and_of_its_subclasses() -> None:
    class Own(Tensor):
        pass

    class Inner(Own):
        pass

    made: list[Tensor] = [wg.asarray([1.0, 2.0], device="cpu"), object.__new__(Own), object.__new__(Inner)]
    found = alive(Tensor)
    assert all(any(each is one for each in found) for one in made)
    assert {type(each) for each in alive(Own)} == {Own, Inner}
    assert len(alive(Own)) == 2
    assert not any(isinstance(each, Tensor) for each in alive(Node))


def test_values_that_are_computed_are_holders() -> None:
    x = wg.asarray([1.0, 2.0], device="cpu")
    waiting = x + 1
    found = holders()
    assert any(each is x.node for each in found)
    assert not any(each is waiting.node for each in found)


def test_other_threads_may_make_tuples() -> None:
    """Python cannot finish a tuple that something else holds."""
    objects = [[number] for number in range(100_000)]  # many to look through
    done, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            while not done.is_set():
                assert len(tuple(number for number in range(2000))) == 2000
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(5):
        holders()
    done.set()
    thread.join()
    assert not errors
    assert len(objects) == 100_000
