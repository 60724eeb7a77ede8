"""Damaged and hostile ONNX files: small models, of which bytes, fields or whole messages were changed.

In: a seed. Out: "refused" by a ModelFileError, or "loaded" and what a call with small inputs gave; `python -m
scripts.fuzz --only onnx`. A change of fields keeps the file a sound protobuf: lengths, types, names, numbers
and order become others, so that what a model says is damaged, not how it is written.
"""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from scripts.fuzz_files import HUGE, HUGER, change
from scripts.fuzzing import Case
from tests.onnx.models import function, graph, model, node, varint
from webgrad.onnx.schema import MESSAGES

__all__ = ["bytes_of", "sound", "start", "tree_of", "with_other_fields"]

Tree = list[list[Any]]  # of [field's row or None, number, wire, value]; a message's value is a tree


CALLED = 16  # one file in so many is called as well, which takes far longer than to load it

# Models to begin with

INT, FLOAT = np.int64, np.float32


def sound() -> list[bytes]:
    """Small models that run, with operators of every family."""
    x, y = {"x": [2, 3]}, {"y": None}
    ones = np.ones((3, 4), FLOAT)
    counts = {"shape": np.array([3, 2], INT), "axes": np.array([0], INT), "two": np.array([2, 2], INT)}
    single: dict[str, tuple[str, dict[str, Any]]] = {
        "Add": ("x x", {}), "MatMul": ("x w", {}), "Gemm": ("x w", {"alpha": 2.0}), "Relu": ("x", {}),
        "Softmax": ("x", {"axis": 1}), "Reshape": ("x shape", {}), "Transpose": ("x", {"perm": [1, 0]}),
        "Tile": ("x two", {}), "Unsqueeze": ("x axes", {}), "ReduceSum": ("x axes", {"keepdims": 1}),
        "Concat": ("x x", {"axis": 0}), "Split": ("x", {"axis": 1, "num_outputs": 1}),
        "CumSum": ("x axis", {}),
        "Gather": ("x axes", {"axis": 0}), "TopK": ("x one", {"axis": 1}), "Cast": ("x", {"to": 7}),
        "NonZero": ("x", {}), "Unique": ("x", {}), "ArgMax": ("x", {"axis": 0}), "Pad": ("x four", {}),
        "Expand": ("x more", {}), "Slice": ("x axes one", {}), "Clip": ("x", {}),
        "Einsum": ("x x", {"equation": "ij,kj->ik"}),
        "LayerNormalization": ("x gamma", {}), "OneHot": ("axes one both", {}), "Trilu": ("x", {}),
        "ScatterND": ("x index row", {}), "GatherElements": ("x index", {}), "Flatten": ("x", {"axis": 1}),
    }  # fmt: skip
    more: dict[str, Any] = {
        "w": ones, "one": np.array([1], INT), "four": np.array([0, 1, 1, 0], INT),
        "more": np.array([2, 2, 3], INT),
        "gamma": np.ones(3, FLOAT), "both": np.array([0, 1], FLOAT), "index": np.array([[1]], INT),
        "row": np.ones((1, 3), FLOAT), "axis": np.array(1, INT),
    }  # fmt: skip
    weights = counts | more
    found = []
    for kind, (inputs, attributes) in single.items():
        used = {name: weights[name] for name in inputs.split() if name in weights}
        outputs = "y i" if kind == "TopK" else "y"
        given = x if "x" in inputs.split() else {}
        found.append(model([node(kind, inputs, outputs, **attributes)], given, y, used))
    return [*found, *_larger()]


