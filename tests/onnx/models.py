"""Small ONNX models as bytes, without the package onnx: messages by the tables of `webgrad.onnx.schema`.

    model([node("Add", "x w", "y")], {"x": ["n", 2]}, {"y": ["n", 2]}, weights={"w": np.ones(2, np.float32)})

Names of inputs and outputs are texts that spaces part. A type is a shape of float32, a pair (name, shape),
or None where nothing is said of it; attributes are Python values, and graphs are what `graph` gives.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from webgrad.onnx.schema import MESSAGES
from webgrad.onnx.types import code_of

__all__ = [
    "Graph",
    "attribute",
    "encode",
    "floats",
    "function",
    "graph",
    "loaded",
    "model",
    "node",
    "tensor",
    "value",
]

OPSET = 18
Weights = Mapping[str, Any]
_FORMATS = {"float": (5, "<f"), "double": (1, "<d")}


def varint(number: int) -> bytes:
    """A number in groups of seven bits."""
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def encode(kind: str, **fields: Any) -> bytes:
    """A message; inner ones are given as bytes, repeated fields as sequences."""
    rows = {each.name: each for each in MESSAGES[kind].values()}
    parts: list[bytes] = []
    for name, given in fields.items():
        row = rows[name]
        parts += [_field(row.number, row.kind, each) for each in (given if row.repeated else [given])]
    return b"".join(parts)


def _field(number: int, kind: str, value: Any) -> bytes:
    if kind == "int":
        return varint(number << 3) + varint(int(value))
    if kind in _FORMATS:
        wire, layout = _FORMATS[kind]
        return varint(number << 3 | wire) + struct.pack(layout, value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | 2) + varint(len(data)) + data


class Graph(bytes):
    """A graph's message, told apart from texts where it is an attribute."""


def tensor(name: str, array: Any) -> bytes:
    """A Tensor message with raw data; texts as texts."""
    array = np.asarray(array)
    head = {"name": name, "dims": array.shape, "data_type": code_of(array.dtype)}
    if array.dtype.kind in "OU":
        return encode("Tensor", **head, string_data=[str(each).encode() for each in array.reshape(-1)])
    return encode("Tensor", **head, raw_data=array.tobytes())


def value(name: str, type_: Any) -> bytes:
    """A ValueInfo message."""
    if type_ is None:
        return encode("ValueInfo", name=name)
    dtype, shape = type_ if isinstance(type_, tuple) else ("float32", type_)
    facts: dict[str, Any] = {"elem_type": code_of(np.dtype(object) if dtype == "string" else np.dtype(dtype))}
    if shape is not None:
        facts["shape"] = encode("Shape", dim=[_dimension(each) for each in shape])
    kind = encode("Type", tensor_type=encode("TensorType", **facts))
    return encode("ValueInfo", name=name, type=kind)


def _dimension(side: int | str | None) -> bytes:
    if side is None:
        return b""
    return encode("Dimension", **{"dim_param" if isinstance(side, str) else "dim_value": side})


_KINDS = {"f": 1, "i": 2, "s": 3, "t": 4, "g": 5, "floats": 6, "ints": 7, "strings": 8}


def attribute(name: str, given: Any) -> bytes:
    """An Attribute message; what is none of Python's plain values is a tensor."""
    kind = _kind_of(given)
    data = tensor("", given) if kind == "t" else given
    return encode("Attribute", name=name, type=_KINDS[kind], **{kind: data})


def _kind_of(given: Any) -> str:
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        first = given[0] if len(given) else 0
        return {float: "floats", str: "strings"}.get(type(first), "ints")
    return {Graph: "g", str: "s", bytes: "s", float: "f", int: "i", bool: "i"}.get(type(given), "t")


def node(
    kind: str, inputs: str = "", outputs: str = "", /, domain: str = "", called: str = "", **attributes: Any
) -> bytes:
    """A Node message; `-` among the names is one left out, and bytes are an attribute's message."""
    given = [each if type(each) is bytes else attribute(name, each) for name, each in attributes.items()]
    names = {"input": _names(inputs), "output": _names(outputs)}
    return encode("Node", op_type=kind, domain=domain, name=called, **names, attribute=given)


def _names(text: str) -> list[str]:
    return ["" if each == "-" else each for each in text.split()]


def graph(
    nodes: Sequence[bytes],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    weights: Weights | None = None,
    name: str = "g",
) -> Graph:
    """A Graph message."""
    facts = {
        "node": nodes,
        "initializer": [tensor(each, array) for each, array in (weights or {}).items()],
        "input": [value(each, type_) for each, type_ in inputs.items()],
        "output": [value(each, type_) for each, type_ in outputs.items()],
    }
    return Graph(encode("Graph", name=name, **facts))


def function(
    name: str, inputs: str, outputs: str, nodes: Sequence[bytes], domain: str = "mine", **more: Any
) -> bytes:
    """A Function message; `attribute` are names, `attribute_proto` messages with defaults."""
    facts = {"input": inputs.split(), "output": outputs.split(), "node": nodes}
    return encode("Function", name=name, domain=domain, opset_import=[_opset("", OPSET)], **facts, **more)


def model(
    nodes: Sequence[bytes],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    weights: Weights | None = None,
    opset: int | Mapping[str, int] = OPSET,
    **more: Any,
) -> bytes:
    """A Model message: a whole file."""
    opsets = {"": opset} if isinstance(opset, int) else opset
    imports = [_opset(domain, version) for domain, version in opsets.items()]
    facts = {"ir_version": 10, "opset_import": imports} | more
    return encode("Model", graph=graph(nodes, inputs, outputs, weights), **facts)


def _opset(domain: str, version: int) -> bytes:
    return encode("OperatorSet", domain=domain, version=version)


def loaded(folder: Path, data: bytes, device: str = "cpu") -> wg.onnx.Model:
    """A model's bytes written to a folder and loaded."""
    path = folder / "m.onnx"
    path.write_bytes(data)
    return wg.onnx.load(path, device=device)


def floats(*values: Any) -> Any:
    """An array of float32."""
    return np.asarray(values, np.float32)
