"""A model as records: what a file says, with every name found and every operator known.

In: the messages of a file. Out: `Contents`. The invariant: each input of a node is an input, a weight or an
earlier node's output of its own graph or of one around it; what no operator is known for was refused before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import webgrad as wg

from ..arrays import Array, np
from ..io.memory_map import is_possible, shown
from .operators import Operator, find
from .protobuf import Message
from .tensors import array_of, sparse_array_of
from .types import ElementType, type_of

__all__ = [
    "Contents",
    "Function",
    "Graph",
    "Node",
    "Reference",
    "Value",
    "check_node",
    "contents_of",
    "last_uses",
    "names_read",
]

MOST_NODES = 1 << 18  # with those of functions, at each call
MOST_CALLS = 128  # of functions within each other
MOST_ALIKE = 8  # arrays that look alike and are compared with each other
AI_ONNX = ("", "ai.onnx")  # both are the standard's own domain


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output: its name, and what a file says of its type."""

    name: str
    kind: str = "tensor"  # or sequence, optional, map, sparse
    element: ElementType | None = None
    shape: tuple[int | str | None, ...] | None = None  # a number, a name, or nothing known; None: no rank

    def __str__(self) -> str:
        sides = (
            "…"
            if self.shape is None
            else ", ".join("?" if each is None else str(each) for each in self.shape)
        )
        what = self.element.name if self.element else "?"
        return (
            f"{self.name}: {what}[{sides}]"
            if self.kind == "tensor"
            else f"{self.name}: {self.kind} of {what}"
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """An attribute's value that the call of the function around it gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: an operator or a function of the model, and the names that it reads and writes."""

    label: str  # for messages: its name, or its operator and first output
    operator: Operator | Function
    inputs: tuple[str, ...]  # "": not given
    outputs: tuple[str, ...]  # "": not wanted
    attributes: dict[str, Any]
    refers: bool  # an attribute is given by the call of the function around it

    @property
    def graphs(self) -> list[Graph]:
        """The graphs among its attributes: branches, bodies."""
        return [each for each in self.attributes.values() if isinstance(each, Graph)]


@dataclass(slots=True)
class Graph:
    """Nodes in the order in which they run, the arrays that they know, and what goes in and comes out."""

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    weights: dict[str, Array]
    nodes: tuple[Node, ...]
    last_uses: dict[int, tuple[str, ...]] = field(
        default_factory=dict
    )  # node → names that nobody reads after it


@dataclass(slots=True)
class Function:
    """A function that the model brings: nodes over inputs and attributes of its call."""

    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    defaults: dict[str, Any]
    opset: int
    nodes: tuple[Node, ...] = ()
    last_uses: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a model's file."""

    graph: Graph
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], Function]
    metadata: dict[str, str]
    producer: str


def contents_of(model: Message, folder: Path | None, source: str) -> Contents:
    """A model's records; raises where a file does not hold together, or needs what webgrad has not."""
    if model.graph is None:
        _fail(source, "it has no graph")
    builder = _Builder(source, folder, _opsets(model.opset_import), {})
    for message in model.functions:
        builder.declare(message)
    for message in model.functions:
        builder.define(message)
    graph = builder.graph(model.graph, frozenset())
    builder.refuse_missing()
    _check_calls(graph, builder)
    metadata = {each.key: each.value for each in model.metadata_props}
    producer = f"{model.producer_name} {model.producer_version}".strip()
    return Contents(graph, builder.opsets, builder.functions, metadata, producer)


def _check_calls(graph: Graph, builder: _Builder) -> None:
    """Refuse functions that call themselves, and those that call each other so often that they never end."""
    sizes: dict[int, int] = {}
    depths: dict[int, int] = {}
    for function in _called_last(builder):
        sizes[id(function)] = _size(function.nodes, sizes)
        depth = 1 + max([depths[id(each)] for each in _called(function.nodes)], default=0)
        if depth > MOST_CALLS:
            builder.fail(f"its functions call each other more than {MOST_CALLS} deep")
        depths[id(function)] = depth
    if _size(graph.nodes, sizes) > MOST_NODES:
        builder.fail(f"with the functions that it calls it has more than {MOST_NODES:,} nodes")


