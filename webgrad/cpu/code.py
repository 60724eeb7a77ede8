"""Nodes as actions over numbered values: the form in which both a plan and the body of a loop are written.

In: nodes of a graph, inputs first. Out: `actions`, each a function of some values that makes another. The
invariant: every action's inputs are values from outside or results of actions before it. A node of a
half-width float may have two values, one for each form; they are converted where an operation wants the other
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..arrays import np
from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from ..ops.shapes import broadcast
from .depthwise import sum_windows, window_sum
from .folds import sum_products
from .operations import Operation, convert, is_half, operation_of, wide_type

__all__ = ["Action", "Code", "Run", "Value", "fresh", "fresh_last", "into"]

Shape = tuple[int, ...]
Run = Callable[[list[Any]], None]


@dataclass(frozen=True, slots=True)
class Value:
    """A node's value in one form; `shape` is that of the block, in a loop."""

    node: int
    shape: Shape
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Action:
    """values[output] = operation.function(values of the inputs)"""

    operation: Operation
    inputs: tuple[int, ...]
    output: int


class Code:
    """Values and the actions that make them. `shape_of` gives the shape of a node's value here."""

    def __init__(self, graph: Snapshot, shape_of: Callable[[int], Shape]) -> None:
        self.graph = graph
        self.values: list[Value] = []
        self.actions: list[Action] = []
        self._shape_of = shape_of
        self._forms: dict[tuple[int, bool], int] = {}  # (node, narrow) → value
        self._products: set[int] = set()  # those whose only reader sums them

    def __contains__(self, node: int) -> bool:
        return (node, True) in self._forms or (node, False) in self._forms

    def is_narrow(self, node: int) -> bool:
        """Whether a node's value is there as it is stored."""
        return (node, True) in self._forms or not is_half(self.graph.sigs[node].dtype)

    def is_only_narrow(self, node: int) -> bool:
        """Whether a node's value is there, but not in the form that is computed with."""
        if node not in self:
            self.add(node)
        return (node, False) not in self._forms

    def forget_wide(self, node: int) -> None:
        """Whoever asks again gets the rounded value."""
        if (node, True) in self._forms:
            self._forms.pop((node, False), None)

    def declare(self, node: int, *, narrow: bool) -> int:
        """A value that comes from outside, or from an action that is not in the list."""
        sig = self.graph.sigs[node]
        key = self._key(node, narrow)
        self._forms[key] = len(self.values)
        dtype = sig.dtype.numpy if key[1] else wide_type(sig.dtype)
        self.values.append(Value(node, self._shape_of(node), dtype))
        return len(self.values) - 1

    def value(self, node: int, *, narrow: bool) -> int:
        """The number of a node's value in a form, converted if need be."""
        key = self._key(node, narrow)
        found = self._forms.get(key)
        if found is None:
            if node not in self:
                self.add(node)  # an expansion, which is put off until it is asked for
                return self.value(node, narrow=narrow)
            source = self._forms[node, not key[1]]
            found = self.declare(node, narrow=key[1])
            self.actions.append(
                Action(Operation(convert(self.values[found].dtype), into=True), (source,), found)
            )
        return found

    def gather(self, node: int) -> None:
        """A value from outside once more, side by side in memory: what is read twice is copied once."""
        source = self.value(node, narrow=False)
        output = self.declare(node, narrow=False)
        self.actions.append(
            Action(Operation(convert(self.values[output].dtype), into=True), (source,), output)
        )

    def _key(self, node: int, narrow: bool) -> tuple[int, bool]:
        return node, narrow and is_half(self.graph.sigs[node].dtype)

    def add(self, node: int) -> None:
        """The action of a node whose inputs are there."""
        sig = self.graph.sigs[node]
        inputs = self._operands(node) if sig.kind == "map" else self.graph.inputs[node]
        if sig.kind == "reduce" and inputs[0] in self._products and inputs[0] not in self:
            self._add_sum_of_products(node, inputs[0])
            return
        operation = operation_of(sig, [self.graph.sigs[each] for each in inputs], self._shape_of(node))
        narrow = operation.gives == "narrow"
        if operation.takes == "either":
            moved = [self._has_form_of(sig, at, each) for at, each in enumerate(inputs)]
            narrow = all(
                self._stays_narrow(each) for each, is_data in zip(inputs, moved, strict=True) if is_data
            )
            numbers = tuple(
                self.value(each, narrow=narrow and is_data)
                for each, is_data in zip(inputs, moved, strict=True)
            )
        else:
            numbers = tuple(self.value(each, narrow=operation.takes == "narrow") for each in inputs)
        output = self.declare(node, narrow=narrow)
        self.actions.append(Action(operation, numbers, output))

    def _add_sum_of_products(self, node: int, product: int) -> None:
        axes = self.graph.sigs[node].attributes[0]
        numbers = tuple(self.value(each, narrow=False) for each in self.graph.inputs[product])
        output = self.declare(node, narrow=False)
        windows = bool(window_sum(self.graph, node))
        function = sum_windows if windows else partial(sum_products, axes=axes)
        self.actions.append(Action(Operation(function, into=windows), numbers, output))

    def add_all(self, nodes: Sequence[int]) -> None:
        """Several nodes, inputs first. Those that are there stay; expansions wait until they are needed, and
        so do products that one sum reads.
        """
        self._products = self._only_summed(nodes)
        for node in nodes:
            waits = self.graph.sigs[node].op.name == "expand" or node in self._products
            if node not in self and not waits:
                self.add(node)

    def _only_summed(self, nodes: Sequence[int]) -> set[int]:
        """Products of floats of one shape that a sum reads, and nothing else here."""
        sigs, inputs = self.graph.sigs, self.graph.inputs
        readers: dict[int, list[int]] = {}
        for node in nodes:
            for each in inputs[node]:
                readers.setdefault(each, []).append(node)
        return {
            each
            for each in nodes
            if sigs[each].op.name == "multiply"
            and sigs[each].dtype.numpy in (np.float32, np.float64)
            and [sigs[reader].op.name for reader in readers.get(each, ())] == ["sum"]
            and (
                all(self._shape_of(source) == self._shape_of(each) for source in inputs[each])
                or window_sum(self.graph, readers[each][0])
            )
        }

    def _stays_narrow(self, node: int) -> bool:
        if node not in self:
            self.add(node)
        return self.is_narrow(node)

    def _has_form_of(self, sig: Signature, position: int, node: int) -> bool:
        """Whether an input's form is the result's: not of indices, nor of a number to fill with."""
        source = self.graph.sigs[node]
        return source.dtype is sig.dtype and (source.kind != "scalar" or position == 0)

    def _operands(self, node: int) -> tuple[int, ...]:
        """A map's inputs without their expansions, where the others have the result's shape: NumPy
        broadcasts.
        """
        inputs = self.graph.inputs[node]
        if all(self.graph.sigs[each].op.name != "expand" or each in self for each in inputs):
            return inputs
        plain = tuple(map(self._unexpanded, inputs))
        shape = broadcast(self.graph.sigs[node].op.name, [self._shape_of(each) for each in plain])
        return plain if shape == self._shape_of(node) else inputs

    def _unexpanded(self, node: int) -> int:
        while self.graph.sigs[node].op.name == "expand" and node not in self:
            (node,) = self.graph.inputs[node]
        return node


