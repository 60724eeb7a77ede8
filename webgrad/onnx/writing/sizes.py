"""Sizes that a file leaves open: what a function's graph has in common for several sizes of its inputs.

In: the graphs of one function, traced with different sizes. Out: one graph, where shapes and attributes have
`Size`s in place of numbers that differ. The invariant: each `Size` gives the number of every traced graph;
what differs in any other way is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any, NoReturn

import webgrad as wg

from ...arrays import np

__all__ = ["Size", "is_fixed", "merged"]

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Size:
    """A sum of products of named sizes, each with a factor: 2 * batch * length + 1."""

    terms: tuple[tuple[tuple[str, ...], int], ...]

    def of(self, sizes: Sizes) -> int:
        """Its number for some sizes."""
        return sum(factor * prod(sizes[each] for each in names) for names, factor in self.terms)

    @property
    def name(self) -> str:
        """The size that it is; "" where it is computed of some."""
        [*several] = self.terms
        is_one = len(several) == 1 and several[0][1] == 1 and len(several[0][0]) == 1
        return several[0][0][0] if is_one else ""

    def __str__(self) -> str:
        return " + ".join(
            "*".join([*([str(factor)] if factor != 1 else []), *names]) or "1" for names, factor in self.terms
        )


def is_fixed(value: Any) -> bool:
    """Whether there is no open size in a shape or an attribute."""
    if isinstance(value, tuple | list):
        return all(map(is_fixed, value))
    return not isinstance(value, Size)


def merged(graphs: Sequence[tuple[wg.TracedGraph, Sizes]]) -> wg.TracedGraph:
    """The one graph that these are for their sizes; the first is that of the base sizes."""
    first = graphs[0][0]
    if len(graphs) == 1:
        return first
    same = all(
        each.inputs == first.inputs and each.outputs == first.outputs and len(each.nodes) == len(first.nodes)
        for each, _ in graphs
    )
    alike = same and all(_is_alike(*nodes) for nodes in zip(*(each.nodes for each, _ in graphs), strict=True))
    if not alike:
        _refuse("other operations are done for other sizes", _first_unlike(graphs))
    sizes = [each for _, each in graphs]
    nodes = [
        _merged_node(several, sizes) for several in zip(*(each.nodes for each, _ in graphs), strict=True)
    ]
    return replace(first, nodes=tuple(nodes))


def _is_alike(first: wg.TracedNode, *others: wg.TracedNode) -> bool:
    return all(
        (each.op, each.inputs, each.dtype, each.name, each.parameters, len(each.shape))
        == (first.op, first.inputs, first.dtype, first.name, first.parameters, len(first.shape))
        for each in others
    )


def _first_unlike(graphs: Sequence[tuple[wg.TracedGraph, Sizes]]) -> str:
    """The user's line of the first node that differs."""
    for nodes in zip(*(each.nodes for each, _ in graphs), strict=False):
        if not _is_alike(*nodes):
            return str(nodes[0].line)
    return ""


def _merged_node(nodes: Sequence[wg.TracedNode], sizes: Sequence[Sizes]) -> wg.TracedNode:
    first = nodes[0]
    if first.op == "tensor" and not first.name and not _are_equal([each.value for each in nodes]):
        _refuse("a table is computed of the size, in Python", first.line)
    shape = _merged([each.shape for each in nodes], sizes, first.line)
    attributes = _merged([each.attributes for each in nodes], sizes, first.line)
    value = first.value
    if first.op == "number" and any(each.value != value for each in nodes):
        value = _merged([_whole(each.value) for each in nodes], sizes, first.line)
    return replace(first, shape=shape, attributes=attributes, value=value)


def _whole(number: Any) -> Any:
    """A count as an integer, as floats are that divide."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _are_equal(tensors: Sequence[wg.Tensor]) -> bool:
    first = tensors[0]
    return all(
        each.shape == first.shape and np.array_equal(each.numpy(), first.numpy()) for each in tensors[1:]
    )


def _merged(values: Sequence[Any], sizes: Sequence[Sizes], line: str) -> Any:
    """What stands for all of these, one for each set of sizes."""
    first = values[0]
    if isinstance(first, tuple) and all(len(each) == len(first) for each in values):
        return tuple([_merged(several, sizes, line) for several in zip(*values, strict=True)])
    if isinstance(first, dict):
        return {key: _merged([each[key] for each in values], sizes, line) for key in first}
    if all(each == first for each in values):
        return first
    if all(isinstance(each, int) for each in values):
        for found in _candidates(values, sizes):
            if all(found.of(each) == value for each, value in zip(sizes, values, strict=True)):
                return found
    return _refuse(f"{values[0]!r} becomes {values[1]!r}, and no rule for it is known", line)


def _candidates(values: Sequence[int], sizes: Sequence[Sizes]) -> Iterator[Size]:
    """A sum of multiples of sizes; then multiples of products of several, with a number added."""
    base = sizes[0]
    slopes: dict[str, int] = {}
    for value, each in zip(values[1:], sizes[1:], strict=True):
        moved = [name for name in base if each[name] != base[name]]
        if len(moved) == 1:
            slopes.setdefault(moved[0], (value - values[0]) // (each[moved[0]] - base[moved[0]]))
    yield _sum({(name,): slope for name, slope in slopes.items()}, values[0], base)
    for names in (each for count in range(2, len(base) + 1) for each in combinations(base, count)):
        run = prod(sizes[-1][name] for name in names) - prod(base[name] for name in names)
        yield _sum({names: (values[-1] - values[0]) // run}, values[0], base)


def _sum(factors: Mapping[tuple[str, ...], int], value: int, base: Sizes) -> Size:
    """The sum of products by their factors that is a value for the base sizes."""
    terms = tuple([(names, factor) for names, factor in factors.items() if factor])
    rest = value - Size(terms).of(base)
    return Size((*terms, ((), rest)) if rest else terms)


def _refuse(what: str, line: str) -> NoReturn:
    place = f" (at {line})" if line else ""
    raise wg.ArgumentError(
        f"save: the sizes given as dynamic cannot be left open: {what}{place}. Leave out the axis: a file "
        "has fixed sizes then, and you can write one for each"
    )
