"""`wg.onnx.save`: a function or module as a standard ONNX file.

In: a function, examples of its inputs, a path. Out: a file that other runtimes run with equal results, and a
second one where its weights are too many for one. The invariant: under the path there is always a whole file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from ..types import code_of
from . import elementwise, folding, functions, movement  # noqa: F401  (which fill the tables)
from .builder import Builder, Value
from .encoder import Encoded, encode
from .sizes import Size, merged
from .table import CALLS, PRIMITIVES, Site, is_whole

__all__ = ["save"]

OPSETS = range(18, 27)
OPSET = 20
MOST_INSIDE = 1_500_000_000  # bytes of weights in one file: readers of protobuf take less than 2 GiB
LEAST_OUTSIDE = 1024  # bytes: smaller tensors stay in the model's file
_ALIGNED = 4096
Dynamic = Mapping[str, Mapping[int, str]]


def save(
    function: Callable[..., Any],
    example_inputs: Any,
    path: str | os.PathLike[str],
    *,
    opset: int = OPSET,
    dynamic: Dynamic | None = None,
    external: bool = False,
) -> Path:
    """Write a function or module as an ONNX file, and give its path; nothing is computed.

    `example_inputs` are a tuple in the order of its arguments, or a dict by name: the file's inputs have
    their names, shapes and dtypes. Weights have the names of `state_dict`. With `dynamic={"x": {0: "batch"}}`
    an axis of an input is of any size: the function is traced with several sizes, and where it does other
    things for them, or computes tables of them, that is refused. Quantised weights are written as floats.
    What draws random numbers, or changes tensors in place, is refused: call `model.eval()` first. Weights of
    more than 1.5 GB, or with `external`, are in a second file, `path` with .data behind it.

    >>> import tempfile
    >>> model = wg.nn.Sequential(wg.nn.Linear(3, 4), wg.nn.ReLU())
    >>> path = wg.onnx.save(model, (wg.zeros((1, 3)),), tempfile.mkdtemp() + "/m.onnx")
    >>> wg.onnx.load(path, device="cpu")(np.ones((1, 3), np.float32))[0].shape
    (1, 4)
    """
    if opset not in OPSETS:
        raise wg.ArgumentError(f"save writes opsets {OPSETS.start} to {OPSETS.stop - 1}, not {opset!r}")
    target = Path(path)
    graph = _traced(function, example_inputs, dynamic or {})
    builder = Builder(opset)
    inputs, outputs = _write(graph, builder, dynamic or {})
    name = str(getattr(function, "__name__", type(function).__name__))
    weights = {key: array for key, array in builder.weights.items() if key in builder.read}
    outside = external or sum(each.nbytes for each in weights.values()) > MOST_INSIDE
    places = _write_outside(weights, target) if outside else {}
    tensors = [_tensor(key, array, target.name + ".data", places.get(key)) for key, array in weights.items()]
    facts = {"node": builder.nodes, "initializer": tensors, "input": inputs, "output": outputs}
    _write_model(target, encode("Graph", name=name, **facts), builder)
    return target


# The graph


def _traced(function: Any, examples: Any, dynamic: Dynamic) -> wg.TracedGraph:
    """The function's graph, with the sizes that are open."""
    base = wg.graph_of(function, examples, whole=is_whole)
    if not dynamic:
        return base
    known = {base.nodes[at].name: base.nodes[at] for at in base.inputs}
    sizes = _sizes(known, dynamic)
    given = _by_name(examples, list(known))
    graphs = []
    for each in _variants(sizes):
        resized = {name: _resized(value, dynamic.get(name, {}), each) for name, value in given.items()}
        graphs.append((_traced_at(function, resized, each, examples), each))
    return merged(graphs)


def _by_name(examples: Any, names: Sequence[str]) -> dict[str, Any]:
    """The examples by the names of the inputs that they are."""
    if isinstance(examples, Mapping):
        values = list(examples.values())
    else:
        values = list(examples) if isinstance(examples, list | tuple) else [examples]
    if len(values) != len(names) or any(isinstance(each, Mapping | list | tuple) for each in values):
        raise wg.ArgumentError(
            "save: with dynamic sizes the inputs are tensors and numbers themselves, not lists or dicts"
        )
    return dict(zip(names, values, strict=True))


def _sizes(known: Mapping[str, wg.TracedNode], dynamic: Dynamic) -> dict[str, int]:
    """The sizes that are open, with those of the examples; at least 2, since 1 broadcasts."""
    found: dict[str, int] = {}
    for name, axes in dynamic.items():
        if name not in known:
            raise wg.ArgumentError(f"save: there is no input {name!r} to be dynamic, only {', '.join(known)}")
        for axis, symbol in axes.items():
            shape = known[name].shape
            if not -len(shape) <= axis < len(shape):
                raise wg.ArgumentError(f"save: the input {name!r} of shape {shape} has no axis {axis}")
            size = max(2, shape[axis])
            if found.setdefault(symbol, size) != size:
                raise wg.ArgumentError(
                    f"save: the size {symbol!r} is {found[symbol]} and {size} in the examples"
                )
    return found


def _variants(base: Mapping[str, int]) -> list[dict[str, int]]:
    """The sizes to trace with: the base, each one larger by 1 and by 3, and all of them larger."""
    each_moved = [{**base, name: base[name] + step} for name in base for step in (1, 3)]
    all_moved = {name: size + 1 + 2 * at for at, (name, size) in enumerate(base.items(), 1)}
    return [{**base}, *each_moved, all_moved]


