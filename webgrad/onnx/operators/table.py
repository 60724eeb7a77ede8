"""The table of operators: domain, name and version → a function over webgrad's public names.

A function's positional parameters are the operator's inputs, None where one is left out; its keyword-only
ones are the attributes, by their names in the standard. `call`, a keyword-only parameter too, is a `Call`.
It gives one value or a tuple of them. A value is a tensor; an array of NumPy, which is known on the host;
a list, which is a sequence; or None, an empty optional.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import webgrad as wg

__all__ = ["Call", "Operator", "find", "operator", "rows"]


class Call(Protocol):
    """What an operator may know of the node that calls it."""

    outputs: int  # how many are wanted, those before the last one included
    opset: int  # the version of the standard that the model was written for
    device: Any

    def run(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a branch or body for its inputs; other names are those of the graphs around it."""

    def recomputed(self, name: str, given: dict[str, Any]) -> Any:
        """A value of the graph that the node is in, computed anew from other values of some names."""

    def host(self, value: Any) -> Any:
        """A value as an array; of a tensor it waits, and the model cannot be captured."""

    def tensor(self, value: Any) -> wg.Tensor:
        """A value as a tensor on the model's device."""

    def once(self, make: Callable[[], Any]) -> Any:
        """What `make` gives of the node's attributes and device: made once, for all calls."""


# Weights in another form, made when a model is loaded. It takes the operator's inputs, None for computed
# ones, and attributes; it gives values by the places of inputs that they replace, None for one that goes.
Prepare = Callable[..., Mapping[int, Any]]


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the table."""

    domain: str
    name: str
    since: int
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    rest: str  # the parameter for any number of inputs; "" without
    attributes: frozenset[str]
    required: frozenset[str]  # attributes without a default
    host: frozenset[str]  # inputs that it needs as arrays
    known: frozenset[str]  # inputs that it takes as arrays where they are known, else as tensors
    folds: bool  # gives the same for the same inputs: of arrays it gives arrays
    takes_call: bool
    prepare: Prepare | None = None

    def __str__(self) -> str:
        return f"{self.domain}.{self.name}" if self.domain else self.name

    def input_name(self, place: int) -> str:
        """What the function calls an input."""
        return self.inputs[place] if place < len(self.inputs) else self.rest


_ROWS: dict[tuple[str, str], list[Operator]] = {}
_CALL = "call"
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def operator(
    names: str,
    since: int = 1,
    *,
    domain: str = "",
    host: str = "",
    known: str = "",
    folds: bool = True,
    prepare: Prepare | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the table: for models whose operator set is `since` or newer, up to the next row.

    `host` names the inputs that the function needs as arrays of NumPy: shapes, axes, counts. Those of `known`
    are arrays where their numbers are known anyway. `prepare` gives weights another form when a model is
    loaded. Users add operators of their own, or replace one:

    >>> @wg.onnx.operator("Double", domain="my.domain")
    ... def double(x):
    ...     return x * 2
    """
    for each in names.split():
        if not each.isidentifier():
            raise wg.ArgumentError(f"operator takes names of operators, not {each!r}")

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split():
            there = _ROWS.setdefault((domain, name), [])
            there[:] = sorted(
                [
                    *(each for each in there if each.since != since),
                    replace(_row(domain, name, since, function, host, known, folds), prepare=prepare),
                ],
                key=lambda each: each.since,
            )
        return function

    return enter


def find(domain: str, name: str, version: int) -> Operator | None:
    """The newest row that a version of the operator set has."""
    found = None
    for each in _ROWS.get((domain, name), ()):
        if each.since <= version:
            found = each
    return found


def rows() -> Iterator[Operator]:
    """All rows, by domain and name."""
    for key in sorted(_ROWS):
        yield from _ROWS[key]


def _row(
    domain: str, name: str, since: int, function: Callable[..., Any], host: str, known: str, folds: bool
) -> Operator:
    parameters = inspect.signature(function).parameters
    positional = tuple(each.name for each in parameters.values() if each.kind in _BY_PLACE)
    rest = "".join(each.name for each in parameters.values() if each.kind is each.VAR_POSITIONAL)
    only = {
        each.name: each.default is inspect.Parameter.empty
        for each in parameters.values()
        if each.kind is inspect.Parameter.KEYWORD_ONLY and each.name != _CALL
    }
    needed, taken = frozenset(host.split()), frozenset(known.split())
    if (needed | taken) - {*positional, rest}:
        raise ValueError(f"{name}: there are no inputs {sorted((needed | taken) - {*positional, rest})}")
    required = frozenset(each for each, is_needed in only.items() if is_needed)
    return Operator(
        *(domain, name, since, function, positional, rest, frozenset(only), required),
        *(needed, taken, folds, _CALL in parameters),
    )