def _called_last(builder: _Builder) -> Iterator[Function]:
    """The model's functions, each after all that it calls."""
    done, waiting = set[int](), set[int]()
    stack = [(each, False) for each in builder.functions.values()]
    while stack:
        function, is_ready = stack.pop()
        if is_ready:
            waiting.discard(id(function))
            done.add(id(function))
            yield function
        elif id(function) in waiting:
            builder.fail(f"its function {shown(function.name)} calls itself")
        elif id(function) not in done:
            waiting.add(id(function))
            stack.append((function, True))
            stack += [(each, False) for each in _called(function.nodes) if id(each) not in done]


def _called(nodes: Sequence[Node]) -> Iterator[Function]:
    """The functions that nodes call, in inner graphs too."""
    for node in nodes:
        if isinstance(node.operator, Function):
            yield node.operator
        for graph in node.graphs:
            yield from _called(graph.nodes)


def _size(nodes: Sequence[Node], sizes: Mapping[int, int]) -> int:
    """How many nodes there are with those of inner graphs, and of each function at each call."""
    inside = sum(_size(graph.nodes, sizes) for node in nodes for graph in node.graphs)
    calls = sum(sizes[id(each.operator)] for each in nodes if isinstance(each.operator, Function))
    return min(len(nodes) + inside + calls, MOST_NODES + 1)


def _opsets(imports: Sequence[Message]) -> dict[str, int]:
    return {"" if each.domain in AI_ONNX else each.domain: each.version for each in imports}


