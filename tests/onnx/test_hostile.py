"""Files that lie: each is refused with a ModelFileError, soon, and without much memory."""

from __future__ import annotations

import gc
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.limits import processor_time
from tests.onnx.models import encode, floats, function, graph, loaded, model, node, tensor, value

X, Y = {"x": [2]}, {"y": None}
SECONDS = 1.0  # of processor time
HUGE = 1 << 40


def refused(folder: Path, data: bytes, message: str) -> None:
    with processor_time(SECONDS), pytest.raises(wg.ModelFileError, match=message):
        loaded(folder, data)


def of_graph(**fields: Any) -> bytes:
    opset = encode("OperatorSet", domain="", version=18)
    return encode("Model", ir_version=8, opset_import=[opset], graph=encode("Graph", **fields))


def with_weight(weight: bytes) -> bytes:
    """A model that adds a weight, given as a message."""
    add = node("Add", "x w", "y")
    return of_graph(node=[add], initializer=[weight], input=[value("x", [2])], output=[value("y", None)])


# Data of tensors


def outside(**facts: str) -> bytes:
    entries = [encode("Entry", key=key, value=text) for key, text in facts.items()]
    head = {"name": "w", "dims": [2], "data_type": 1, "data_location": 1}
    return with_weight(encode("Tensor", **head, external_data=entries))


@pytest.mark.parametrize(
    "place", ["../secret", "/etc/passwd", "a/../../secret", "", "C:secret", "x\0y", "missing"]
)
def test_data_outside_of_the_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / "secret").write_bytes(bytes(8))
    folder = tmp_path / "model"
    folder.mkdir()
    refused(
        folder, outside(location=place), "(no file of the model's folder|no file|cannot be read|not there)"
    )


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(8))
    (folder / "inside").symlink_to(tmp_path / "secret")
    refused(folder, outside(location="inside"), "a link out of")
    (folder / "below").symlink_to(tmp_path)
    refused(folder, outside(location="below/secret"), "a link out of")


@pytest.mark.parametrize(
    "facts",
    [
        {"offset": "4"},
        {"length": "12"},
        {"offset": "-4"},
        {"offset": "1e3"},
        {"offset": "9" * 18},
        {"length": "4"},
    ],
)
def test_sizes_of_data_in_another_file(tmp_path: Path, facts: dict[str, str]) -> None:
    (tmp_path / "d").write_bytes(bytes(8))
    refused(tmp_path, outside(location="d", **facts), "(ends at byte|no number|bytes are there)")
    (tmp_path / "sound").mkdir()
    (tmp_path / "sound" / "d").write_bytes(bytes(8))
    assert loaded(tmp_path / "sound", outside(location="d"))(floats(1, 2))[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "fields",
    [
        {"dims": [HUGE], "data_type": 1, "raw_data": bytes(8)},
        {"dims": [HUGE, HUGE, HUGE], "data_type": 1, "raw_data": b""},
        {"dims": [0, HUGE, HUGE], "data_type": 1, "raw_data": b""},
        {"dims": [(1 << 64) - 1], "data_type": 1, "raw_data": bytes(8)},
        {"dims": [1] * 70, "data_type": 1, "raw_data": bytes(4)},
        {"dims": [2], "data_type": 99, "raw_data": bytes(8)},
        {"dims": [2], "data_type": 8, "raw_data": bytes(8)},
        {"dims": [HUGE], "data_type": 22, "int32_data": [1]},
        {"dims": [3], "data_type": 1, "float_data": [1.0]},
        {"dims": [2], "data_type": 8, "string_data": [b"\xff", b"a"]},
    ],
)
def test_tensors_that_are_not_what_they_say(tmp_path: Path, fields: dict[str, Any]) -> None:
    refused(
        tmp_path, with_weight(encode("Tensor", name="w", **fields)), "(cannot be read|element type|no UTF-8)"
    )


