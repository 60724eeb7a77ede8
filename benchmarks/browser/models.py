"""The workloads as ONNX files, for onnxruntime-web: just as much of the format as they need.

In: arrays. Out: the bytes of models: the block has attention by plain operations, and by both of
onnxruntime's own. An ONNX file is nested protobuf messages; a `Message` is the bytes of one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from work import FILES, HEAD, HEADS, LENGTH, WEIGHTS, WIDTH, file_of

__all__ = ["models"]

Message = bytes
FLOAT = 1
TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int32): 6, np.dtype(np.int64): 7}
VENDOR = "com.microsoft"


def models(name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, bytes]:
    """The ways a workload may be written, by name."""
    if name in FILES:
        return {"published": file_of(name).read_bytes()}
    if name == "matmul":
        shape = (arrays["a"].shape[0], arrays["b"].shape[1])
        return {"plain": _model([_node("MatMul", ("a", "b"), ("y",))], arrays, {}, shape)}
    return {way: _block(arrays, attention) for way, attention in _ATTENTION.items()}


def _block(
    arrays: Mapping[str, NDArray[Any]], attention: Callable[[dict[str, NDArray[Any]]], list[Message]]
) -> bytes:
    constants: dict[str, NDArray[Any]] = {"split": np.array([WIDTH] * 3, np.int64)}
    nodes = [
        _node("LayerNormalization", ("x", "gain", "bias"), ("first",), axis=-1),
        _node("MatMul", ("first", "wqkv"), ("qkv",)),
        _node("Split", ("qkv", "split"), ("q", "k", "v"), axis=-1),
    ]
    nodes += [
        *attention(constants),
        _node("MatMul", ("attended", "wo"), ("projected",)),
        _node("Add", ("projected", "x"), ("middle",)),
        _node("LayerNormalization", ("middle", "gain", "bias"), ("second",), axis=-1),
        _node("MatMul", ("second", "w1"), ("inner",)),
        _node("Gelu", ("inner",), ("active",), approximate="tanh"),
        _node("MatMul", ("active", "w2"), ("outer",)),
        _node("Add", ("outer", "middle"), ("y",)),
    ]
    return _model(nodes, arrays, constants, (LENGTH, WIDTH))


def _plain_attention(constants: dict[str, NDArray[Any]]) -> list[Message]:
    constants["heads"] = np.array([LENGTH, HEADS, HEAD], np.int64)
    constants["joined"] = np.array([LENGTH, WIDTH], np.int64)
    constants["scale"] = np.array(HEAD**-0.5, np.float32)
    constants["mask"] = np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1)
    nodes = []
    for each, order in (("q", (1, 0, 2)), ("k", (1, 2, 0)), ("v", (1, 0, 2))):
        nodes.append(_node("Reshape", (each, "heads"), (f"{each}_heads",)))
        nodes.append(_node("Transpose", (f"{each}_heads",), (f"{each}_turned",), perm=order))
    return [
        *nodes,
        _node("MatMul", ("q_turned", "k_turned"), ("products",)),
        _node("Mul", ("products", "scale"), ("scaled",)),
        _node("Add", ("scaled", "mask"), ("masked",)),
        _node("Softmax", ("masked",), ("shares",), axis=-1),
        _node("MatMul", ("shares", "v_turned"), ("by_heads",)),
        _node("Transpose", ("by_heads",), ("back",), perm=(1, 0, 2)),
        _node("Reshape", ("back", "joined"), ("attended",)),
    ]


def _batched(constants: dict[str, NDArray[Any]], *nodes: Message) -> list[Message]:
    """An operation from batches of q, k and v to one of `back`."""
    constants["batched"] = np.array([1, LENGTH, WIDTH], np.int64)
    constants["joined"] = np.array([LENGTH, WIDTH], np.int64)
    before = [_node("Reshape", (each, "batched"), (f"{each}_batched",)) for each in "qkv"]
    return [*before, *nodes, _node("Reshape", ("back", "joined"), ("attended",))]


def _masked_attention(constants: dict[str, NDArray[Any]]) -> list[Message]:
    constants["mask"] = np.triu(np.full((1, 1, LENGTH, LENGTH), -1e9, np.float32), 1)
    sources = ("q_batched", "k_batched", "v_batched", "", "", "mask")
    return _batched(constants, _node("MultiHeadAttention", sources, ("back",), VENDOR, num_heads=HEADS))


def _grouped_attention(constants: dict[str, NDArray[Any]]) -> list[Message]:
    constants["last"] = np.array([LENGTH - 1], np.int32)
    constants["total"] = np.array(LENGTH, np.int32)
    sources = ("q_batched", "k_batched", "v_batched", "", "", "last", "total")
    results = ("back", "keys", "values")
    heads = {"num_heads": HEADS, "kv_num_heads": HEADS}
    return _batched(constants, _node("GroupQueryAttention", sources, results, VENDOR, **heads))


_ATTENTION = {"plain": _plain_attention, "masked": _masked_attention, "grouped": _grouped_attention}

# Messages, with the numbers that onnx.proto gives to their fields


def _model(
    nodes: Iterable[Message],
    arrays: Mapping[str, NDArray[Any]],
    constants: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
) -> bytes:
    kept = {name: each for name, each in arrays.items() if name in WEIGHTS} | dict(constants)
    given = {name: each.shape for name, each in arrays.items() if name not in kept}
    graph = b"".join(_bytes(1, each) for each in nodes) + _text(2, "work")
    graph += b"".join(_bytes(5, _tensor(name, each)) for name, each in kept.items())
    graph += b"".join(_bytes(11, _value(name, each)) for name, each in given.items())
    graph += _bytes(12, _value("y", shape))
    opsets = _bytes(8, _text(1, "") + _number(2, 20)) + _bytes(8, _text(1, VENDOR) + _number(2, 1))
    return _number(1, 10) + _bytes(7, graph) + opsets


def _node(
    op: str, sources: Iterable[str], results: Iterable[str], domain: str = "", **attributes: Any
) -> Message:
    message = b"".join(_text(1, each) for each in sources) + b"".join(_text(2, each) for each in results)
    message += _text(4, op) + b"".join(_bytes(5, _attribute(name, each)) for name, each in attributes.items())
    return message + (_text(7, domain) if domain else b"")


def _attribute(name: str, value: int | str | tuple[int, ...]) -> Message:
    if isinstance(value, str):
        return _text(1, name) + _text(4, value) + _number(20, 3)
    if isinstance(value, tuple):
        return _text(1, name) + b"".join(_number(8, each) for each in value) + _number(20, 7)
    return _text(1, name) + _number(3, value) + _number(20, 2)


def _tensor(name: str, array: NDArray[Any]) -> Message:
    sides = b"".join(_number(1, side) for side in array.shape)
    return sides + _number(2, TYPES[array.dtype]) + _text(8, name) + _bytes(9, array.tobytes())


def _value(name: str, shape: tuple[int, ...]) -> Message:
    sides = b"".join(_bytes(1, _number(1, side)) for side in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, FLOAT) + _bytes(2, sides)))


def _number(field: int, value: int) -> Message:
    return _varint(field << 3) + _varint(value % (1 << 64))


def _text(field: int, value: str) -> Message:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> Message:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Seven bits to a byte, the lowest first; all but the last have the highest bit set."""
    made = b""
    while value > 127:
        made += struct.pack("B", value & 127 | 128)
        value >>= 7
    return made + struct.pack("B", value)
