"""Nodes: signatures are interned, inference runs once for each, and the user's line is remembered."""

from __future__ import annotations

import gc
import inspect
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import CPU, apply, fold, numbers, value
from webgrad import dtypes
from webgrad.errors import DTypeError, ShapeError
from webgrad.graph import node as nodes
from webgrad.graph.node import Node, clear_signatures, leaf, make, scalar, signature, source, where_made
from webgrad.graph.op import LEAF, Op
from webgrad.ops import primitives
from webgrad.ops.table import TABLE


def here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def counting_op() -> tuple[Op, list[Any]]:
    """An op that notes each inference."""
    calls: list[Any] = []

    def infer(sigs: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
        calls.append((sigs, attributes))
        return sigs[0].shape, sigs[0].dtype

    return Op("counting", "map", 1, np.negative, infer=infer), calls


# Signatures


def test_equal_signatures_are_the_same_object() -> None:
    a = signature(LEAF, (2, 3), dtypes.float32, CPU)
    assert signature(LEAF, (2, 3), dtypes.float32, CPU) is a
    assert apply("add", value(4), value(4)).sig is apply("add", value(4), value(4)).sig


@pytest.mark.parametrize(
    ("op", "shape", "dtype", "attributes"),
    [
        (TABLE["add"], (2, 3), dtypes.float32, ()),
        (LEAF, (3, 2), dtypes.float32, ()),
        (LEAF, (2, 3), dtypes.int32, ()),
        (LEAF, (2, 3), dtypes.float32, ("x",)),
    ],
)
def test_signatures_that_differ_anywhere_are_different(
    op: Op, shape: tuple[int, ...], dtype: dtypes.DType, attributes: tuple[Any, ...]
) -> None:
    a = signature(LEAF, (2, 3), dtypes.float32, CPU)
    b = signature(op, shape, dtype, CPU, attributes)
    assert b is not a
    assert b.number != a.number


def test_a_signature_knows_its_size() -> None:
    sig = signature(LEAF, (2, 3), dtypes.float16, CPU)
    assert (sig.size, sig.nbytes, sig.kind) == (6, 12, "leaf")
    empty, single = signature(LEAF, (5, 0), dtypes.int8, CPU), signature(LEAF, (), dtypes.int64, CPU)
    assert (empty.size, empty.nbytes, single.size, single.nbytes) == (0, 0, 1, 8)
    assert repr(fold("sum", value(2, 3), 1).sig) == "sum ((1,),) (2) float32"


def test_inference_runs_once_per_signature() -> None:
    op, calls = counting_op()
    for _ in range(3):
        make(op, (value(2, 3),))
    assert len(calls) == 1
    make(op, (value(3, 2),))
    make(op, (value(2, 3, dtype=dtypes.int32),))
    make(op, (value(2, 3),), ("attribute",))
    assert len(calls) == 4


def test_a_refused_inference_is_not_remembered() -> None:
    a, b = value(2, 3), value(4, 5)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"add: the shapes \(2, 3\) and \(4, 5\)"):
            apply("add", a, b)


def test_numbers_of_signatures_are_never_used_again() -> None:
    before = signature(LEAF, (7, 7, 7), dtypes.float32, CPU)
    node = value(7, 7, 7)
    clear_signatures()
    after = signature(LEAF, (7, 7, 7), dtypes.float32, CPU)
    assert after is not before
    assert after.number > before.number
    assert apply("negative", node).sig.shape == (7, 7, 7)  # an old node still works


def test_the_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_signatures()
    monkeypatch.setattr(nodes, "_LIMIT", 50)
    for size in range(200):
        apply("negative", value(size))
        assert len(nodes._interned) <= 50
        assert len(nodes._results) <= 50


# Nodes


def test_kinds_of_nodes() -> None:
    given = numbers([1.0, 2.0])
    assert (given.sig.kind, given.inputs, given.storage is None) == ("leaf", (), False)
    number = scalar(2.5, dtypes.float32, CPU)
    assert (number.sig.kind, number.sig.shape, number.storage) == ("scalar", (), 2.5)
    counted = source(TABLE["iota"], (5,), dtypes.int32, CPU)
    assert (counted.sig.kind, counted.inputs, counted.storage) == ("iota", (), None)
    made = apply("add", given, number)
    assert (made.sig.kind, made.inputs, made.storage) == ("map", (given, number), None)
    assert repr(made) == "<Node add (2) float32>"
    assert repr(given) == "<Node leaf (2) float32, computed>"