@pytest.mark.parametrize(
    ("indices", "length", "message"),
    [
        (np.array([0]), 1 << 28, "1 values are there"),
        (floats(0), 2, "its indices are float32"),
        (np.array(["a"]), 2, "its indices are object"),
    ],
)
def test_a_sparse_tensor(tmp_path: Path, indices: Any, length: int, message: str) -> None:
    parts = {"values": tensor("w", floats(1)), "indices": tensor("", indices)}
    sparse = encode("SparseTensor", **parts, dims=[length])
    data = of_graph(
        node=[node("Add", "x w", "y")],
        sparse_initializer=[sparse],
        input=[value("x", [2])],
        output=[value("y", None)],
    )
    refused(tmp_path, data, message)


# Messages


def test_messages_in_messages_without_end(tmp_path: Path) -> None:
    inner = graph([node("Identity", "x", "y")], {}, Y)
    for _ in range(100):
        inner = graph([node("If", "c", "y", then_branch=inner, else_branch=graph([], {}, {}))], {}, Y)
    refused(tmp_path, model([node("If", "x", "y", then_branch=inner)], X, Y), "deeper than")


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 40, b"\x08" + b"\xff" * 12, b"\x3a\xff\xff\xff\xff\x0f", b"\x3b"]
)
def test_no_messages_at_all(tmp_path: Path, data: bytes) -> None:
    refused(tmp_path, data, "(damaged|empty|no ONNX|no graph)")


