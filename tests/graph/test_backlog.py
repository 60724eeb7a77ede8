"""The backlog: a loop that never reads is computed bit by bit, in phase with itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from tests.graph.helpers import CPU, apply, backlog_of, numbers
from webgrad import config, dtypes
from webgrad.errors import ConfigError
from webgrad.evaluate.evaluate import plans, read
from webgrad.evaluate.waiting import limit_backlog
from webgrad.graph.node import Backlog, Node, backlog, leaf
from webgrad.graph.snapshot import walk
from webgrad.runtime.host import memory_bytes
from webgrad.tensor import Tensor


@pytest.fixture
def computed() -> Iterator[list[Node]]:
    """The newest node each time the backlog computes, at a limit of 10 nodes and 1,000 bytes; nothing is."""
    found: list[Node] = []

    def compute(held: list[Node], newest: Node) -> None:
        assert held[-1] is newest
        found.append(newest)

    with backlog_of(10, 1000):
        backlog.compute = compute
        yield found


@pytest.fixture
def real_backlog(clean_environment: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The backlog as the settings have it, before and after."""
    backlog.mark = None
    yield clean_environment
    clean_environment.undo()
    config.settings.cache_clear()
    limit_backlog()


def test_it_is_cut_where_it_is_full_and_then_at_a_like_node(computed: list[Node]) -> None:
    x = numbers([1.0])
    made = []
    for _ in range(40):  # three nodes a turn: the limit falls inside a turn
        first = apply("multiply", x, 2.0)
        second = apply("negative", first)
        x = apply("exp", second)
        made += [first, second, x]
    places = [next(at for at, one in enumerate(made, 1) if one is each) for each in computed]
    assert places[0] == 10
    assert {each.sig.op.name for each in computed} == {made[9].sig.op.name}
    assert {b - a for a, b in itertools.pairwise(places)} == {12}  # in phase: the same plan again


def test_it_is_cut_at_twice_the_limit_where_nothing_repeats(computed: list[Node]) -> None:
    made = [apply("negative", numbers(np.zeros(count + 1, np.int8), np.int8)) for count in range(60)]
    places = [next(at for at, one in enumerate(made, 1) if one is each) for each in computed]
    assert places == [10, 30, 50]


def test_leaves_are_counted_in_bytes(computed: list[Node]) -> None:
    x = numbers(np.zeros(100))  # 400 bytes
    assert (apply("negative", x), computed)[1] == []
    y = apply("add", x, numbers(np.zeros(100)))
    assert computed == []
    numbers(np.zeros(100))  # 1,200 bytes: a leaf alone computes nothing
    assert computed == []
    z = apply("add", y, 1.0)
    assert computed == [z]
    apply("add", z, 1.0)
    assert computed == [z]


def test_leaf_bytes_are_those_of_its_dtype() -> None:
    meter = Backlog()
    meter.most_bytes = 100
    meter.limit = 50
    meter.added(100)
    assert (meter.nbytes, meter.limit) == (100, 50)
    meter.added(1)
    assert meter.limit == 0
    before = backlog.nbytes
    leaf(np.zeros(3, np.int8), (3,), dtypes.int8, CPU)
    assert backlog.nbytes == before + 3


def test_the_settings_bound_it(real_backlog: pytest.MonkeyPatch) -> None:
    limit_backlog()
    memory = memory_bytes() or 8 << 30
    assert (backlog.most, backlog.most_bytes) == (2000, memory // 8)
    real_backlog.setenv("WEBGRAD_GRAPH", "123")
    real_backlog.setenv("WEBGRAD_GRAPH_MEMORY", "5MiB")
    config.settings.cache_clear()
    limit_backlog()
    assert (backlog.most, backlog.most_bytes) == (123, 5 << 20)
    real_backlog.setenv("WEBGRAD_GRAPH_MEMORY", "50%")
    config.settings.cache_clear()
    limit_backlog()
    assert backlog.most_bytes == pytest.approx(memory / 2, rel=1e-6)


@pytest.mark.parametrize(("name", "text"), [("WEBGRAD_GRAPH", "0"), ("WEBGRAD_GRAPH_MEMORY", "lots")])
def test_settings_that_make_no_sense_are_refused(
    clean_environment: pytest.MonkeyPatch, name: str, text: str
) -> None:
    clean_environment.setenv(name, text)
    config.settings.cache_clear()  # a thread may have read them since
    with pytest.raises(ConfigError, match=name):
        config.settings()


def test_a_loop_that_never_reads_is_computed(real_backlog: pytest.MonkeyPatch) -> None:
    real_backlog.setenv("WEBGRAD_GRAPH", "100")
    config.settings.cache_clear()
    limit_backlog()
    before = plans()
    x = numbers(np.zeros(4))
    seen = 0
    for _ in range(1000):
        x = apply("add", x, 1.0)
        seen += x.storage is not None
        assert len(backlog.made) <= 200
    assert 5 <= seen <= 12
    assert plans() - before <= 2  # cut in phase: the same structure every time


def test_a_loop_that_only_makes_leaves_is_computed(real_backlog: pytest.MonkeyPatch) -> None:
    real_backlog.setenv("WEBGRAD_GRAPH_MEMORY", "1MiB")
    config.settings.cache_clear()
    limit_backlog()
    x = numbers(np.zeros(1 << 16))
    seen = 0
    for turn in range(40):  # 256 KiB each
        x = apply("add", x, numbers(np.full(1 << 16, turn)))
        seen += x.storage is not None
        assert backlog.nbytes <= 2 << 20
    assert seen >= 5


def test_what_is_read_waits_no_more() -> None:
    x = apply("add", numbers([1.0]), 1.0)
    assert x in backlog.waiting()
    assert read(x).tolist() == [2.0]
    assert x not in backlog.waiting()


def test_what_is_dropped_waits_no_more() -> None:
    before = len(backlog.waiting())
    x = apply("add", numbers([1.0]), 1.0)
    assert len(backlog.waiting()) == before + 1
    del x
    assert len(backlog.waiting()) == before


@pytest.mark.parametrize("reads", [False, True])
def test_a_value_beside_the_loop_does_not_grow(real_backlog: pytest.MonkeyPatch, reads: bool) -> None:
    """A running average that is never read hangs on every step, although no step hangs on it."""
    real_backlog.setenv("WEBGRAD_GRAPH", "100")
    config.settings.cache_clear()
    limit_backlog()
    x, average = numbers([1.0]), numbers([0.0])
    for _ in range(400):
        x = apply("tanh", x)
        average = apply("add", apply("multiply", average, 0.9), apply("multiply", x, 0.1))
        if reads:
            read(x)
    assert len(walk([average]).nodes) <= 500
    assert read(average).shape == (1,)


def test_gradients_are_waited_for(real_backlog: pytest.MonkeyPatch) -> None:
    """A forward half that is cut off would be computed again by the other half."""
    real_backlog.setenv("WEBGRAD_GRAPH", "100")
    limit_backlog()
    factor = Tensor(numbers(np.ones((3, 3)))).requires_grad_()
    value = Tensor(numbers(np.ones((2, 3))))
    read(value.node)
    before = plans()
    for _ in range(30):
        value = (value @ factor).tanh() * 2 + 1
    value.sum().backward()
    assert plans() == before
    assert factor.grad is not None
    assert np.isfinite(read(factor.grad.node)).all()