def _resized(value: Any, axes: Mapping[int, str], sizes: Mapping[str, int]) -> Any:
    """An example with other sizes, of zeros; a number as it is."""
    if not axes:
        return value
    shape = [*value.shape]
    for axis, symbol in axes.items():
        shape[axis] = sizes[symbol]
    example = value if isinstance(value, wg.Tensor) else wg.asarray(value)
    return wg.zeros(tuple(shape), dtype=example.dtype, device=example.device)


def _traced_at(
    function: Any, given: Mapping[str, Any], sizes: Mapping[str, int], examples: Any
) -> wg.TracedGraph:
    args = dict(given) if isinstance(examples, Mapping) else tuple(given.values())
    try:
        return wg.graph_of(function, args, whole=is_whole)
    except wg.WebgradError as error:
        shown = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise wg.ArgumentError(
            f"save: the function does not take dynamic sizes ({shown}): {error}"
        ) from error


def _write(graph: wg.TracedGraph, b: Builder, dynamic: Dynamic) -> tuple[list[Encoded], list[Encoded]]:
    """All nodes, in their order; the messages of inputs and outputs."""
    values: list[Value] = []
    _reserve_names(graph, b)
    for node in graph.nodes:
        values.append(_value(node, b, [values[at] for at in node.inputs], graph))
        if node.op == "input":
            for axis, symbol in dynamic.get(node.name, {}).items():
                b.symbols.setdefault(symbol, (values[-1], axis % len(node.shape)))
    for name, at in graph.outputs:
        b.rename(values[at], name)
    inputs = [_described(graph.nodes[at], graph.nodes[at].name) for at in graph.inputs]
    return inputs, [_described(graph.nodes[at], name) for name, at in graph.outputs]


def _reserve_names(graph: wg.TracedGraph, b: Builder) -> None:
    """Names of inputs and outputs, which nothing else gets."""
    inputs, outputs = [graph.nodes[at].name for at in graph.inputs], [name for name, _ in graph.outputs]
    for name in inputs:
        if name in outputs:
            raise wg.ArgumentError(f"save: {name!r} would be both an input and an output: rename one of them")
    for name in (*inputs, *outputs):
        b.name(name)


def _value(node: wg.TracedNode, b: Builder, inputs: list[Value], graph: wg.TracedGraph) -> Value:
    if node.op == "input":
        return Value(node.name, node.dtype.name)
    if node.op == "tensor":
        return b.weight(node.name or "tensor", np.ascontiguousarray(node.value.numpy()))
    if node.op == "number" and isinstance(node.value, Size):
        return b.cast(b.number(node.value), node.dtype.name)
    if node.op == "number":
        return b.constant(node.value, node.dtype.name)
    site = Site(b, node, tuple(inputs), tuple([graph.nodes[at] for at in node.inputs]))
    row = CALLS[node.op][1] if node.is_call else PRIMITIVES.get(node.op)
    if node.op == "drawn":
        row = PRIMITIVES["random_bits"]
    if row is None:
        site.refuse("there is no operator of ONNX for it")
    try:
        return row(site)
    except TypeError as error:
        if all(isinstance(each, int) for each in node.shape):
            raise
        site.refuse(f"with open sizes ({', '.join(map(str, node.shape))}): {error}")


# Messages


def _described(node: wg.TracedNode, name: str) -> Encoded:
    """An input or output, with its type."""
    shape = encode("Shape", dim=[_dimension(each) for each in node.shape])
    tensor = encode("TensorType", elem_type=code_of(node.dtype), shape=shape)
    return encode("ValueInfo", name=name, type=encode("Type", tensor_type=tensor))


def _dimension(size: int | Size) -> Encoded:
    if isinstance(size, Size):
        return encode("Dimension", dim_param=size.name or str(size))
    return encode("Dimension", dim_value=size)


def _tensor(name: str, array: Array, file: str, start: int | None) -> Encoded:
    head: dict[str, Any] = {"dims": array.shape, "data_type": code_of(array.dtype), "name": name}
    if start is None:
        return encode("Tensor", **head, raw_data=_bytes(array))
    facts = {"location": file, "offset": str(start), "length": str(array.nbytes)}
    entries = [encode("Entry", key=key, value=text) for key, text in facts.items()]
    return encode("Tensor", **head, external_data=entries, data_location=1)


def _bytes(array: Array) -> memoryview:
    view: Any = array.reshape(-1).view(np.uint8)
    return memoryview(view)


def _write_outside(weights: Mapping[str, Array], target: Path) -> dict[str, int]:
    """Large weights in a file beside the model; where each begins."""
    places: dict[str, int] = {}
    end = 0
    with wg.io.replacing(target.with_name(target.name + ".data")) as path, path.open("wb") as file:
        for name, array in weights.items():
            if array.nbytes >= LEAST_OUTSIDE:
                end += file.write(b"\0" * (-end % _ALIGNED))
                places[name] = end
                end += file.write(_bytes(array))
    return places


def _write_model(target: Path, graph: Encoded, b: Builder) -> None:
    versions = {"": b.opset, **{domain: 1 for domain in b.domains if domain}}
    model = encode(
        "Model",
        ir_version=8 if b.opset < 21 else 10,
        producer_name="webgrad",
        producer_version=wg.__version__,
        opset_import=[encode("OperatorSet", domain=key, version=each) for key, each in versions.items()],
        graph=graph,
    )
    _write_pieces(target, model.pieces)


def _write_pieces(target: Path, pieces: Iterable[bytes | memoryview]) -> None:
    with wg.io.replacing(target) as path, path.open("wb") as file:
        file.writelines(pieces)