# Names and functions


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"node": [node("Abs", "x", "y"), node("Neg", "x", "y")]}, "y, which .* was computed before"),
        ({"node": [node("Abs", "z", "y"), node("Neg", "x", "z")]}, "reads z, which no earlier node"),
        ({"node": [node("Abs", "x", "z")]}, "its output y is computed nowhere"),
        ({"initializer": [tensor("y", floats(1))] * 2}, "two of its weights are called y"),
        ({"input": [value("y", [1]), value("y", [2])]}, "two of its inputs are called y"),
        ({"node": [node("Nothing", "x", "y")]}, "1 × Nothing"),
        ({"node": [node("Abs", "x", "y", turbo=1)]}, "no attribute turbo"),
        ({"node": [node("Abs", "x x", "y")]}, "takes 1 inputs"),
        ({"input": [value("x", [1] * 70)], "node": [node("Abs", "x", "y")]}, "said to be of the shape"),
    ],
)
def test_names_that_do_not_hold_together(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    sound = {"input": [value("x", [2])], "output": [value("y", None)]}
    refused(tmp_path, of_graph(**sound | fields), message)


def with_functions(functions: Sequence[bytes], name: str) -> bytes:
    opsets = {"": 18, "mine": 1}
    return model([node(name, "x", "y", domain="mine")], X, Y, opset=opsets, functions=functions)


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    own = function("F", "a", "b", [node("F", "a", "b", domain="mine")])
    refused(tmp_path, with_functions([own], "F"), "its function F calls itself")
    first = function("F", "a", "b", [node("G", "a", "b", domain="mine")])
    other = function("G", "a", "b", [node("F", "a", "b", domain="mine")])
    refused(tmp_path, with_functions([first, other], "F"), "calls itself")


def test_functions_that_double_at_each_step(tmp_path: Path) -> None:
    functions = [function("F0", "a", "b", [node("Abs", "a", "b")])]
    for at in range(1, 64):
        twice = [node(f"F{at - 1}", "a", "m", domain="mine"), node(f"F{at - 1}", "m", "b", domain="mine")]
        functions.append(function(f"F{at}", "a", "b", twice))
    refused(tmp_path, with_functions(functions, "F63"), "more than 262,144 nodes")
    assert loaded(tmp_path, with_functions(functions[:4], "F3"))(floats(-1, 2))[0].tolist() == [1.0, 2.0]


def test_functions_that_call_each_other_too_deep(tmp_path: Path) -> None:
    functions = [function("F0", "a", "b", [node("Abs", "a", "b")])]
    calls = [[node(f"F{at}", "a", "b", domain="mine")] for at in range(999)]
    functions += [function(f"F{at}", "a", "b", nodes) for at, nodes in enumerate(calls, 1)]
    refused(tmp_path, with_functions(functions, "F999"), "more than 128 deep")
    assert loaded(tmp_path, with_functions(functions[:128], "F127"))(floats(-1, 2))[0].tolist() == [1.0, 2.0]


# What weights ask for

SIZES = {"n": np.array([HUGE]), "r": np.array([1 << 20] * 3), "zero": np.array(0), "one": np.array(1)}


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        (
            [node("Range", "zero n one", "y")],
            {"n": np.array(HUGE), "zero": SIZES["zero"], "one": SIZES["one"]},
        ),
        ([node("HannWindow", "n", "y")], {"n": np.array(HUGE)}),
        ([node("Resize", "w - - n", "y")], {"w": floats(1, 2), "n": SIZES["n"]}),
        ([node("Range", "zero one n", "y")], {"n": np.array(0), "zero": SIZES["zero"], "one": SIZES["one"]}),
        ([node("Reshape", "w n", "y")], {"w": floats(1, 2), "n": np.array([3])}),
        ([node("Expand", "w n", "y")], {"w": floats(1, 2), "n": np.array([3])}),
        ([node("Tile", "w n", "y")], {"w": floats(1, 2), "n": np.array([-3])}),
        ([node("MelWeightMatrix", "n n n w w", "y")], {"n": np.array(1 << 20), "w": np.float32(1)}),
    ],
)
def test_what_cannot_be_made_of_weights(tmp_path: Path, nodes: Any, weights: Any) -> None:
    refused(tmp_path, model(nodes, {}, Y, weights), "y")


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ([node("ConstantOfShape", "n", "y")], {"n": SIZES["r"]}),
        ([node("ConstantOfShape", "n", "y")], {"n": np.array([-1])}),
        ([node("Expand", "w n", "y")], {"w": floats(1), "n": SIZES["r"]}),
        ([node("Tile", "w n", "y")], {"w": floats(1), "n": SIZES["n"]}),
        ([node("Pad", "w n", "y")], {"w": floats(1), "n": np.array([0, HUGE])}),
        ([node("OneHot", "i n v", "y")], {"i": np.array([0]), "n": np.array(HUGE), "v": floats(0, 1)}),
    ],
)
def test_huge_results_are_made_when_they_are_asked_for(tmp_path: Path, nodes: Any, weights: Any) -> None:
    with processor_time(2 * SECONDS), pytest.raises(wg.WebgradError):
        loaded(tmp_path, model(nodes, {}, Y, weights))()[0].numpy()
    gc.collect()  # what waits and can never be computed


def test_a_loop_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webgrad.onnx.evaluation.MOST_RUN", 1000)
    flags: dict[str, Any] = {"i": ("int64", []), "go": ("bool", []), "a": [2]}
    body = graph(
        [node("Identity", "go", "on"), node("Abs", "a", "c")], flags, {"on": ("bool", []), "c": None}
    )
    weights = {"m": np.array(1 << 62), "k": np.array(True)}
    found = loaded(tmp_path, model([node("Loop", "m k x", "y", body=body)], X, Y, weights))
    with pytest.raises(wg.ModelFileError, match=r"Loop .*1,000 nodes have run in one call|1,000 nodes"):
        found(floats(1, 2))


def test_many_weights_that_look_alike(tmp_path: Path) -> None:
    """Samples of them are equal: comparing each with all would take as long as there are pairs."""
    weights = {f"w{at}": np.frombuffer(struct.pack("<128xI", at), np.float32) for at in range(2000)}
    with processor_time(2 * SECONDS):
        loaded(tmp_path, model([node("Abs", "x", "y")], X, Y, weights))
