"""Graph models of TensorFlow.js, made for tests: nodes in lines, weights with codes of 8 bits."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["node", "unet", "write_graph"]

Array = np.ndarray[Any, Any]
TYPES = {"float32": "DT_FLOAT", "int32": "DT_INT32", "int64": "DT_INT64"}


def node(op: str, name: str, inputs: str = "", **attributes: Any) -> dict[str, Any]:
    """A node; texts, numbers, bools and lists of these as the file has them."""
    attr = {key: _attribute(value) for key, value in attributes.items()}
    return {"name": name, "op": op, "input": inputs.split(), "attr": attr}


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        kind = "s" if value and isinstance(value[0], str) else "i"
        return {"list": {kind: [_plain(each) for each in value]} if value else {}}
    if isinstance(value, dict):
        return value
    kind = {bool: "b", int: "i", float: "f", str: "s"}[type(value)]
    return {kind: _plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return base64.b64encode(value.encode()).decode()
    return str(value) if type(value) is int else value


def placeholder(name: str, dtype: str, *sizes: int) -> dict[str, Any]:
    shape = {"dim": [{"size": str(each)} for each in sizes]}
    return node("Placeholder", name, dtype={"type": TYPES[dtype]}, shape={"shape": shape})


def write_graph(folder: Path, nodes: list[Any], weights: Mapping[str, Array], **more: Any) -> Path:
    """A folder with model.json and one shard; floats of more than one number are codes."""
    data, entries = b"", []
    for name, array in weights.items():
        entry: dict[str, Any] = {"name": name, "shape": list(array.shape), "dtype": array.dtype.name}
        if array.dtype == np.float32 and array.size > 1:
            scale, least = float(array.max() - array.min()) / 255, float(array.min())
            entry["quantization"] = {"dtype": "uint8", "scale": scale, "min": least}
            array = np.round((array - least) / scale).astype(np.uint8)
        data += array.tobytes()
        entries.append(entry)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shard.bin").write_bytes(data)
    constants = [
        node("Const", name, dtype={"type": TYPES[each.dtype.name]}) for name, each in weights.items()
    ]
    model = {
        "format": "graph-model",
        "modelTopology": {"node": [*constants, *nodes], "library": {}},
        "weightsManifest": [{"paths": ["shard.bin"], "weights": entries}],
        **more,
    }
    (folder / "model.json").write_text(json.dumps(model))
    return folder


CONV = {"data_format": "NHWC", "dilations": [1, 1, 1, 1], "explicit_paddings": [], "padding": "SAME"}


def unet(folder: Path, size: int = 8) -> Path:
    """A network of pictures (n, size, size, 3) and time steps, with what those of Keras have in them."""
    drawn = np.random.default_rng(0)

    def floats(*shape: int) -> Array:
        return (drawn.standard_normal(shape) * 0.3).astype(np.float32)

    def whole(*numbers: int) -> Array:
        return np.asarray(numbers, np.int32)

    weights = {
        "filter1": floats(3, 3, 3, 8), "bias1": floats(8), "filter2": floats(3, 3, 8, 8),
        "bias2": floats(8), "filter3": floats(3, 3, 11, 3), "frequencies": floats(1, 4),
        "dense": floats(8, 8), "bias4": floats(8), "none": whole(0, 0),
        "two": whole(0, 2), "ones": whole(1, 1),
        "axis": np.asarray(-1, np.int32), "four": np.asarray(4, np.int32), "groups": np.asarray(2, np.int32),
        "folds": whole(1, 2, 4), "epsilon": np.asarray(0.001, np.float32), "wide": whole(size, size),
        "zeros": whole(0, 0, 0, 0), "ends": whole(0, 0, 0, 0), "steps": whole(1, 1, 1, 1),
        "first": whole(0), "second": whole(1), "one": whole(1), "side": np.asarray(size // 2, np.int32),
    }  # fmt: skip
    masks = {"ellipsis_mask": 0, "shrink_axis_mask": 0}
    moments = {"keep_dims": True}
    nodes = [
        placeholder("image_input", "float32", -1, size, size, 3),
        placeholder("time_input", "int64", -1),
        node("Cast", "time", "time_input", DstT={"type": "DT_FLOAT"}, Truncate=False),
        node("StridedSlice", "column", "time none two ones", begin_mask=1, end_mask=1, new_axis_mask=2,
             **masks),
        node("Mul", "angles", "column frequencies"),
        node("Sin", "sines", "angles"),
        node("Cos", "cosines", "angles"),
        node("ConcatV2", "features", "sines cosines axis", N=2),
        node("_FusedMatMul", "embedded", "features dense bias4", fused_ops=["BiasAdd"], transpose_a=False,
             transpose_b=False, epsilon=0.0, num_args=1),
        node("StridedSlice", "told", "embedded zeros ends steps", begin_mask=9, end_mask=9, new_axis_mask=6,
             **masks),
        node("_FusedConv2D", "down", "image_input filter1 bias1", strides=[1, 2, 2, 1],
             fused_ops=["BiasAdd"], epsilon=0.0, filter_format="HWIO", **CONV),
        node("AddV2", "both", "down told"),
        node("Shape", "sizes", "both", out_type={"type": "DT_INT32"}),
        node("StridedSlice", "count", "sizes first second one", begin_mask=0, end_mask=0, new_axis_mask=0,
             ellipsis_mask=0, shrink_axis_mask=1),
        node("Pack", "apart", "count side side groups four", axis=0, N=5),
        node("Reshape", "grouped", "both apart"),
        node("Mean", "mean", "grouped folds", **moments),
        node("SquaredDifference", "squares", "grouped mean"),
        node("Mean", "variance", "squares folds", **moments),
        node("AddV2", "steady", "variance epsilon"),
        node("Rsqrt", "scale", "steady"),
        node("Sub", "centred", "grouped mean"),
        node("Mul", "normal", "centred scale"),
        node("Reshape", "joined", "normal sizes"),
        node("Sigmoid", "gate", "joined"),
        node("Mul", "swish", "joined gate"),
        node("_FusedConv2D", "same", "swish filter2 bias2", strides=[1, 1, 1, 1], fused_ops=["BiasAdd"],
             epsilon=0.0, filter_format="HWIO", **CONV),
        node("Einsum", "scores", "same same", equation="bhwc, bijc->bhwij", N=2),
        node("Softmax", "shares", "scores"),
        node("Einsum", "seen", "shares same", equation="bhwij,bijc->bhwc", N=2),
        node("ResizeNearestNeighbor", "up", "seen wide", align_corners=False, half_pixel_centers=True),
        node("ConcatV2", "skip", "up image_input axis", N=2),
        node("Conv2D", "last", "skip filter3", strides=[1, 1, 1, 1], use_cudnn_on_gpu=True, **CONV),
        node("Identity", "Identity", "last"),
    ]  # fmt: skip
    outputs = {"noise": {"name": "Identity:0", "dtype": "DT_FLOAT"}}
    return write_graph(folder, nodes, weights, signature={"outputs": outputs})
