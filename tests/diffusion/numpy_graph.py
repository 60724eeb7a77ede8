"""Graph models of TensorFlow.js by plain NumPy: what the library's own way of running them is compared with.

In: a folder with model.json and its shards; arrays. Out: arrays of float32. It reads the files by itself and
uses nothing of webgrad.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["NumpyGraph", "ddim"]

Array = np.ndarray[Any, Any]
PLAIN = {"float32": "<f4", "int32": "<i4"}


class NumpyGraph:
    """A graph model, node by node."""

    def __init__(self, folder: Path) -> None:
        model = json.loads((folder / "model.json").read_text())
        self.nodes = model["modelTopology"]["node"]
        self.weights = {}
        for group in model["weightsManifest"]:
            data = b"".join((folder / name).read_bytes() for name in group["paths"])
            start = 0
            for entry in group["weights"]:
                codes = entry.get("quantization")
                dtype = np.dtype(codes["dtype"] if codes else PLAIN[entry["dtype"]])
                count = math.prod(entry["shape"])
                found = np.frombuffer(data, dtype, count, start).reshape(entry["shape"])
                if codes:
                    found = (found.astype(np.float64) * codes["scale"] + codes["min"]).astype(np.float32)
                self.weights[entry["name"]] = found
                start += count * dtype.itemsize

    def __call__(self, **inputs: Array) -> Array:
        """The last node's value."""
        values: dict[str, Array] = {}
        for node in self.nodes:
            if node["op"] == "Const":
                found = self.weights[node["name"]]
            elif node["op"] == "Placeholder":
                found = inputs[node["name"]]
            else:
                read = [values[name] for name in node.get("input", ())]
                found = OPS[node["op"]](*read, **_attributes(node))
            values[node["name"]] = found
        return found


def _attributes(node: Any) -> dict[str, Any]:
    """Texts as texts, lists of integers as such; others as the file has them."""
    found = {}
    for name, value in node.get("attr", {}).items():
        [(kind, plain)] = value.items()
        if kind == "list":
            plain = [int(each) for each in plain["i"]] if "i" in plain else plain.get("s", [])
        found[name] = (
            base64.b64decode(plain).decode() if kind == "s" else int(plain) if kind == "i" else plain
        )
    return found


def _conv(x: Array, weight: Array, bias: Array | None = None, **how: Any) -> Array:
    """A product for each place of a window."""
    height, width, _, outputs = weight.shape
    step = how["strides"][1]
    sizes = [-(-size // step) for size in x.shape[1:3]]
    if how["padding"] == "SAME":
        more = [
            max((out - 1) * step + span - size, 0)
            for out, span, size in zip(sizes, (height, width), x.shape[1:3], strict=True)
        ]
        x = np.pad(x, ((0, 0), *((each // 2, each - each // 2) for each in more), (0, 0)))
    found = np.zeros((x.shape[0], *sizes, outputs), np.float32)
    for row in range(height):
        for column in range(width):
            ends = row + (sizes[0] - 1) * step + 1, column + (sizes[1] - 1) * step + 1
            taken = x[:, row : ends[0] : step, column : ends[1] : step]
            rows = taken.reshape(-1, taken.shape[-1])  # one product, which is quick; a stack of them is not
            found += (rows @ weight[row, column]).reshape(found.shape)
    return found if bias is None else found + bias


def _strided_slice(x: Array, begin: Array, end: Array, strides: Array, **masks: Any) -> Array:
    chosen: list[Any] = []
    for at, (first, last, step) in enumerate(
        zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
    ):
        if masks["new_axis_mask"] >> at & 1:
            chosen.append(None)
        elif masks["shrink_axis_mask"] >> at & 1:
            chosen.append(first)
        else:
            low = None if masks["begin_mask"] >> at & 1 else first
            chosen.append(slice(low, None if masks["end_mask"] >> at & 1 else last, step))
    return np.asarray(x[tuple(chosen)])


def _softmax(x: Array, **_: Any) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def _nearest(x: Array, size: Array, **_: Any) -> Array:
    rows, columns = (size // x.shape[1:3]).tolist()
    return x.repeat(rows, 1).repeat(columns, 2)


def _fold(function: Callable[..., Any]) -> Callable[..., Array]:
    def fold(x: Array, axes: Array, **how: Any) -> Array:
        along = tuple(np.atleast_1d(axes).tolist())
        return np.asarray(function(x, axis=along, keepdims=how["keep_dims"])).astype(x.dtype)

    return fold


OPS: dict[str, Callable[..., Array]] = {
    "AddV2": lambda a, b, **_: a + b,
    "BiasAdd": lambda a, b, **_: a + b,
    "Cast": lambda x, **_: x.astype(np.float32),
    "ConcatV2": lambda *x, **_: np.concatenate(x[:-1], int(x[-1])),
    "Conv2D": _conv,
    "Cos": lambda x, **_: np.cos(x),
    "Einsum": lambda *x, equation, **_: np.einsum(equation.replace(" ", ""), *x, optimize="optimal"),
    "FloorDiv": lambda a, b, **_: a // b,
    "GatherV2": lambda x, places, axis, **_: np.take(x, places, int(axis)),
    "Identity": lambda x, **_: x,
    "MatMul": lambda a, b, **_: a @ b,
    "Mean": _fold(np.mean),
    "Mul": lambda a, b, **_: a * b,
    "Pack": lambda *x, axis, **_: np.stack(x, axis),
    "Prod": _fold(np.prod),
    "Reshape": lambda x, shape, **_: x.reshape(shape.tolist()),
    "ResizeNearestNeighbor": _nearest,
    "Rsqrt": lambda x, **_: 1 / np.sqrt(x),
    "Shape": lambda x, **_: np.asarray(x.shape, np.int32),
    "Sigmoid": lambda x, **_: 1 / (1 + np.exp(-x)),
    "Sin": lambda x, **_: np.sin(x),
    "Softmax": _softmax,
    "SquaredDifference": lambda a, b, **_: (a - b) ** 2,
    "StridedSlice": _strided_slice,
    "Sub": lambda a, b, **_: a - b,
    "_FusedConv2D": _conv,
    "_FusedMatMul": lambda a, b, bias, **_: a @ b + bias,
}


def ddim(graph: NumpyGraph, noise: Array, steps: int, trained: int = 300) -> Array:
    """Pictures (n, height, width, 3) of noise: from the last time step of training to the first, evenly.

    The schedule is the cosine with s = 0.008, whose steps add between 0.0001 and 0.9999 of noise.
    """
    angles = (np.arange(trained + 1) / trained + 0.008) / 1.008 * (math.pi / 2)
    shares = np.cos(angles) ** 2
    kept = np.cumprod(1 - np.clip(1 - shares[1:] / shares[:-1], 0.0001, 0.9999))
    stride = trained // steps
    x = noise
    for time in range(trained - 1, -1, -stride):
        before = kept[time - stride] if time >= stride else 1.0
        epsilon = graph(image_input=x, time_input=np.full(len(x), time))
        picture, noisy = (np.float32(math.sqrt(each)) for each in (kept[time], 1 - kept[time]))
        original = np.clip((x - noisy * epsilon) / picture, -1, 1)
        x = np.float32(math.sqrt(before)) * original + np.float32(math.sqrt(1 - before)) * epsilon
    return x
