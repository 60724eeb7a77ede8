"""Graph models of TensorFlow.js: run as plain NumPy runs them, and refused with the node's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusion.numpy_graph import NumpyGraph
from tests.onnx.tfjs import node, placeholder, unet, write_graph

DRAWN = np.random.default_rng(3)


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("count", [1, 3])
def test_a_network_is_what_numpy_makes_of_it(count: int, device: str, tmp_path: Path) -> None:
    folder = unet(tmp_path)
    model = wg.onnx.load(folder / "model.json", device=device)
    given: dict[str, Any] = {
        "image_input": DRAWN.standard_normal((count, 8, 8, 3), np.float32),
        "time_input": np.arange(count, dtype=np.int64) * 3,
    }
    found = model(**given)
    assert list(found) == ["Identity"]
    np.testing.assert_allclose(found[0].numpy(), NumpyGraph(folder)(**given), 1e-5, 1e-5)
    assert model.waits == ()


def test_what_the_file_says_of_it(tmp_path: Path) -> None:
    model = wg.onnx.load(unet(tmp_path), device="cpu")
    shown = [str(each) for each in model.inputs]
    assert shown == ["image_input: float32[?, 8, 8, 3]", "time_input: int64[?]"]
    with pytest.raises(wg.ShapeError, match="image_input"):
        model(np.zeros((1, 4, 4, 3), np.float32), [1])


def test_its_weights_train(tmp_path: Path) -> None:
    module = wg.onnx.load(unet(tmp_path), device="cpu").to_module()
    x = DRAWN.standard_normal((1, 8, 8, 3), np.float32)
    module(x, [1]).sum().backward()
    grads = {name: each.grad for name, each in module.named_parameters()}
    assert all(each is not None and np.abs(each.numpy()).max() > 0 for each in grads.values())


def changed(folder: Path, name: str, changes: dict[str, Any]) -> Path:
    """The network with another node of a name."""
    model = json.loads((unet(folder) / "model.json").read_text())
    nodes = model["modelTopology"]["node"]
    place = next(at for at, each in enumerate(nodes) if each["name"] == name)
    nodes[place] |= changes
    (folder / "model.json").write_text(json.dumps(model))
    return folder / "model.json"


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("swish", {"op": "Teleport"}, "swish is Teleport, which webgrad has not"),
        ("swish", {"input": ["joined", "nowhere"]}, "swish reads nowhere, which is not there"),
        ("swish", {"input": ["joined", "gate:1"]}, "the value gate:1 is computed nowhere"),
        ("joined", {"input": ["swish", "sizes"]}, "reads what is computed of it"),
        ("swish", {"attr": {"speed": {"i": "1"}}}, "has no attribute speed"),
        ("dense", {"name": "other"}, "there is no weight other"),
        ("last", {"attr": {}}, "the attribute padding, strides of tensorflow.Conv2D is missing"),
        ("swish", {"input": ["joined"] * 3}, "takes 2 inputs, and gets 3"),
        ("Identity", {"name": "joined"}, "two of its nodes have one name"),
    ],
)
def test_graphs_that_do_not_hold_together(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = changed(tmp_path, name, changes)
    with pytest.raises(wg.ModelFileError, match=message):
        wg.onnx.load(path, device="cpu")


@pytest.mark.parametrize(
    "attribute",
    [{"i": "3"}, {"s": "QQ=="}, {"list": {"f": [0.5]}}, {"shape": {"dim": [{"size": str(10**30)}]}},
     {"shape": {"dim": [{"size": "-2"}]}}, {"shape": {"dim": [{"size": "1"}] * 99}}],
)  # fmt: skip
def test_shapes_of_inputs_that_no_array_has(attribute: Any, tmp_path: Path) -> None:
    path = changed(tmp_path, "image_input", {"attr": {"shape": attribute}})
    with pytest.raises(wg.ModelFileError, match=r"model\.json: image_input has the shape"):
        wg.onnx.load(path, device="cpu")


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"signature": [1]}, "signature"),
        ({"signature": {"outputs": ["Identity"]}}, "outputs"),
        ({"signature": {"outputs": {"a": "b"}}}, "a"),
        ({"signature": None, "userDefinedMetadata": [1]}, "userDefinedMetadata"),
        ({"signature": None, "userDefinedMetadata": {"signature": "x"}}, "signature"),
    ],
)
def test_what_is_told_of_outputs_is_tables(told: dict[str, Any], name: str, tmp_path: Path) -> None:
    path = unet(tmp_path) / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | told))
    with pytest.raises(wg.ModelFileError, match=rf"model\.json is damaged: {name} is .*, and no table"):
        wg.onnx.load(path, device="cpu")


def test_outputs_that_no_file_tells_are_those_that_nobody_reads(tmp_path: Path) -> None:
    path = unet(tmp_path) / "model.json"
    told = {"signature": None, "userDefinedMetadata": None}
    path.write_text(json.dumps(json.loads(path.read_text()) | told))
    assert [each.name for each in wg.onnx.load(path, device="cpu").outputs] == ["Identity"]


def test_nodes_in_any_order(tmp_path: Path) -> None:
    folder = unet(tmp_path)
    model = json.loads((folder / "model.json").read_text())
    model["modelTopology"]["node"].reverse()
    given = {"image_input": np.ones((1, 8, 8, 3), np.float32), "time_input": np.asarray([2])}
    wanted = NumpyGraph(folder)(**given)
    (folder / "model.json").write_text(json.dumps(model))
    found = wg.onnx.load(folder, device="cpu")(**given)[0].numpy()
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


def run(op: str, *inputs: Any, **attributes: Any) -> Any:
    """The only output of a graph of one node; arrays are its inputs."""
    import tempfile

    names = [f"x{at}" for at in range(len(inputs))]
    arrays = [np.asarray(each) for each in inputs]
    wholes = {
        name: each.astype(np.int32)
        for name, each in zip(names, arrays, strict=True)
        if each.dtype.kind == "i"
    }
    given = {name: each for name, each in zip(names, arrays, strict=True) if name not in wholes}
    nodes = [placeholder(name, "float32", *each.shape) for name, each in given.items()]
    nodes.append(node(op, "y", " ".join(names), **attributes))
    with tempfile.TemporaryDirectory() as folder:
        return wg.onnx.load(write_graph(Path(folder), nodes, wholes), device="cpu")(**given)[0].numpy()


X = DRAWN.standard_normal((2, 5, 6, 3), np.float32)
PLAIN = {"padding": "SAME", "strides": [1, 1, 1, 1]}
WINDOWS = {"data_format": "NHWC", "dilations": [1, 1, 1, 1]}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (lambda: run("Relu", X), np.maximum(X, 0)),
        (lambda: run("LeakyRelu", X, alpha=0.1), np.where(X > 0, X, X * np.float32(0.1))),
        (lambda: run("Transpose", X, [0, 3, 1, 2]), X.transpose(0, 3, 1, 2)),
        (lambda: run("ExpandDims", X, -1), X[..., None]),
        (lambda: run("Squeeze", X[:, :1], squeeze_dims=[1]), X[:, 0]),
        (lambda: run("Squeeze", X[:1, :1]), X[0, 0]),
        (lambda: run("Pad", X, [[0, 0], [1, 2], [0, 1], [0, 0]]),
         np.pad(X, ((0, 0), (1, 2), (0, 1), (0, 0)))),
        (lambda: run("GatherV2", X, [2, 0, 2], 3, batch_dims=0), X[..., [2, 0, 2]]),
        (lambda: run("Sum", X, [1, -1], keep_dims=False), X.sum((1, 3))),
        (lambda: run("Max", X, 2, keep_dims=True), X.max(2, keepdims=True)),
        (lambda: run("Min", X, [0]), X.min(0)),
        (lambda: run("BatchMatMulV2", X, X, adj_y=True), X @ X.swapaxes(-1, -2)),
        (lambda: run("AddN", X, X, X), X * 3),
        (lambda: run("FloorDiv", X, X[:, :1]), X // X[:, :1]),
        (lambda: run("BiasAdd", X, X[0, 0, 0]), X + X[0, 0, 0]),
        (lambda: run("StridedSlice", X, [0, 4, 1, 0], [0, 0, 3, 0], [1, -2, 1, 1], begin_mask=9, end_mask=9),
         X[:, 4:0:-2, 1:3]),
        (lambda: run("StridedSlice", X, [0, 1], [0, 0], [1, 1], ellipsis_mask=1, shrink_axis_mask=2),
         X[..., 1]),
    ],
)  # fmt: skip
def test_operators(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found(), wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
def test_convolutions(padding: str, stride: int) -> None:
    weight = DRAWN.standard_normal((3, 2, 3, 4), np.float32)
    explicit = [0, 0, 1, 2, 0, 1, 0, 0] if padding == "EXPLICIT" else []
    how = {"strides": [1, stride, stride, 1], "explicit_paddings": explicit, **WINDOWS}
    found = run("Conv2D", X, weight, padding=padding, **how)
    x = X
    if padding == "SAME":
        totals = [max((-(-n // stride) - 1) * stride + k - n, 0) for n, k in ((5, 3), (6, 2))]
        x = np.pad(X, ((0, 0), *((each // 2, each - each // 2) for each in totals), (0, 0)))
    if padding == "EXPLICIT":
        x = np.pad(X, ((0, 0), (1, 2), (0, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::stride, ::stride]
    np.testing.assert_allclose(found, np.einsum("nhwcij,ijco->nhwo", windows, weight), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Conv2D", 2, {**PLAIN, "data_format": "NCHW"}, "data_format is NHWC"),
        ("Conv2D", 2, {**PLAIN, "padding": "FULL"}, "padding is SAME, VALID or EXPLICIT"),
        ("Conv2D", 2, {**PLAIN, "strides": [2, 1, 1, 1]}, "strides goes over height and width"),
        ("_FusedConv2D", 2, {**PLAIN, "fused_ops": ["BiasAdd"]}, "with 0 inputs"),
        ("_FusedConv2D", 2, {**PLAIN, "fused_ops": ["Warp"]}, "no 'Warp' behind"),
        ("Cast", 1, {"DstT": {"type": "DT_VARIANT"}}, "Cast to DT_VARIANT"),
        ("GatherV2", 1, {"batch_dims": 1}, "GatherV2"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused_by_name(
    op: str, inputs: int, attributes: dict[str, Any], message: str
) -> None:
    weight = DRAWN.standard_normal((3, 3, 3, 4), np.float32)
    with pytest.raises(wg.ModelFileError, match=message):
        run(op, *(X, weight)[:inputs], **attributes)


def test_activations_behind_products() -> None:
    a, b = X[0, 0], X[0, 1].T
    found = run("_FusedMatMul", a, b, b[0], fused_ops=["BiasAdd", "Relu"])
    np.testing.assert_allclose(found, np.maximum(a @ b + b[0], 0), 1e-5, 1e-6)
