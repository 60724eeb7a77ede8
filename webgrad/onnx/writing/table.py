"""The tables of what is written how: primitives of docs/ops.md, and functions that are one operator of ONNX.

In: a node of a traced graph with the values that it reads, as a `Site`. Out: the value that it is. A row of
a function says for which arguments it holds; others are written by their primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import webgrad as wg

from .builder import Builder, Value
from .sizes import Size

__all__ = ["CALLS", "PRIMITIVES", "Shape", "Site", "call", "is_whole", "primitive"]

Shape = tuple[int | Size, ...]
Row = Callable[["Site"], Value]
Condition = Callable[[Mapping[str, Any]], bool]
PRIMITIVES: dict[str, Row] = {}
CALLS: dict[str, tuple[Condition, Row]] = {}


@dataclass(frozen=True, slots=True)
class Site:
    """A node that is written: what it reads, as values of the file and as nodes of the graph."""

    b: Builder
    node: wg.TracedNode
    inputs: tuple[Value, ...]
    sources: tuple[wg.TracedNode, ...]

    @property
    def shape(self) -> Shape:
        """The result's."""
        return self.node.shape

    @property
    def dtype(self) -> str:
        """The result's."""
        return self.node.dtype.name

    @property
    def attributes(self) -> Any:
        return self.node.attributes

    def input(self, name: str) -> Value | None:
        """A tensor among a call's arguments."""
        names = self.node.parameters
        return self.inputs[names.index(name)] if name in names else None

    def number(self, place: int) -> Any:
        """An input's value, where it is a number that the function's code has in it."""
        source = self.sources[place]
        return source.value if source.op == "number" else None

    def refuse(self, what: str) -> NoReturn:
        line = f" (at {self.node.line})" if self.node.line else ""
        raise wg.ArgumentError(f"save: {self.node.op} of shape {self.shape}{line} cannot be written: {what}")


def primitive(names: str) -> Callable[[Row], Row]:
    """Enter a row for primitives."""

    def enter(row: Row) -> Row:
        PRIMITIVES.update(dict.fromkeys(names.split(), row))
        return row

    return enter


def call(names: str, when: Condition = lambda arguments: True) -> Callable[[Row], Row]:
    """Enter a row for functions; `when` says for which of their arguments it holds."""

    def enter(row: Row) -> Row:
        CALLS.update(dict.fromkeys(names.split(), (when, row)))
        return row

    return enter


def is_whole(name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call of a function is written as one operator."""
    row = CALLS.get(name)
    tensors = [each for each in arguments.values() if isinstance(each, wg.Tensor)]
    plain = all(each.dtype.kind != "c" for each in tensors)
    return row is not None and bool(tensors) and plain and row[0](arguments)
