"""The workloads as ONNX models, for the peers that read those."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from worker import Array, Missing
from workloads import BLOCK_LENGTH, HEAD, HEADS, LENGTH, TINY, WIDTH

__all__ = ["Model", "model"]

TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int64): TensorProto.INT64,
}
WEIGHTS = ("w", "wqkv", "wo", "w1", "w2", "gain", "bias", "codes", "scales")  # kept in the model
Model = tuple[bytes, dict[str, Array]]  # the file, what it is fed with


def model(name: str, inputs: dict[str, Array], *, vendor: bool = False) -> Model:
    """A workload's model and its feeds; `vendor`: onnxruntime's own operations may be used."""
    make = _Maker(inputs)
    shape = make.add(name, vendor=vendor)
    return make.finish(shape)


class _Maker:
    def __init__(self, inputs: dict[str, Array]) -> None:
        self.inputs = inputs
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def node(self, op: str, sources: list[str], result: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, sources, [result], **attributes))
        return result

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def finish(self, shape: tuple[int, ...]) -> Model:
        weights = {name: each for name, each in self.inputs.items() if name in WEIGHTS} | self.constants
        feeds = {name: each for name, each in self.inputs.items() if name not in weights}
        kind = TYPES[next(iter(feeds.values())).dtype]
        graph = helper.make_graph(
            self.nodes,
            "workload",
            [
                helper.make_tensor_value_info(name, TYPES[each.dtype], each.shape)
                for name, each in feeds.items()
            ],
            [helper.make_tensor_value_info("y", kind, shape)],
            [numpy_helper.from_array(each, name) for name, each in weights.items()],
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds

    def add(self, name: str, *, vendor: bool) -> tuple[int, ...]:
        """The nodes that end in y, whose shape it gives."""
        i = self.inputs
        if name.startswith("matmul"):
            self.node("MatMul", ["a", "b"], "y")
            return i["a"].shape
        if name in ("matvec_f32", "matvec_f16"):
            self.node("MatMul", ["x", "w"], "y")
            return 1, i["w"].shape[1]
        if name == "matvec_4bit" and vendor:
            return self.four_bit()
        if name == "gelu":
            self.inputs = {key: each.reshape(4096, -1) for key, each in i.items()}
            self.node("Add", [self.node("Mul", ["a", "b"], "ab"), "c"], "abc")
            self.node("Gelu", ["abc"], "y", approximate="tanh")
            return 4096, i["a"].size // 4096
        if name == "softmax":
            self.node("Softmax", ["x"], "y", axis=-1)
            return i["x"].shape
        if name == "layer_norm":
            self.node("LayerNormalization", ["x", "gain", "bias"], "y", axis=-1)
            return i["x"].shape
        if name == "sum":
            self.inputs = {"x": i["x"].reshape(4096, -1)}
            self.node("ReduceSum", ["x"], "y", keepdims=0)
            return ()
        if name == "conv":
            self.node("Conv", ["x", "w"], "y", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            return i["x"].shape
        if name in ("attention", "decode"):
            self.node("Transpose", ["k"], "turned", perm=[0, 1, 3, 2])
            self.attention("q", "turned", "v", "y", causal=name == "attention")
            return i["q"].shape
        if name == "block":
            return self.block()
        if name == "tiny":
            last = "a"
            for at in range(TINY):
                result = f"t{at}" if at < TINY - 1 else "y"
                last = self.node("Mul" if at & 1 else "Sub", [last, "b"], result)
            return i["a"].shape
        raise Missing("there is no ONNX model of it here")

    def four_bit(self) -> tuple[int, ...]:
        codes = self.inputs.pop("codes").reshape(-1, self.inputs["x"].shape[1] // BLOCK_LENGTH, 16, 2)
        scales = self.inputs.pop("scales").astype(np.float32)
        self.constant("codes", codes[..., 0] | (codes[..., 1] << 4))
        self.constant("scales", scales)
        rows, columns = codes.shape[0], self.inputs["x"].shape[1]
        self.node(
            "MatMulNBits", ["x", "codes", "scales"], "y", domain="com.microsoft", K=columns, N=rows, bits=4,
            block_size=BLOCK_LENGTH,
        )  # fmt: skip
        return 1, rows

    def attention(self, q: str, k: str, v: str, result: str, *, causal: bool) -> None:
        """`k` is turned already."""
        self.constant("scale", np.array(HEAD**-0.5, np.float32))
        scores = self.node("Mul", [self.node("MatMul", [q, k], "products"), "scale"], "scaled")
        if causal:
            self.constant("mask", np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1))
            scores = self.node("Add", [scores, "mask"], "masked")
        self.node("MatMul", [self.node("Softmax", [scores], "shares", axis=-1), v], result)

    def block(self) -> tuple[int, ...]:
        self.constant("split", np.array([WIDTH] * 3, np.int64))
        self.constant("heads", np.array([1, LENGTH, HEADS, HEAD], np.int64))
        self.constant("joined", np.array([1, LENGTH, WIDTH], np.int64))
        self.node("LayerNormalization", ["x", "gain", "bias"], "first", axis=-1)
        self.node("MatMul", ["first", "wqkv"], "qkv")
        self.nodes.append(helper.make_node("Split", ["qkv", "split"], ["q", "k", "v"], axis=-1))
        for each, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            self.node("Reshape", [each, "heads"], f"{each}_heads")
            self.node("Transpose", [f"{each}_heads"], f"{each}_turned", perm=order)
        self.attention("q_turned", "k_turned", "v_turned", "attended", causal=True)
        self.node(
            "Reshape", [self.node("Transpose", ["attended"], "back", perm=[0, 2, 1, 3]), "joined"], "flat"
        )
        self.node("Add", [self.node("MatMul", ["flat", "wo"], "projected"), "x"], "middle")
        self.node("LayerNormalization", ["middle", "gain", "bias"], "second", axis=-1)
        self.node("Gelu", [self.node("MatMul", ["second", "w1"], "inner")], "active", approximate="tanh")
        self.node("Add", [self.node("MatMul", ["active", "w2"], "outer"), "middle"], "y")
        return 1, LENGTH, WIDTH
