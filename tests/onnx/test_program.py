"""A model's calls: captured once for a shape, with known values folded and weights prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import attribute, encode, floats, function, graph, loaded, model, node
from webgrad.onnx.operators import operator

calls: list[str] = []


@operator("Noted", domain="tests")
def noted(x: Any) -> Any:
    """The same, with a note of every time that it is run."""
    calls.append("tensor" if isinstance(x, wg.Tensor) else "array")
    return x * 1


@operator("Reshaped", domain="tests", host="shape")
def reshaped(x: Any, shape: Any) -> Any:
    return x.reshape(tuple(shape.tolist()))


OWN = {"": 18, "tests": 1}


def count_of(run: Any) -> int:
    calls.clear()
    run()
    return len(calls)


def test_a_shape_is_captured_once_and_then_replayed(tmp_path: Path) -> None:
    m = loaded(
        tmp_path,
        model([node("Noted", "x", "y", domain="tests")], {"x": ["n"]}, {"y": ["n"]}, opset=OWN),
    )
    assert count_of(lambda: m(np.ones(2, np.float32))) == 1
    assert count_of(lambda: m(np.zeros(2, np.float32))) == 0
    assert count_of(lambda: m(np.ones(3, np.float32))) == 1
    assert count_of(lambda: m(np.ones(2, np.float32))) == 0
    assert m(floats(4, 5))["y"].tolist() == [4, 5]


def test_what_hangs_on_weights_is_computed_when_loaded(tmp_path: Path) -> None:
    nodes = [
        node("Noted", "w", "v", domain="tests"),
        node("Mul", "v v", "u"),
        node("Add", "x u", "y"),
    ]
    data = model(nodes, {"x": [2]}, {"y": [2]}, {"w": floats(2, 3)}, opset=OWN)
    made: list[wg.onnx.Model] = []
    assert count_of(lambda: made.append(loaded(tmp_path, data))) == 1
    m = made[0]
    for _ in range(2):
        assert count_of(lambda: m(np.zeros(2, np.float32))) == 0
    assert m(floats(1, 1))["y"].tolist() == [5, 10]


def test_weights_that_are_handed_out_may_change(tmp_path: Path) -> None:
    nodes = [node("Mul", "w w", "u"), node("Add", "x u", "y")]
    m = loaded(tmp_path, model(nodes, {"x": [2]}, {"y": [2]}, {"w": floats(2, 3)}))
    x = np.zeros(2, np.float32)
    assert m(x)["y"].tolist() == [4, 9]
    weights = m.state_dict()
    weights["w"][...] = wg.asarray(floats(5, 6))
    assert m(x)["y"].tolist() == [25, 36]
    weights["w"].requires_grad = True
    wg.sum(m(x)["y"]).backward()
    assert weights["w"].grad is not None
    assert weights["w"].grad.tolist() == [10, 12]


def test_a_result_larger_than_its_weights_is_not_kept(tmp_path: Path) -> None:
    @operator("Widened", domain="tests")
    def widened(x: Any) -> Any:
        calls.append("")
        return x.astype(wg.float32)

    weight = np.ones((300, 300), np.int8)
    nodes = [node("Widened", "w", "v", domain="tests"), node("Add", "x v", "y")]
    m = loaded(tmp_path, model(nodes, {"x": [1]}, {"y": None}, {"w": weight}, opset=OWN))
    assert count_of(lambda: m(np.zeros(1, np.float32))) == 1


def test_equal_weights_are_one_until_somebody_may_change_them(tmp_path: Path) -> None:
    w = np.arange(6, dtype=np.float32)
    weights = {"a": w, "b": w.copy(), "c": w[::-1].copy(), "d": w.reshape(2, 3)}
    nodes = [node("Add", "x a", "p"), node("Add", "p b", "q"), node("Add", "q c", "y"), node("Abs", "d", "z")]
    m = loaded(tmp_path, model(nodes, {"x": [6]}, {"y": [6], "z": [2, 3]}, weights))
    assert len({id(each) for each in m._program._parameters.values()}) == 2
    assert m(np.zeros(6, np.float32))["y"].tolist() == (2 * w + w[::-1]).tolist()
    state = m.state_dict()
    assert state["a"] is not state["b"]
    assert m(np.zeros(6, np.float32))["y"].tolist() == (2 * w + w[::-1]).tolist()


def test_a_shape_that_is_given_is_part_of_the_key(tmp_path: Path) -> None:
    nodes = [node("Mul", "s two", "t"), node("Reshaped", "x t", "y", domain="tests")]
    weights = {"two": np.asarray([2, 1])}
    inputs = {"x": [8], "s": ("int64", [2])}
    m = loaded(tmp_path, model(nodes, inputs, {"y": None}, weights, opset=OWN))
    x = np.arange(8, dtype=np.float32)
    for shape in ([2, 2], [1, 4], [2, 2]):
        assert m(x, np.asarray(shape))["y"].shape == (2 * shape[0], shape[1])
    assert m.waits == ()
    assert m(x, wg.asarray(np.asarray([4, 1])))["y"].shape == (8, 1)


def test_functions_take_attributes_and_defaults(tmp_path: Path) -> None:
    refers = [
        encode("Attribute", name="axis", ref_attr_name="side", type=2),
        encode("Attribute", name="new_axis", ref_attr_name="fresh", type=2),
    ]
    inner = [node("SequenceConstruct", "a b", "s"), node("ConcatFromSequence", "s", "c", "", "", *[])]
    inner[1] = encode("Node", op_type="ConcatFromSequence", input=["s"], output=["c"], attribute=refers)
    joined = function(
        "Joined", "a b", "c", inner, attribute=["side"], attribute_proto=[attribute("fresh", 0)]
    )
    nodes = [
        node("Joined", "x x", "y", domain="mine", side=0),
        node("Joined", "x x", "z", domain="mine", side=1, fresh=1),
    ]
    data = model(nodes, {"x": [2]}, {"y": None, "z": None}, opset={"": 18, "mine": 1}, functions=[joined])
    out = loaded(tmp_path, data)(floats(1, 2))
    assert out["y"].tolist() == [1, 2, 1, 2]
    assert out["z"].tolist() == [[1, 1], [2, 2]]


def test_inner_graphs_read_the_names_around_them(tmp_path: Path) -> None:
    inner = graph([node("Add", "x k", "a"), node("Mul", "a w", "b")], {}, {"b": None}, {"k": floats(1)})
    middle = graph(
        [node("If", "c", "d", then_branch=inner, else_branch=inner), node("Neg", "d", "e")], {}, {"e": None}
    )
    nodes = [node("If", "c", "y", then_branch=middle, else_branch=middle)]
    inputs: Any = {"x": [1], "c": ("bool", [])}
    m = loaded(tmp_path, model(nodes, inputs, {"y": None}, {"w": floats(3)}))
    for _ in range(2):
        assert m(floats(4), np.asarray(True))["y"].tolist() == [-15]


def test_attributes_that_an_operator_has_not_are_refused_when_loaded(tmp_path: Path) -> None:
    data = model([node("Add", "x x", "y", alpha=2)], {"x": [1]}, {"y": [1]})
    with pytest.raises(wg.ModelFileError, match="has no attribute alpha"):
        loaded(tmp_path, data)


def waiting_model(tmp_path: Path, tail: int = 1) -> wg.onnx.Model:
    """Twice the elements of x that are not 0, `tail` times 2 more: their number hangs on x."""
    nodes = [
        node("Noted", "x", "a", domain="tests"),
        node("NonZero", "a", "places", called="found"),
        node("Transpose", "places", "rows"),
        node("GatherND", "a rows", "kept"),
        *(node("Noted", "kept" if not at else f"k{at}", f"k{at + 1}", domain="tests") for at in range(tail)),
        node("Add", f"k{tail} k{tail}", "y"),
    ]
    return loaded(tmp_path, model(nodes, {"x": ["n"]}, {"y": None}, opset=OWN))


def test_what_is_around_a_wait_is_captured_apart(tmp_path: Path) -> None:
    m = waiting_model(tmp_path)
    x, same, other = floats(1, 0, 3), floats(0, 5, 7), floats(0, 0, 9)
    assert m(x)["y"].tolist() == [2, 6]
    assert m.waits == ("found",)
    assert m.explain().splitlines() == [
        "1 nodes, captured together",
        "found (NonZero): the host waits for what it reads",
        "4 nodes, captured together",
    ]
    m(x)  # what is behind the wait comes a second time, and is captured
    assert count_of(lambda: m(same)) == 0
    assert m(same)["y"].tolist() == [10, 14]
    assert count_of(lambda: m(other)) == 1  # behind the wait, with fewer
    assert m(other)["y"].tolist() == [18]
    assert m(floats(0, 0, 0))["y"].tolist() == []


def test_many_nodes_behind_a_wait_are_captured_at_once(tmp_path: Path) -> None:
    m = waiting_model(tmp_path, tail=70)
    assert m(floats(1, 0, 3))["y"].tolist() == [2, 6]
    assert count_of(lambda: m(floats(4, 0, 3))) == 0


def test_counts_that_are_computed_are_read_while_the_host_waits(tmp_path: Path) -> None:
    """One wait, though a second node needs what hangs on the same number."""
    nodes = [
        node("ReduceSum", "x", "total", keepdims=0),
        node("Cast", "total", "n", to=7),
        node("Range", "zero n one", "line", called="first"),
        node("Add", "n one", "more"),
        node("Range", "zero more one", "longer", called="second"),
        node("Mul", "line line", "y"),
    ]
    weights = {"zero": np.asarray(0), "one": np.asarray(1)}
    data = model(nodes, {"x": [1, 2]}, {"y": None, "longer": None}, weights)
    m = loaded(tmp_path, data)
    for count in (3, 3, 5):
        out = m(floats([count, 0]))
        assert out["y"].tolist() == [at * at for at in range(count)]
        assert out["longer"].tolist() == list(range(count + 1))
    assert m.waits == ("first",)


def test_texts_and_maps_pass_through(tmp_path: Path) -> None:
    nodes = [node("ZipMap", "x", "y", domain="ai.onnx.ml", classlabels_strings=["a", "b"])]
    m = loaded(tmp_path, model(nodes, {"x": [1, 2]}, {"y": None}, opset={"": 18, "ai.onnx.ml": 1}))
    for _ in range(3):
        assert m(floats([1, 2]))["y"] == [{"a": 1, "b": 2}]


def test_rounds_of_a_loop_that_is_waited_for_are_captured(tmp_path: Path) -> None:
    """x is doubled, an outer weight at a time, until its sum says so."""
    nodes = [
        node("Noted", "v", "n", domain="tests"),
        node("Mul", "n w", "next"),
        node("ReduceSum", "next", "total", keepdims=0),
        node("Less", "total limit", "goes"),
    ]
    body = graph(
        nodes,
        {"i": ("int64", []), "go": ("bool", []), "v": None},
        {"goes": ("bool", []), "next": [1, 2], "total": []},
    )
    weights = {"w": floats(2, 2), "yes": np.asarray(True)}
    loop = node("Loop", "- yes x", "last sums", called="rounds", body=body)
    inputs: Any = {"x": [1, 2], "limit": ("float32", [])}
    m = loaded(tmp_path, model([loop], inputs, {"last": [1, 2], "sums": [None]}, weights, opset=OWN))
    limit = wg.asarray(np.float32(100), device="cpu")
    assert m(floats([1, 0]), limit)["last"].tolist() == [[128, 0]]
    assert m.waits == ("rounds",)
    m(floats([1, 0]), limit)
    assert count_of(lambda: m(floats([0, 3]), limit)) == 0
    out = m(floats([0, 3]), limit)
    assert (out["last"].tolist(), out["sums"].tolist()) == ([[0, 192]], [6, 12, 24, 48, 96, 192])


def test_gradients_go_through_branches_that_are_computed(tmp_path: Path) -> None:
    branches: Any = {
        "then_branch": graph([node("Mul", "x w", "a")], {}, {"a": None}),
        "else_branch": graph([node("Neg", "x", "b")], {}, {"b": None}),
    }
    nodes = [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Less", "s zero", "c"),
        node("If", "c", "y", **branches),
    ]
    weights = {"w": floats(5, 6), "zero": np.asarray(0, np.float32)}
    m = loaded(tmp_path, model(nodes, {"x": [2]}, {"y": [2]}, weights))
    m(floats(-1, 0))
    for x, expected in (([-1.0, 0.0], [5, 6]), ([1.0, 0.0], [-1, -1])):
        given = wg.asarray(floats(*x), device="cpu")
        given.requires_grad = True
        wg.sum(m(given)["y"]).backward()
        assert given.grad is not None
        assert given.grad.tolist() == expected


def test_a_model_without_room_harms_no_later_one(tmp_path: Path) -> None:
    expand = model([node("Expand", "x a", "y")], {"x": [2]}, {"y": None}, {"a": np.asarray([1 << 40, 2])})
    with pytest.raises(wg.OutOfMemoryError) as first:
        loaded(tmp_path, expand)(floats(1, 2))
    constant = model([node("ConstantOfShape", "a", "y")], {}, {"y": None}, {"a": np.asarray([1 << 40])})
    with pytest.raises(wg.OutOfMemoryError) as second:
        loaded(tmp_path, constant)()
    add = model([node("Add", "x w", "y")], {"x": [2]}, {"y": None}, {"w": floats(1, 2)})
    assert loaded(tmp_path, add)(floats(1, 2))["y"].tolist() == [2.0, 4.0]
    settled = model([node("Abs", "w", "y")], {}, {"y": None}, {"w": floats(-1)})
    assert loaded(tmp_path, settled)()["y"].tolist() == [1.0]
    assert first.tb is not None  # which hold what could not be computed
    assert second.tb is not None