def _larger() -> Iterator[bytes]:
    """Models of several nodes: shapes that are computed, branches, loops, functions, sequences, images."""
    x, y = {"x": ["n", 3]}, {"y": None}
    nodes = [
        node("Shape", "x", "s"), node("Gather", "s zero", "n", axis=0),
        node("Concat", "n minus", "t", axis=0),
        node("ConstantOfShape", "t2", "c"), node("Range", "r0 r3 r1", "r"), node("Cast", "r", "f", to=1),
        node("Reshape", "x t", "u"), node("Add", "u c", "v"), node("Mul", "v f", "y"),
    ]  # fmt: skip
    scalars = {name: np.array(value, INT) for name, value in (("r0", 0), ("r3", 3), ("r1", 1))}
    arrays = {name: np.array([value], INT) for name, value in (("zero", 0), ("minus", -1))}
    yield model(nodes, x, y, {**scalars, **arrays, "t2": np.array([1, 3], INT)})
    half = {"b": None}
    then = graph([node("Neg", "x", "b")], {}, half)
    other = graph([node("Identity", "x", "b")], {}, half)
    branch = [
        node("Constant", "", "k", value=np.array(True)),
        node("If", "k", "y", then_branch=then, else_branch=other),
    ]
    yield model(branch, x, y)
    flags = {"i": ("int64", []), "go": ("bool", []), "a": ["n", 3]}
    body = graph(
        [node("Identity", "go", "on"), node("Add", "a a", "c"), node("Identity", "a", "each")],
        flags, {"on": ("bool", []), "c": None, "each": None},
    )  # fmt: skip
    yield model([node("Loop", "m k x", "y z", body=body)], x, y, {"m": np.array(3, INT), "k": np.array(True)})
    bodies = graph(
        [node("Add", "s r", "t"), node("Identity", "t", "o")], {"s": [3], "r": [3]}, {"t": None, "o": None}
    )
    yield model([node("Scan", "z x", "y o", body=bodies, num_scan_inputs=1)], x, y, {"z": np.zeros(3, FLOAT)})
    twice = function("Twice", "a", "b", [node("Add", "a a", "b")])
    four = function(
        "Four", "a", "b", [node("Twice", "a", "m", domain="mine"), node("Twice", "m", "b", domain="mine")]
    )
    yield model(
        [node("Four", "x", "y", domain="mine")], x, y, opset={"": 18, "mine": 1}, functions=[twice, four]
    )
    several = [node("SplitToSequence", "x", "s", axis=1), node("SequenceAt", "s at", "y")]
    yield model(several, x, y, {"at": np.array(1, INT)})
    image = {"x": [1, 2, 5, 5]}
    kernel = {"w": np.ones((3, 2, 3, 3), FLOAT), "sizes": np.array([1, 3, 6, 6], INT)}
    pictures = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1], strides=[1, 1]), node("Relu", "c", "d"),
        node("MaxPool", "d", "p", kernel_shape=[2, 2]), node("Resize", "p - - sizes", "y", mode="nearest"),
    ]  # fmt: skip
    yield model(pictures, image, y, kernel)
    gates = {"W": np.ones((1, 16, 3), FLOAT), "R": np.ones((1, 16, 4), FLOAT)}
    yield model([node("LSTM", "x W R", "y", hidden_size=4)], {"x": [2, 1, 3]}, y, gates)
    codes = {"s": np.array(0.5, FLOAT), "z": np.array(3, np.uint8), "w": np.ones((3, 2), np.uint8)}
    quantised = [
        node("QuantizeLinear", "x s z", "q"),
        node("MatMulInteger", "q w", "m"),
        node("Cast", "m", "y", to=1),
    ]
    yield model(quantised, x, y, codes)
    yield from _of_microsoft()
    words = [node("StringConcat", "t u", "y")]
    texts = {"t": np.array(["a", "b"], object), "u": np.array(["c", "d"], object)}
    yield model(words, {}, y, texts, opset=20)
    yield model([node("DFT", "x", "y", axis=1)], {"x": [2, 4, 1]}, y, opset=17)
    yield model([node("GridSample", "x g", "y")], image, y, {"g": np.zeros((1, 2, 2, 2), FLOAT)}, opset=16)


def _of_microsoft() -> Iterator[bytes]:
    """Operators of com.microsoft and of trees."""
    domain, y = "com.microsoft", {"y": None}
    opsets = {"": 18, domain: 1, "ai.onnx.ml": 3}
    packed = {"w": np.zeros((2, 1, 16), np.uint8), "s": np.ones((2, 1), FLOAT)}
    sizes: dict[str, Any] = {"K": 32, "N": 2, "bits": 4, "block_size": 32}
    yield model([node("MatMulNBits", "x w s", "y", domain, **sizes)], {"x": [1, 32]}, y, packed, opsets)
    norm = node("SkipLayerNormalization", "x x g", "y", domain)
    yield model([norm], {"x": [1, 2, 4]}, y, {"g": np.ones(4, FLOAT)}, opsets)
    heads = node("MultiHeadAttention", "x x x", "y", domain, num_heads=2)
    yield model([heads], {"x": [1, 2, 4]}, y, {}, opsets)
    batch = node("BatchNormalization", "x g g g g", "y")
    yield model([batch], {"x": [1, 2, 3]}, y, {"g": np.ones(2, FLOAT)}, opsets)
    rows = {"x": [1, 2]}
    scaled = node("Scaler", "x", "y", "ai.onnx.ml", offset=[1.0, 2.0], scale=[1.0, 0.5])
    yield model([scaled], rows, y, {}, opsets)


# Changes of fields


def tree_of(data: memoryview, kind: str) -> Tree:
    """A sound message as fields, with messages in them as trees."""
    known, at = MESSAGES[kind], 0
    found: Tree = []
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        row = known.get(number)
        if wire == 0:
            value, at = _varint(data, at)
            found.append([row, number, wire, value])
            continue
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, at = _varint(data, at)
        part: Any = data[at : at + size]
        at += size
        is_message = row is not None and row.kind in MESSAGES
        found.append([row, number, wire, tree_of(part, row.kind) if is_message and row else bytes(part)])
    return found


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return found, at