@dataclass(slots=True)
class _Builder:
    """The records of one model, as they are made."""

    source: str
    folder: Path | None
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], Function]
    missing: Counter[str] = field(default_factory=Counter)

    def graph(self, message: Message, outer: frozenset[str]) -> Graph:
        self.refuse_twice([each.name for each in message.initializer], "weights")
        self.refuse_twice([each.name for each in message.input], "inputs")
        weights = {each.name: array_of(each, self.folder) for each in message.initializer}
        for each in message.sparse_initializer:
            weights[each.values.name if each.values else ""] = sparse_array_of(each, self.folder)
        weights = _shared(weights)
        inputs = tuple(self.value(each) for each in message.input)
        outputs = tuple(self.value(each) for each in message.output)
        known = {*outer, *weights, *(each.name for each in inputs)}
        nodes = tuple(self.nodes(message.node, known, self.opsets))
        for each in outputs:
            if each.name not in known:
                self.fail(f"its output {shown(each.name)} is computed nowhere")
        uses = last_uses(nodes, [each.name for each in outputs])
        return Graph(message.name, inputs, outputs, weights, nodes, uses)

    def nodes(self, messages: Sequence[Message], known: set[str], opsets: dict[str, int]) -> Iterator[Node]:
        written: set[str] = set()
        for message in messages:
            label = shown(message.name or f"{message.op_type} → {next(iter(message.output), '')}")
            for name in message.input:
                if name and name not in known:
                    self.fail(f"the node {label} reads {shown(name)}, which no earlier node computes")
            attributes = {each.name: self.attribute(each, label, known) for each in message.attribute}
            refers = any(isinstance(each, Reference) for each in attributes.values())
            operator = self.operator(message, opsets)
            if operator is not None:
                names = tuple(message.input), tuple(message.output)
                made = Node(label, operator, *names, attributes, refers)
                check_node(made)
                yield made
            for name in filter(None, message.output):
                if name in written:
                    self.fail(f"{shown(name)}, which {label} computes, was computed before")
                written.add(name)
            known.update(message.output)

    def operator(self, message: Message, opsets: dict[str, int]) -> Operator | Function | None:
        domain = "" if message.domain in AI_ONNX else message.domain
        function = self.functions.get((domain, message.op_type, message.overload))
        if function is not None:
            return function
        version = opsets.get(domain, 1)
        operator = find(domain, message.op_type, version)
        if operator is None:
            self.missing[f"{domain + '.' if domain else ''}{message.op_type} (version {version})"] += 1
        return operator

    def attribute(self, message: Message, label: str, known: set[str]) -> Any:
        if message.ref_attr_name:
            return Reference(message.ref_attr_name)
        kind = _kind_of(message)
        if kind not in _ATTRIBUTES or (kind in _MESSAGES and not message.has(kind)):
            self.fail(f"the attribute {shown(message.name)} of {label} has no value")
        return _ATTRIBUTES[kind](self, message, known)

    def value(self, message: Message) -> Value:
        kind, type_message = "tensor", message.type
        while type_message is not None and (type_message.sequence_type or type_message.optional_type):
            inner = type_message.sequence_type or type_message.optional_type
            if kind == "tensor":  # of an optional sequence: optional
                kind = "sequence" if type_message.sequence_type else "optional"
            type_message = inner.elem_type
        tensor = type_message and (type_message.tensor_type or type_message.sparse_tensor_type)
        if not tensor:
            return Value(message.name, "map" if type_message and type_message.map_type else kind)
        element = type_of(tensor.elem_type) if tensor.elem_type else None
        sides = tensor.shape and tuple(map(_side, tensor.shape.dim))
        if sides and not is_possible(tuple([side if isinstance(side, int) else 1 for side in sides])):
            self.fail(f"{shown(message.name)} is said to be of the shape {sides[:8]}")
        return Value(message.name, kind, element, sides)

    def declare(self, message: Message) -> None:
        """A function's head, so that functions may call each other."""
        domain = "" if message.domain in AI_ONNX else message.domain
        opset = _opsets(message.opset_import).get("", self.opsets.get("", 1))
        inputs, outputs = tuple(message.input), tuple(message.output)
        made = Function(domain, message.name, inputs, outputs, {}, opset)
        self.functions[domain, message.name, message.overload] = made

    def define(self, message: Message) -> None:
        """A function's body."""
        domain = "" if message.domain in AI_ONNX else message.domain
        function = self.functions[domain, message.name, message.overload]
        known = set(function.inputs)
        for each in message.attribute_proto:
            function.defaults[each.name] = self.attribute(each, message.name, known)
        opsets = self.opsets | _opsets(message.opset_import)
        function.nodes = tuple(self.nodes(message.node, known, opsets))
        for name in function.outputs:
            if name not in known:
                self.fail(
                    f"the output {shown(name)} of its function {shown(message.name)} is computed nowhere"
                )
        function.last_uses = last_uses(function.nodes, function.outputs)

    def refuse_twice(self, names: Sequence[str], what: str) -> None:
        """Refuse two things of one name."""
        if len(set(names)) < len(names):
            name = next(name for name, count in Counter(names).items() if count > 1)
            self.fail(f"two of its {what} are called {shown(name)}")

    def refuse_missing(self) -> None:
        """Raise for all operators at once that nothing is known of."""
        if self.missing:
            rows = "".join(f"\n  {count:>6} × {name}" for name, count in self.missing.most_common(40))
            raise wg.ModelFileError(
                f"{self.source} has operators that webgrad does not have:{rows}\n"
                "Convert the model with another opset, or without them (docs/onnx.md lists what there is); "
                "webgrad.onnx.operator adds one in Python"
            )

    def fail(self, what: str) -> NoReturn:
        _fail(self.source, what)


def _fail(source: str, what: str) -> NoReturn:
    raise wg.ModelFileError(f"{source} is damaged, or no ONNX model: {what}")


def _side(dimension: Message) -> int | str | None:
    if dimension.has("dim_value"):
        value: int = dimension.dim_value
        return value if value >= 0 else None  # some write -1 where they mean any
    return dimension.dim_param or None


# Attributes: kinds in the order of their numbers, and how each is read

_KINDS = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs",
    11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos",
}  # fmt: skip


