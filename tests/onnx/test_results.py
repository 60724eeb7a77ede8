"""Results are the caller's own, and each call of a function is by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import encode, graph, loaded, model, node

ANY = {"y": None}


def test_the_same_function_has_the_attributes_of_each_call(tmp_path: Path) -> None:
    """What an operator makes of its attributes once is of one call of the function around it alone."""
    refer = encode("Attribute", name="coefficients", ref_attr_name="k", type=6)
    body = [node("LinearRegressor", "a", "b", domain="ai.onnx.ml", coefficients=refer)]
    imports = [encode("OperatorSet", domain="ai.onnx.ml", version=1)]
    facts = {"input": ["a"], "output": ["b"], "node": body, "attribute": ["k"], "opset_import": imports}
    regression = encode("Function", name="F", domain="mine", **facts)
    nodes = [node("F", "x", "y", domain="mine", k=[2.0]), node("F", "x", "z", domain="mine", k=[3.0])]
    opsets = {"": 18, "mine": 1, "ai.onnx.ml": 1}
    data = model(nodes, {"x": [1, 1]}, {"y": None, "z": None}, opset=opsets, functions=[regression])
    found = loaded(tmp_path, data)(np.ones((1, 1), np.float32))
    assert (found.y.item(), found.z.item()) == (2.0, 3.0)


def test_more_parts_than_there_are_elements(tmp_path: Path) -> None:
    data = model([node("Split", "x", "y", num_outputs=1 << 40)], {"x": [2]}, ANY)
    with pytest.raises(wg.ModelFileError, match="1099511627776 elements on the host"):
        loaded(tmp_path, data)(np.ones(2, np.float32))


def _branch(name: str) -> bytes:
    return graph([], {}, {name: [4]})


def node_at(sequence: str, output: str) -> list[bytes]:
    """The first of a sequence."""
    return [node("SequenceAt", f"{sequence} zero", output)]


W = np.arange(4, dtype=np.float32)
SHAPE = np.array([2, 2])


@pytest.mark.parametrize(
    ("nodes", "inputs", "given"),
    [
        ([node("Identity", "w", "y")], {}, ()),
        ([node("Reshape", "w s", "y")], {"s": ("int64", [2])}, (SHAPE,)),
        ([node("Add", "w w", "v"), node("Identity", "v", "y")], {}, ()),
        (
            [node("If", "c", "y", then_branch=_branch("w"), else_branch=_branch("w"))],
            {"c": ("bool", [])},
            (np.asarray(True),),
        ),
    ],
)
def test_writes_into_results_change_no_weights(
    tmp_path: Path, nodes: list[bytes], inputs: dict[str, Any], given: Any
) -> None:
    m = loaded(tmp_path, model(nodes, inputs, ANY, {"w": W}))
    first = m(*given).y.numpy()
    for _ in range(2):
        y = m(*given).y
        y += 1
    np.testing.assert_array_equal(m(*given).y.numpy(), first)


def test_writes_into_results_change_no_inputs(tmp_path: Path) -> None:
    m = loaded(tmp_path, model([node("Transpose", "x", "y")], {"x": ["n", "m"]}, ANY))
    x = wg.ones((2, 3))
    for _ in range(2):
        y = m(x).y
        y += 1
    np.testing.assert_array_equal(x.numpy(), np.ones((2, 3)))


def test_texts_are_not_repeated_without_end(tmp_path: Path) -> None:
    weights = {"t": np.array(["a", "b"], object), "s": np.array([1 << 26, 2])}
    with pytest.raises(wg.ModelFileError, match="134217728 elements on the host"):
        loaded(tmp_path, model([node("Expand", "t s", "y")], {}, ANY, weights))()


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Relu", "x", "y"), node("Identity", "y", "z")],
        [node("Relu", "x", "v"), node("Transpose", "v", "y"), node("Transpose", "v", "z")],
        [node("Relu", "x", "v"), node("SequenceConstruct", "v", "s"), *node_at("s", "y"), *node_at("s", "z")],
    ],
)
def test_writes_into_a_result_change_no_other(tmp_path: Path, nodes: list[bytes]) -> None:
    m = loaded(tmp_path, model(nodes, {"x": ["n", "m"]}, {"y": None, "z": None}, {"zero": np.array(0)}))
    for _ in range(3):
        found = m(np.ones((2, 2), np.float32))
        y, z = found.y, found.z
        y += 1
        np.testing.assert_array_equal(z.numpy(), np.ones((2, 2)))
