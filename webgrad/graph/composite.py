"""Composites: a graph that was built before, as one node. Later stages see what is in it.

In: a graph with composites. Out: the same graph with what is in them. A **composite** is the only result of
its `Body`; a **bundle** is a body of several results, and has no value: its **items** have. The invariant:
what two bodies compute of the same values is there once, so that a gradient's body may compute anew what it
needs of the body that it goes back through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .op import Op

if TYPE_CHECKING:
    from .node import Signature
    from .snapshot import Snapshot


def _inside(*_: Any) -> Any:
    raise AssertionError("a composite is computed by what is in it")


COMPOSITE = Op("composite", "composite", -1, _inside, gradient="composite")
BUNDLE = Op("bundle", "bundle", -1, _inside, gradient="composite")
ITEM = Op("item", "item", 1, _inside, gradient="item")


class Body:
    """What a composite computes: signatures and inputs by number, and which of them are its results.

    The composite's own inputs stand for leaves and scalars: `given` has their places.
    """

    __slots__ = ("given", "inputs", "roots", "sigs")

    def __init__(
        self,
        sigs: tuple[Signature, ...],
        inputs: tuple[tuple[int, ...], ...],
        roots: tuple[int, ...],
        given: dict[int, int],
    ) -> None:
        self.sigs = sigs
        self.inputs = inputs
        self.roots = roots
        self.given = given


class _Expansion:
    """A snapshot while its composites are replaced."""

    def __init__(self, graph: Snapshot) -> None:
        self.graph = graph
        self.known: dict[tuple[Signature, tuple[int, ...]], int] = {}  # what bodies compute, by number
        self.items: dict[int, list[int]] = {}  # of each bundle
        for number, sig in enumerate(graph.sigs):
            if sig.kind == "item":
                self.items.setdefault(graph.inputs[number][0], []).append(number)

    def replace(self, number: int) -> None:
        """Put what is in a composite in its place; its results take the numbers of itself or of its items."""
        graph, body = self.graph, self.graph.sigs[number].attributes[0]
        places = {body.roots[0]: number}
        if graph.sigs[number].kind == "bundle":
            found = self.items.get(number, ())
            places = {body.roots[graph.sigs[each].attributes[0]]: each for each in found}
        given, numbers = graph.inputs[number], list[int]()
        for at, (sig, inputs) in enumerate(zip(body.sigs, body.inputs, strict=True)):
            if at in body.given:
                numbers.append(given[body.given[at]])
            else:
                step = sig, tuple([numbers[each] for each in inputs])
                numbers.append(self._placed(step, places.get(at), number))

    def _placed(self, step: tuple[Signature, tuple[int, ...]], place: int | None, origin: int) -> int:
        """The number of a step: its place, if it has one, else a new one, unless it was computed before."""
        graph, known = self.graph, self.known.get(step)
        if place is not None:
            graph.sigs[place], graph.inputs[place] = step
            graph.origins[place] = place
            return self.known.setdefault(step, place)
        if known is None:
            known = self.known[step] = graph.add(*step)
            graph.origins[known] = origin
        return known


def expand(graph: Snapshot) -> None:
    """Replace a graph's composites by what is in them. Numbers of other nodes stay."""
    if not any(sig.kind in ("composite", "bundle") for sig in graph.sigs):
        return
    expansion = _Expansion(graph)
    for number in range(len(graph)):
        if graph.sigs[number].kind in ("composite", "bundle"):
            expansion.replace(number)
    graph.held = frozenset([each for each in graph.held if graph.sigs[each].kind != "bundle"])
