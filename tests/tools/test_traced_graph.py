"""Graphs as records: what is a node, what stays whole, names, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import webgrad as wg
from webgrad import nn


def ops(graph: wg.TracedGraph) -> list[str]:
    return [each.op for each in graph.nodes]


def only(*names: str) -> Any:
    return lambda name, arguments: name in names


def test_primitives_in_order() -> None:
    graph = wg.graph_of(lambda x, y: (x + y).sum(), (wg.zeros((2, 3)), wg.zeros(3)))
    assert ops(graph)[-2:] == ["add", "sum"]
    assert [graph.nodes[at].name for at in graph.inputs] == ["x", "y"]
    [(name, last)] = graph.outputs
    assert name == "output"
    assert graph.nodes[last].shape == ()
    for at, node in enumerate(graph.nodes):
        assert all(each < at for each in node.inputs)


def test_a_call_is_one_node_where_it_is_wanted() -> None:
    seen: list[str] = []

    def whole(name: str, arguments: Mapping[str, Any]) -> bool:
        seen.append(name)
        return name == "conv2d" and arguments["groups"] == 1

    model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, groups=2), nn.ReLU()).eval()
    graph = wg.graph_of(model, (wg.zeros((1, 2, 5, 5)),), whole=whole)
    [call] = [each for each in graph.nodes if each.is_call]
    assert call.op == "conv2d"
    assert call.parameters == ("x", "weight", "bias")
    assert call.attributes["padding"] in (1, (1, 1))
    assert call.shape == (1, 4, 5, 5)
    assert "window" in ops(graph)
    assert seen.count("conv2d") == 2


def test_an_outer_call_hides_those_in_it() -> None:
    graph = wg.graph_of(wg.softmin, (wg.zeros(3),), whole=only("softmin", "softmax"))
    assert ops(graph) == ["input", "softmin"]


def test_tensors_have_the_names_of_their_model() -> None:
    graph = wg.graph_of(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval(), (wg.zeros((4, 3)),))
    names = {each.name for each in graph.nodes if each.op == "tensor"}
    assert {"0.weight", "0.bias", "1.running_mean", "1.weight"} <= names


def test_nothing_is_computed_and_inputs_stay_as_they_are() -> None:
    x = wg.ones(3) * 2
    wg.graph_of(lambda x: x.exp(), (x,))
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_numbers_and_dicts_are_inputs() -> None:
    graph = wg.graph_of(lambda x, rate: {"y": x * rate}, {"x": wg.zeros(2), "rate": 0.5})
    assert [(graph.nodes[at].name, graph.nodes[at].shape) for at in graph.inputs] == [
        ("x", (2,)),
        ("rate", ()),
    ]
    assert [name for name, _ in graph.outputs] == ["y"]


def test_an_input_may_be_unused_or_be_a_result() -> None:
    graph = wg.graph_of(lambda x, y: (x, x), (wg.zeros(2), wg.zeros(3)))
    assert graph.outputs == (("output_0", graph.inputs[0]), ("output_1", graph.inputs[0]))


def test_random_numbers_are_seen() -> None:
    graph = wg.graph_of(lambda x: x + wg.random.normal(3), (wg.zeros(3),))
    assert {"drawn", "random_bits"} <= set(ops(graph))


def test_complex_values_are_pairs() -> None:
    graph = wg.graph_of(lambda x: wg.fft.rfft(x).real, (wg.zeros(16),))
    assert all(each.dtype.kind != "c" for each in graph.nodes)


def test_effects_are_refused() -> None:
    layer = nn.BatchNorm1d(2)
    with pytest.raises(wg.CaptureError, match=r"call model\.eval\(\) first"):
        wg.graph_of(layer, (wg.zeros((4, 2)),))
    with pytest.raises(wg.ArgumentError, match="do not fit"):
        wg.graph_of(wg.softmax, ())
    with pytest.raises(wg.CaptureError, match="inside"):
        wg.jit(lambda x: x + len(wg.graph_of(wg.exp, (x,)).nodes))(wg.zeros(1))
