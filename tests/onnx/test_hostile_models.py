"""Models that do not hold together, or ask for more than there is: each is refused by name, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import encode, function, graph, loaded, model, node, tensor

ANY = {"y": None}


def _attribute(name: str, **facts: Any) -> bytes:
    return encode("Attribute", name=name, **facts)


def _sparse(values: Any, indices: Any, dims: Any) -> bytes:
    inner = encode("SparseTensor", values=tensor("w", values), indices=tensor("", indices), dims=dims)
    given = _attribute("sparse_value", type=11, sparse_tensor=inner)
    return model([node("Constant", "", "y", sparse_value=given)], {}, ANY)


@pytest.mark.parametrize(
    ("name", "kind"), [("value", 4), ("value", 0), ("value", 12), ("sparse_value", 11), ("value", 5)]
)
def test_an_attribute_without_its_value(tmp_path: Path, name: str, kind: int) -> None:
    facts: dict[str, Any] = {name: _attribute(name, type=kind)}
    data = model([node("Constant", "", "y", **facts)], {}, ANY)
    with pytest.raises(wg.ModelFileError, match=f"the attribute {name} of .* has no value"):
        loaded(tmp_path, data)


ONE = np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("sparse", "message"),
    [
        ((ONE, np.zeros(1, np.float32), [2]), "its indices are float32"),
        ((ONE, np.array(["a"]), [2]), "its indices are object"),
        ((np.array(["a"]), np.zeros(1, np.int64), [2]), "its values object"),
        ((ONE, np.zeros(1, np.int64), [1] * 100), "its shape is"),
        ((ONE, np.zeros(1, np.int64), [1 << 30]), "with its zeros"),
    ],
)
def test_sparse_tensors_that_are_none(tmp_path: Path, sparse: Any, message: str) -> None:
    with pytest.raises(wg.ModelFileError, match=message):
        loaded(tmp_path, _sparse(*sparse))


def _called(*functions: bytes, first: str) -> bytes:
    return model([node(first, "x", "y", domain="mine")], {"x": [2]}, {"y": [2]}, functions=functions)


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    one = function("A", "a", "b", [node("B", "a", "b", domain="mine")])
    other = function("B", "a", "b", [node("A", "a", "b", domain="mine")])
    with pytest.raises(wg.ModelFileError, match="call themselves"):
        loaded(tmp_path, _called(one, other, first="A"))


def _doubling(name: str, inner: str) -> bytes:
    calls = [node(inner, "a", "c", domain="mine"), node(inner, "c", "b", domain="mine")]
    return function(name, "a", "b", calls)


def test_functions_that_multiply(tmp_path: Path) -> None:
    first = function("F0", "a", "b", [node("Relu", "a", "b")])
    rest = [_doubling(f"F{at}", f"F{at - 1}") for at in range(1, 60)]
    with pytest.raises(wg.ModelFileError, match="functions call each other until there are more than"):
        loaded(tmp_path, _called(first, *rest, first="F59"))


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


HUGE = np.asarray(1 << 40)
TEXTS = np.array(["a", "b"])


@pytest.mark.parametrize(
    ("made", "weights"),
    [
        (node("Range", "a b c", "y"), {"a": np.asarray(0), "b": HUGE, "c": np.asarray(1)}),
        (node("HannWindow", "a", "y"), {"a": HUGE}),
        (node("MelWeightMatrix", "a a a f f", "y"), {"a": HUGE, "f": np.float32(1)}),
        (node("ConstantOfShape", "a", "y", value=TEXTS[:1]), {"a": HUGE.reshape(1)}),
        (node("Expand", "t s", "y"), {"t": TEXTS, "s": np.array([1 << 27, 2])}),
        (node("Pad", "f s", "y", mode="edge"), {"f": np.ones(2, np.float32), "s": np.array([1 << 40, 0])}),
        (node("Resize", "f - s", "y"), {"f": np.ones(2, np.float32), "s": np.array([1e9], np.float32)}),
    ],
)
def test_few_numbers_make_no_huge_arrays(tmp_path: Path, made: bytes, weights: dict[str, Any]) -> None:
    with pytest.raises(wg.OutOfMemoryError, match="the host makes at most"):
        loaded(tmp_path, model([made], {}, ANY, weights))()


def test_more_parts_than_there_are_elements(tmp_path: Path) -> None:
    data = model([node("Split", "x", "y", num_outputs=1 << 40)], {"x": [2]}, ANY)
    with pytest.raises(wg.ShapeError, match="Split makes 1,099,511,627,776 parts of the 2"):
        loaded(tmp_path, data)(np.ones(2, np.float32))


def _branch(name: str) -> bytes:
    return graph([], {}, {name: [4]})


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
