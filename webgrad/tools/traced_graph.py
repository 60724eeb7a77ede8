"""A function's graph as plain records: what programs read that write it in another form.

In: a function, and examples of its arguments. Out: a `TracedGraph`: nodes in an order in which they can be
computed. Nothing is computed. The invariant: every node is an input, a tensor, a number, a primitive of
docs/ops.md, or a call of one of webgrad's functions that the reader wants to have whole.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from .. import dtypes
from ..errors import CaptureError, DTypeError
from ..evaluate.evaluate import evaluation_lock
from ..evaluate.waiting import compute_waiting
from ..graph.composite import expand
from ..graph.node import Node, line_of, make, scalar, signature
from ..graph.op import LEAF
from ..graph.snapshot import Snapshot
from ..graph.trace import RuntimeFloat, RuntimeInt, is_runtime, one_at_a_time, refuse_in_trace
from ..jit.closures import device_of, store_numbers
from ..jit.examples import Examples, examples_of, labels_of_result, refuse_twice
from ..jit.replay import runtime_number
from ..jit.tensor_names import named_tensors
from ..jit.trace import Traced, traced
from ..ops.table import TABLE
from ..schedule.pairs import split_pairs
from ..tensor import Tensor

__all__ = ["TracedGraph", "TracedNode", "graph_of"]

Whole = Callable[[str, Mapping[str, Any]], bool]
_GIVEN = "an input"  # what the leaves of inputs have as their storage


@dataclass(frozen=True, slots=True)
class TracedNode:
    """One value of a graph: how it is computed, and what it is.

    `op` is "input" (of name `name`), "tensor" (`value` is the tensor, `name` what its model calls it),
    "number" (`value`), "drawn" (a number that each call draws anew), the name of a primitive, of which
    `attributes` is a tuple, or with `is_call` that of a function: then `attributes` are its arguments by
    name, and `parameters` names those that `inputs` are. Of a `decode`, of quantised blocks, `value` is the
    tensor of all their weights as floats.

    >>> node = wg.graph_of(wg.exp, (wg.zeros((2, 3)),)).nodes[-1]
    >>> node.op, node.inputs, node.shape, node.dtype
    ('exp', (0,), (2, 3), webgrad.float32)
    """

    op: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: dtypes.DType
    attributes: Any = ()
    name: str = ""
    value: Any = None
    is_call: bool = False
    parameters: tuple[str, ...] = ()
    line: str = ""  # the user's: "model.py:12"


@dataclass(frozen=True, slots=True)
class TracedGraph:
    """A function's nodes, of which each reads only earlier ones; the places of what goes in and comes out."""

    nodes: tuple[TracedNode, ...]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str, int], ...]


def graph_of(function: Callable[..., Any], example_inputs: Any, *, whole: Whole | None = None) -> TracedGraph:
    """The graph of one call of a function, as records of its primitives; nothing is computed.

    `example_inputs` are a tuple in the order of its arguments, or a dict by name. Numbers among them are
    inputs as well. Complex values inside are pairs of floats. `whole` is asked of each call of a function of
    webgrad that has one result, such as `conv2d` or `softmax`, with its name and arguments: where it is
    true the call is one node.

    >>> graph = wg.graph_of(lambda x: wg.relu(x) * 2, (wg.zeros(3),))
    >>> [node.op for node in graph.nodes]
    ['input', 'number', 'clamp_min', 'number', 'multiply']
    >>> graph = wg.graph_of(wg.softmax, (wg.zeros(3),), whole=lambda name, arguments: name == "softmax")
    >>> [node.op for node in graph.nodes], graph.nodes[1].attributes
    (['input', 'softmax'], {'axis': -1})
    """
    refuse_in_trace("graph_of", "Call it outside")
    name = str(getattr(function, "__name__", type(function).__name__))
    given = examples_of("graph_of", function, example_inputs, name)
    calls = _Calls(whole)
    with one_at_a_time, evaluation_lock():
        compute_waiting()
        store_numbers()
        device = device_of(function, given.leaves)
        placeholders = [_placeholder(each, device) for each in given.leaves]
        was = [each.node for each in placeholders]
        args, named = given.arguments(placeholders)
        found = traced(lambda: function(*args, **named), was, calls.note)
    _refuse_effects(found, name)
    _refuse_complex([*zip(given.labels, was, strict=True)])
    _refuse_complex([*zip(labels_of_result(found.spec), found.results, strict=True)])
    refuse_twice("graph_of", labels_of_result(found.spec), f"outputs of {name}")
    return _records(function, found, given, was, calls)


class _Call(NamedTuple):
    """A function's call: its result, and the nodes and values of its arguments."""

    result: Node
    name: str
    tensors: dict[str, Node]
    values: dict[str, Any]


@dataclass(slots=True)
class _Calls:
    """The calls that are to stay whole, by the identity of their results."""

    whole: Whole | None
    found: dict[int, _Call] = field(default_factory=dict)

    def note(
        self, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], result: Any
    ) -> None:
        """Keep a call that the reader wants whole."""
        if self.whole is None or not isinstance(result, Tensor) or not _is_ours(function):
            return
        bound = _signature(function).bind(*args, **named)
        bound.apply_defaults()
        arguments = bound.arguments
        name = function.__name__.lstrip("_")
        if not self.whole(name, arguments):
            return
        tensors = {key: each.node for key, each in arguments.items() if isinstance(each, Tensor)}
        values = {key: each for key, each in arguments.items() if not isinstance(each, Tensor)}
        if result.node.inputs and result.node not in tensors.values():
            self.found[id(result.node)] = _Call(result.node, name, tensors, values)

    def sources(self, node: Node) -> tuple[Node, ...]:
        """What a node is computed from, as far as the reader is to see."""
        call = self.found.get(id(node))
        return node.inputs if call is None else tuple(call.tensors.values())