_MESSAGES = ("t", "g", "tp", "sparse_tensor")  # of which nothing is no value


def _kind_of(message: Message) -> str:
    """By its type; old files leave that out, and then the only field says it."""
    if message.type in _KINDS:
        return _KINDS[message.type]
    return next((name for name in _ATTRIBUTES if message.has(name)), "")


def _text(data: Any) -> str | bytes:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return bytes(data)


_ATTRIBUTES: Mapping[str, Any] = {
    "f": lambda builder, message, known: message.f,
    "i": lambda builder, message, known: message.i,
    "s": lambda builder, message, known: _text(message.s),
    "t": lambda builder, message, known: array_of(message.t, builder.folder),
    "g": lambda builder, message, known: builder.graph(message.g, frozenset(known)),
    "floats": lambda builder, message, known: tuple(message.floats),
    "ints": lambda builder, message, known: tuple(message.ints),
    "strings": lambda builder, message, known: tuple(map(_text, message.strings)),
    "tensors": lambda builder, message, known: tuple(
        array_of(each, builder.folder) for each in message.tensors
    ),
    "graphs": lambda builder, message, known: tuple(
        builder.graph(each, frozenset(known)) for each in message.graphs
    ),
    "sparse_tensor": lambda builder, message, known: sparse_array_of(message.sparse_tensor, builder.folder),
    "tp": lambda builder, message, known: message.tp,
}


def check_node(node: Node) -> None:
    """Refuse attributes and inputs that a node's operator does not have."""
    operator = node.operator
    if isinstance(operator, Function):
        return
    unknown = sorted(set(node.attributes) - operator.attributes)
    if unknown:
        raise wg.ModelFileError(
            f"{node.label}: {operator} of version {operator.since} has no attribute {', '.join(unknown)}; "
            f"it has {', '.join(sorted(operator.attributes)) or 'none'}"
        )
    missing = sorted(operator.required - set(node.attributes))
    if missing:
        raise wg.ModelFileError(f"{node.label}: the attribute {', '.join(missing)} of {operator} is missing")
    if len(node.inputs) > len(operator.inputs) and not operator.rest:
        raise wg.ModelFileError(
            f"{node.label}: {operator} of version {operator.since} takes {len(operator.inputs)} inputs, "
            f"and gets {len(node.inputs)}"
        )


def _shared(weights: dict[str, Array]) -> dict[str, Array]:
    """Weights that are equal byte by byte as one array."""
    alike: dict[tuple[Any, ...], list[Array]] = {}
    return {name: _first_equal(array, alike) for name, array in weights.items()}


def _first_equal(array: Array, alike: dict[tuple[Any, ...], list[Array]]) -> Array:
    if array.dtype == object:
        return array
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    samples = data[:: max(1, data.size // 64)]  # so that large ones are seldom compared in vain
    several = alike.setdefault((array.dtype, array.shape, samples.tobytes()), [])
    for each in several[:MOST_ALIKE]:
        if np.array_equal(data, each.reshape(-1).view(np.uint8)):
            return each
    several.append(data.view(array.dtype).reshape(array.shape))
    return several[-1]


def last_uses(nodes: Sequence[Node], outputs: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """For each node the names that it is the last to read, so that values are let go of."""
    last: dict[str, int] = {}
    for at, node in enumerate(nodes):
        for name in names_read(node):
            last[name] = at
    for each in outputs:
        last.pop(each, None)
    found: dict[int, list[str]] = {}
    for name, at in last.items():
        found.setdefault(at, []).append(name)
    return {at: tuple(names) for at, names in found.items()}


def names_read(node: Node) -> Iterator[str]:
    """What a node reads, through its inner graphs too."""
    yield from filter(None, node.inputs)
    for graph in node.graphs:
        yield from names_of(graph)


def names_of(graph: Graph) -> Iterator[str]:
    """What a graph reads, its own values and those around it."""
    for node in graph.nodes:
        yield from names_read(node)
    yield from (each.name for each in graph.outputs)
