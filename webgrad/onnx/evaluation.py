"""Running a model's graph: values by their names, host values kept on the host.

In: `Graph`, values of its inputs. Out: values of its outputs. Integer arithmetic on shapes is done with
arrays while the graph is built, so it is no launch at run time. An operator that needs a value on the host
which is computed on the device makes the model synchronise there, and is noted in `Run.waits`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .graph import Function, Graph, Node, Reference, names_of
from .operators import Operator
from .operators.values import is_for_tensors, stored, uploaded

__all__ = ["CANNOT", "Run", "Scope", "Uploads", "Values", "WaitsError", "as_tensor", "is_for_tensors"]


class WaitsError(Exception):
    """A node needs a value on the host that is computed on the device: it cannot be captured."""

    place = 0  # of the node, or of the one around it, in the graph that runs


# What an operator raises for values that are not for it, its own errors aside
CANNOT = (TypeError, ValueError, IndexError, KeyError, ArithmeticError, AttributeError, MemoryError)
MOST_RUN = 1 << 22  # nodes in one call
HOST = 1 << 16  # elements: larger arrays are worked on, and made, on the device
Values = dict[str, Any]
Uploads = dict[tuple[int, bool], tuple[Array, wg.Tensor]]  # by an array's identity, and whether on the host


@dataclass(slots=True)
class Scope:
    """The values of a graph by their names, and those of the graphs around it."""

    values: Values
    attributes: Mapping[str, Any]  # of the call of the function around it
    opset: int
    outer: Scope | None = None
    nodes: Sequence[Node] = ()  # of the graph

    def find(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise wg.ModelFileError(f"the value {name} is not there")

    def found(self, names: Iterable[str]) -> Values:
        """Those of some names that are there."""
        scope: Scope | None = self
        values: Values = {}
        while scope is not None:
            values = {name: scope.values[name] for name in names if name in scope.values} | values
            scope = scope.outer
        return values


@dataclass(slots=True)
class Run:
    """One evaluation of a model."""

    device: Any
    opset: int
    lasting: Container[int] = ()  # identities of arrays that last as long as the model
    kept: Uploads = field(default_factory=dict)  # these as tensors, of all the model's runs
    uploads: Uploads = field(default_factory=dict)  # others, of this run
    made: dict[Any, Any] = field(default_factory=dict)  # of attributes, by identity, of all the model's runs
    inner: Callable[[Graph, Values], list[Any]] | None = None  # runs branches and bodies, captured apart
    waits: list[str] = field(default_factory=list)  # nodes that needed a computed value on the host
    count: int = 0  # of nodes that were run

    def model(self, graph: Graph, values: Values) -> list[Any]:
        """The outputs of a model's graph, of which inputs and weights are given by name."""
        scope = Scope(values, {}, self.opset)
        self.nodes(graph.nodes, scope, graph.last_uses)
        return [scope.find(each.name) for each in graph.outputs]

    def graph(self, graph: Graph, inputs: Sequence[Any], outer: Scope) -> list[Any]:
        """The outputs of a branch or body."""
        given = dict(zip([each.name for each in graph.inputs], inputs, strict=False))
        if self.inner is not None and not outer.attributes and not wg.is_captured():
            return self.inner(graph, outer.found(names_of(graph)) | given)
        values = graph.weights | given
        scope = Scope(values, outer.attributes, outer.opset, outer)
        self.nodes(graph.nodes, scope, graph.last_uses)
        return [scope.find(each.name) for each in graph.outputs]

    def nodes(self, nodes: Sequence[Node], scope: Scope, last_uses: Mapping[int, Sequence[str]]) -> None:
        """Run nodes in their order; what nobody reads any more is let go of."""
        scope.nodes = scope.nodes or nodes
        for at, node in enumerate(nodes):
            try:
                results = self.node(node, scope)
            except WaitsError as error:
                error.place = at  # that of the outermost graph comes last
                raise
            scope.values.update(zip(node.outputs, results, strict=False))
            for name in last_uses.get(at, ()):
                scope.values.pop(name, None)

    def node(self, node: Node, scope: Scope) -> Sequence[Any]:
        """What a node gives."""
        self.count += 1
        if self.count > MOST_RUN:
            raise wg.ModelFileError(
                f"{node.label}: {MOST_RUN:,} nodes have run in one call: a loop without end"
            )
        inputs = [scope.find(name) if name else None for name in node.inputs]
        attributes = _given(node.attributes, scope) if node.refers else node.attributes
        if isinstance(node.operator, Function):
            return self.function(node.operator, inputs, attributes)
        results = self.operator(node, node.operator, inputs, attributes, scope)
        if len(results) < len(node.outputs):
            _refuse_missing_outputs(node, results)
        return results

    def function(self, function: Function, inputs: Sequence[Any], attributes: Values) -> list[Any]:
        """A function that the model brings, called."""
        values = dict.fromkeys(function.inputs) | dict(zip(function.inputs, inputs, strict=False))
        scope = Scope(values, function.defaults | attributes, function.opset)
        self.nodes(function.nodes, scope, function.last_uses)
        return [scope.find(name) for name in function.outputs]

    def operator(
        self, node: Node, operator: Operator, inputs: Sequence[Any], attributes: Values, scope: Scope
    ) -> Sequence[Any]:
        """One operator: on the host, where all that it reads is known there; else on the device."""
        try:
            if operator.folds and not node.graphs and inputs and all(map(_is_known, inputs)):
                found = self.folded(node, operator, inputs, attributes, scope)
                if found is not None:
                    return found
            return _Call(self, node, scope, self.device).apply(operator, inputs, attributes)
        except wg.CaptureError as error:  # of a function that is computed on the host
            if wg.is_captured():
                raise WaitsError(node.label) from error
            raise
        except wg.WebgradError as error:
            error.args = (f"{node.label} ({operator}): {error}", *error.args[1:])
            raise
        except CANNOT as error:
            shapes = ", ".join(_described(each) for each in inputs)
            raise wg.ModelFileError(f"{node.label} ({operator}) cannot take {shapes}: {error}") from error

    def folded(
        self, node: Node, operator: Operator, inputs: Sequence[Any], attributes: Values, scope: Scope
    ) -> Sequence[Any] | None:
        """What an operator gives on the host; None where that is too large to be made there."""
        with wg.at_capture():
            found = _Call(self, node, scope, "cpu", is_known=True).apply(operator, inputs, attributes)
            return list(map(self.known, found)) if all(map(_is_small, found)) else None

    def known(self, value: Any) -> Any:
        """What an operator gave on the host, as an array; its tensor is kept for the next operator."""
        if not isinstance(value, wg.Tensor):
            return value
        array = value.numpy()
        self.uploads[id(array), True] = array, value
        return array

    def tensor(self, array: Array, *, on_host: bool) -> wg.Tensor:
        """An array as a tensor: one of the file once, another one once in a run."""
        is_lasting = id(array) in self.lasting
        uploads = self.kept if is_lasting else self.uploads
        found = uploads.get((id(array), on_host))
        # An export has every tensor on its own device meanwhile, those for the host too.
        if found is None or (on_host and found[1].device != "cpu"):
            with wg.at_capture() if is_lasting else nullcontext():
                made = as_tensor(array, "cpu" if on_host else self.device)
            found = uploads[id(array), on_host] = array, made
        return found[1]