# Actions as functions of the list of values


def fresh(function: Callable[..., Any], inputs: tuple[int, ...], output: int) -> Run:
    """Into a new array, or a view."""
    if len(inputs) == 1:
        (a,) = inputs

        def run_one(values: list[Any]) -> None:
            values[output] = function(values[a])

        return run_one
    if len(inputs) == 2:
        a, b = inputs

        def run_two(values: list[Any]) -> None:
            values[output] = function(values[a], values[b])

        return run_two

    def run(values: list[Any]) -> None:
        values[output] = function(*[values[each] for each in inputs])

    return run


def fresh_last(function: Callable[..., Any], inputs: tuple[int, ...], output: int, last: int) -> Run:
    """Into a new array, after which one value is let go: one call for small operations, not two."""
    if len(inputs) == 1:
        (a,) = inputs

        def run_one(values: list[Any]) -> None:
            values[output] = function(values[a])
            values[last] = None

        return run_one
    if len(inputs) == 2:
        a, b = inputs

        def run_two(values: list[Any]) -> None:
            values[output] = function(values[a], values[b])
            values[last] = None

        return run_two

    def run(values: list[Any]) -> None:
        values[output] = function(*[values[each] for each in inputs])
        values[last] = None

    return run


def into(function: Callable[..., Any], inputs: tuple[int, ...], output: int) -> Run:
    """Into the array that is there."""
    if len(inputs) == 1:
        (a,) = inputs

        def run_one(values: list[Any]) -> None:
            function(values[a], out=values[output])

        return run_one
    if len(inputs) == 2:
        a, b = inputs

        def run_two(values: list[Any]) -> None:
            function(values[a], values[b], out=values[output])

        return run_two

    def run(values: list[Any]) -> None:
        function(*[values[each] for each in inputs], out=values[output])

    return run