def test_settle_makes_a_leaf_and_lets_the_inputs_go() -> None:
    given = numbers([1.0, 2.0])
    inner = apply("negative", given)
    outer = apply("exp", inner)
    gone = weakref.ref(inner)
    del inner
    assert gone() is not None
    storage = np.array([0.5, 0.25], np.float32)
    outer.settle(storage)
    gc.collect()
    assert gone() is None
    assert outer.inputs == ()
    assert outer.storage is storage
    assert outer.sig is signature(LEAF, (2,), dtypes.float32, CPU)


def test_nodes_have_no_room_for_more_and_no_finalizer() -> None:
    node = value(2)
    with pytest.raises(AttributeError):
        node.extra = 1  # type: ignore[attr-defined]
    assert not hasattr(Node, "__del__")


# The user's line


def test_a_node_names_the_line_that_made_it() -> None:
    a = value(3)
    node = apply("add", a, a)  # a function of the tests, and not of webgrad: the user's code
    assert where_made(node).startswith(str(inspect.getsourcefile(apply)))
    direct, line = primitives.elementwise(TABLE["add"], a, a), here()
    assert where_made(direct) == f"{__file__}:{line}"


def test_the_line_is_found_through_the_layers_of_webgrad() -> None:
    from tests.graph.helpers import tensor
    from webgrad.functions.learning.activations import softmax

    x = tensor(2, 3)
    deep, line = softmax(x), here()
    assert where_made(deep.node) == f"{__file__}:{line}"
    summed, line = (x + 1) * x, here()
    assert where_made(summed.node) == f"{__file__}:{line}"


def test_sources_and_leaves_are_named_and_numbers_are_not() -> None:
    counted, line = source(TABLE["iota"], (5,), dtypes.int32, CPU), here()
    assert where_made(counted) == f"{__file__}:{line}"
    given, line = leaf(np.ones(2, np.float32), (2,), dtypes.float32, CPU), here()
    assert where_made(given) == f"{__file__}:{line}"
    again = leaf(np.ones(2, np.float32), (2,), dtypes.float32, CPU, given.where)
    assert where_made(again) == f"{__file__}:{line}"
    assert where_made(scalar(1, dtypes.int32, CPU)) == ""


def test_a_call_over_several_lines() -> None:
    first = here()
    made = primitives.elementwise(
        TABLE["add"],
        value(2),
        value(2),
    )
    last = here()
    assert first < int(where_made(made).rpartition(":")[2]) < last


def test_the_frame_is_not_kept() -> None:
    class Local:
        pass

    def build() -> tuple[Node, weakref.ref[Local]]:
        held = Local()
        return primitives.elementwise(TABLE["add"], value(2), value(2)), weakref.ref(held)

    node, gone = build()
    gc.collect()
    assert gone() is None
    assert where_made(node).startswith(f"{__file__}:")


def test_errors_come_at_the_call() -> None:
    with pytest.raises(DTypeError, match="exp is not offered for int32"):
        apply("exp", value(2, dtype=dtypes.int32))
    with pytest.raises(ShapeError, match=r"reshape of \(6\)|reshape of \(6,\)"):
        primitives.reshape(value(6), (4, 2))


def test_recursion_is_not_needed() -> None:
    node = numbers([0.0])
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        for _ in range(5_000):
            node = apply("negative", node)
        del node
    finally:
        sys.setrecursionlimit(limit)


def test_leaves_count_to_the_backlog() -> None:
    before = nodes.backlog.nbytes
    leaf(np.zeros(10, np.float32), (10,), dtypes.float32, CPU)
    assert nodes.backlog.nbytes == before + 40


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("/home/me/.venv/bin/webgrad", ""),
        ("/home/me/webgrad.exe/__main__.py", ""),
        ("<frozen runpy>", ""),
        ("/home/me/webgrad.py", "/home/me/webgrad.py:1"),
        ("__main__.py", "__main__.py:1"),
    ],
)
def test_what_starts_our_commands_is_no_users_line(file: str, line: str) -> None:
    assert nodes.line_of((compile("pass", file, "exec"), 0)) == line