def bytes_of(tree: Tree) -> bytes:
    """The message of a tree."""
    parts = []
    for _, number, wire, value in tree:
        parts.append(varint(number << 3 | wire))
        if wire == 0:
            parts.append(varint(value))
            continue
        data = bytes_of(value) if isinstance(value, list) else value
        parts += [varint(len(data)), data] if wire == 2 else [data]
    return b"".join(parts)


def fields_of(tree: Tree) -> Iterator[tuple[Tree, int]]:
    """Every field, as the tree that it is in and its place."""
    for at, (_, _, _, value) in enumerate(tree):
        yield tree, at
        if isinstance(value, list):
            yield from fields_of(value)


Draw = random.Random


def _other_number(draw: Draw, tree: Tree, at: int, pool: Tree) -> None:
    if tree[at][2] == 0:
        tree[at][3] = draw.choice((*HUGE, *HUGER, draw.randrange(30), (1 << 64) - draw.randrange(1, 9)))
    else:
        _other_bytes(draw, tree, at, pool)


def _other_bytes(draw: Draw, tree: Tree, at: int, pool: Tree) -> None:
    """Another text of the file, or numbers of 64 bits among raw data."""
    value = tree[at][3]
    if isinstance(value, list) or tree[at][2] != 2:
        return
    texts = [each[3] for each in pool if each[2] == 2 and isinstance(each[3], bytes)]
    huge = [each.to_bytes(8, "little") for each in (*HUGE, *HUGER)]
    made = [draw.choice(huge) for _ in range(max(1, len(value) // 8))]
    tree[at][3] = draw.choice(texts) if draw.random() < 0.5 or not texts else b"".join(made)


def _repeat(draw: Draw, tree: Tree, at: int, pool: Tree) -> None:
    tree[at:at] = [tree[at]] * draw.choice((1, 1, 2, 70))


def _drop(draw: Draw, tree: Tree, at: int, pool: Tree) -> None:
    del tree[at]


def _move(draw: Draw, tree: Tree, at: int, pool: Tree) -> None:
    tree.insert(draw.randrange(len(tree)), tree.pop(at))


def _replace(draw: Draw, tree: Tree, at: int, pool: Tree) -> None:
    """By a field of the same kind from anywhere in the file."""
    alike = [each for each in pool if each[0] is not None and each[0] is tree[at][0]]
    tree[at] = deepcopy(draw.choice(alike)) if alike else tree[at]  # it may hold this one


def _renumber(draw: Draw, tree: Tree, at: int, pool: Tree) -> None:
    tree[at][1] = draw.randrange(1, 26)


_CHANGES: tuple[Callable[[Draw, Tree, int, Tree], None], ...] = (
    *(_other_number, _other_number, _other_bytes, _other_bytes, _other_bytes),
    *(_repeat, _drop, _move, _replace, _renumber),
)


def with_other_fields(draw: Draw, data: bytes) -> bytes:
    """A sound file with one to six fields changed."""
    tree = tree_of(memoryview(data), "Model")
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        places = list(fields_of(tree))
        if places and len(places) < 20_000:
            inside, at = draw.choice(places)
            draw.choice(_CHANGES)(draw, inside, at, [tree[at] for tree, at in places])
    return bytes_of(tree)


# Cases


def start(folder: Path) -> Case:
    """A function that damages a model, loads it, and calls it where it can be."""
    files = sound()
    for at, data in enumerate(files):
        (folder / "sound.onnx").write_bytes(data)
        if _tried(folder / "sound.onnx", is_called=False) != "loaded":
            raise AssertionError(f"model {at} of those to begin with is refused")
    path = folder / "file.onnx"

    def case(seed: int) -> str:
        draw, data = random.Random(seed), files[seed % len(files)]
        path.write_bytes(with_other_fields(draw, data) if draw.random() < 0.7 else change(draw, data, files))
        return _tried(path, is_called=seed % CALLED == 0)

    return case


def _tried(path: Path, *, is_called: bool = True) -> str:
    """What became of a file; anything but an error of webgrad's own is a failure."""
    try:
        loaded = wg.onnx.load(path, device="cpu")
    except wg.ModelFileError:
        return "refused"
    if not is_called:
        return "loaded"
    if any(each.graphs for each in loaded.contents.graph.nodes):
        return "loaded, with a graph that may run for long"
    try:
        given = [_small(each) for each in loaded.inputs]
        results = loaded(*given)
        for each in results.values():
            if isinstance(each, wg.Tensor) and each.nbytes < 1 << 20:
                each.numpy()
    except wg.WebgradError:
        gc.collect()  # what is left of the call is computed with the next one's values otherwise
        return "refused when it was called"
    return "ran"


def _small(value: Any) -> Any:
    sides = [side if isinstance(side, int) and 0 <= side < 65 else 2 for side in value.shape or ()]
    if math.prod(sides) > 1 << 16:
        sides = [1] * len(sides)
    dtype = value.element.numpy if value.element is not None else np.dtype(np.float32)
    if dtype.kind == "O":
        return np.full(sides, "a", object)
    return np.ones(sides, dtype)