def _is_ours(function: Callable[..., Any]) -> bool:
    return function.__module__.startswith("webgrad.")


@lru_cache(maxsize=256)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _placeholder(value: Any, device: Any) -> Tensor:
    """A tensor of its own for an argument, so that two are never taken for one."""
    if isinstance(value, Tensor):
        sig = value.node.sig
        return Tensor(Node(signature(LEAF, sig.shape, sig.dtype, sig.device), (), _GIVEN, value.node.where))
    value = runtime_number(value)
    if isinstance(value, float):
        return Tensor(scalar(RuntimeFloat(value), dtypes.float32, device))
    return Tensor(scalar(RuntimeInt(value), dtypes.int32, device))


def _refuse_effects(found: Traced, name: str) -> None:
    if found.changed or found.slots:
        what = "changes tensors in place" if found.changed else "leaves gradients"
        raise CaptureError(
            f"graph_of: {name} {what}, and a graph has values only: call model.eval() first, so that no "
            "statistics are kept, or return the new values"
        )


def _refuse_complex(named: Iterable[tuple[str, Node]]) -> None:
    for label, node in named:
        if node.sig.dtype.kind == "c":
            raise DTypeError(
                f"graph_of: {label!r} is {node.sig.dtype.name}: pass its parts (webgrad.view_as_real(x), "
                "webgrad.view_as_complex(pairs) inside)"
            )


def _records(
    function: Callable[..., Any], found: Traced, given: Examples, was: Sequence[Node], calls: _Calls
) -> TracedGraph:
    nodes = _walked([*was, *found.results], calls)
    places = {id(node): at for at, node in enumerate(nodes)}
    graph = Snapshot(
        [node.sig.leaf if id(node) in calls.found else node.sig for node in nodes],
        [tuple([places[id(each)] for each in calls.sources(node)]) for node in nodes],
        tuple([places[id(node)] for node in (*was, *found.results)]),
    )
    expand(graph)
    order = split_pairs(graph).order()
    numbers = {old: new for new, old in enumerate(order)}
    labels = dict(zip(map(id, was), given.labels, strict=True))
    names = {id(tensor.node): name for name, tensor in named_tensors([function])}
    records = []
    for old in order:
        node = nodes[old] if old < len(nodes) else None
        inputs = tuple([numbers[each] for each in graph.inputs[old]])
        records.append(_record(graph.sigs[old], inputs, node, labels, names, calls))
    outputs = zip(labels_of_result(found.spec), found.results, strict=True)
    return TracedGraph(
        tuple(records),
        tuple([numbers[places[id(node)]] for node in was]),
        tuple([(label, numbers[places[id(node)]]) for label, node in outputs]),
    )


def _walked(roots: Iterable[Node], calls: _Calls) -> list[Node]:
    """The nodes under the roots, inputs first, without what is in calls."""
    found: list[Node] = []
    done: set[int] = set()
    stack = [(node, False) for node in reversed([*roots])]
    while stack:
        node, is_ready = stack.pop()
        if id(node) in done:
            continue
        if is_ready:
            done.add(id(node))
            found.append(node)
            continue
        stack.append((node, True))
        stack += [(each, False) for each in reversed(calls.sources(node)) if id(each) not in done]
    return found


def _record(
    sig: Any,
    inputs: tuple[int, ...],
    node: Node | None,
    labels: Mapping[int, str],
    names: Mapping[int, str],
    calls: _Calls,
) -> TracedNode:
    line = line_of(node.where) if node is not None else ""
    if node is not None and id(node) in calls.found:
        call = calls.found[id(node)]
        return TracedNode(
            *(call.name, inputs, sig.shape, sig.dtype, call.values),
            is_call=True,
            parameters=tuple(call.tensors),
            line=line,
        )
    if node is not None and id(node) in labels:
        return TracedNode("input", (), sig.shape, sig.dtype, name=labels[id(node)])
    if sig.kind == "leaf" and node is not None:
        name = names.get(id(node), "")
        return TracedNode("tensor", (), sig.shape, sig.dtype, name=name, value=Tensor(node), line=line)
    if sig.kind == "scalar":
        number = sig.attributes[0] if sig.attributes or node is None else node.storage
        is_drawn = is_runtime(number)
        return TracedNode(
            "drawn" if is_drawn else "number", (), (), sig.dtype, value=None if is_drawn else number
        )
    weights = _weights(sig, node) if sig.kind == "decode" and node is not None else None
    return TracedNode(sig.op.name, inputs, sig.shape, sig.dtype, sig.attributes, value=weights, line=line)


def _weights(sig: Any, node: Node) -> Tensor | None:
    """All weights of quantised blocks that are there, as floats."""
    words = node.inputs[0]
    return Tensor(make(TABLE["decode"], (words,), sig.attributes)) if words.storage is not None else None