@dataclass(slots=True)
class _Call:
    """A node that is run: what its operator may ask for (see `operators.table.Call`)."""

    of: Run
    node: Node
    scope: Scope
    device: Any
    is_known: bool = False  # all that it is given is

    @property
    def outputs(self) -> int:
        wanted = [at for at, name in enumerate(self.node.outputs, 1) if name]
        return wanted[-1] if wanted else 0

    @property
    def opset(self) -> int:
        return self.scope.opset

    def run(self, graph: Graph, inputs: Sequence[Any]) -> list[Any]:
        return self.of.graph(graph, inputs, self.scope)

    def recomputed(self, name: str, given: Values) -> Any:
        wanted, chosen = {name} - given.keys(), list[Node]()
        for node in reversed(self.scope.nodes):
            if not wanted.isdisjoint(node.outputs):
                chosen.append(node)
                wanted |= {*filter(None, node.inputs)} - given.keys()
        if not chosen and name not in given:
            raise wg.ModelFileError(f"{self.node.label}: no node of its graph computes {name}")
        scope = Scope(dict(given), self.scope.attributes, self.scope.opset, self.scope, self.scope.nodes)
        self.of.nodes(chosen[::-1], scope, {})
        return scope.find(name)

    def host(self, value: Any) -> Any:
        if not isinstance(value, wg.Tensor):
            return value
        if not self.is_known:
            self.of.waits.append(self.node.label)
            if wg.is_captured():
                raise WaitsError(self.node.label)
        return value.numpy()

    def tensor(self, value: Any) -> wg.Tensor:
        if isinstance(value, wg.Tensor):
            return value
        return self.of.tensor(value, on_host=self.is_known)

    def once(self, make: Callable[[], Any]) -> Any:
        if self.node.refers:  # another call of the function around it has other attributes
            return make()
        key = id(self.node.attributes), str(self.device)
        if key not in self.of.made:
            with wg.at_capture():
                self.of.made[key] = make()
        return self.of.made[key]

    def apply(self, operator: Operator, inputs: Sequence[Any], attributes: Values) -> Sequence[Any]:
        """The function of a row, called with values in the form that it takes; its results as a sequence."""
        given = [self._in_form(each, operator.input_name(at), operator) for at, each in enumerate(inputs)]
        if operator.takes_call:
            attributes = {**attributes, "call": self}
        found = operator.function(*given, **attributes)
        return found if isinstance(found, tuple) else (found,)

    def _in_form(self, value: Any, name: str, operator: Operator) -> Any:
        if name in operator.host:
            return self.host(value)
        return self.tensor(value) if name not in operator.known and is_for_tensors(value) else value


def as_tensor(array: Array, device: Any) -> wg.Tensor:
    """An array as a tensor; a single number as a constant, which needs no memory."""
    if array.size == 1:
        return wg.full(array.shape, array.item(), dtype=stored(array.dtype.name, device), device=device)
    return uploaded(array, device)


def _is_known(value: Any) -> bool:
    """Whether the host may work on an input."""
    return value is None or (isinstance(value, np.ndarray) and value.size <= HOST)


def _is_small(value: Any) -> bool:
    """Whether a result may be made on the host."""
    return value is None or (isinstance(value, np.ndarray | wg.Tensor) and value.size <= HOST)


def _given(attributes: Values, scope: Scope) -> Values:
    """Attributes with the values that the call of a function gives; without those that it does not give."""
    found = {
        name: scope.attributes.get(each.name) if isinstance(each, Reference) else each
        for name, each in attributes.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def _refuse_missing_outputs(node: Node, results: Sequence[Any]) -> None:
    missing = [name for name in node.outputs[len(results) :] if name]
    if missing:
        raise wg.ModelFileError(f"{node.label}: {node.operator} does not give the output {missing[0]}")


def _described(value: Any) -> str:
    if isinstance(value, wg.Tensor | np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return type(value).__name__
