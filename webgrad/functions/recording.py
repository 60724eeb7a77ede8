"""Recordings: what a function computes of nodes, as a graph that is built anew at once.

In: placeholders, and what a function computed of them. Out: a `Recording`; then, for nodes of the same
signatures, the function's results. The invariant: a recording holds signatures and constants; the constants
are inputs of what is built, so that recordings of one structure have one body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any

from ..dtypes import float32, int32
from ..gradients.history import grad_mode
from ..gradients.slots import GradientSlot
from ..graph.composite import BUNDLE, COMPOSITE, ITEM, Body
from ..graph.node import Bundle, Node, Signature, items_of, made_of, signature
from ..graph.op import LEAF
from ..graph.snapshot import Snapshot, Walk, snapshot, walk
from ..graph.trace import ImpureError, RuntimeFloat, RuntimeInt, Trace, is_runtime
from .learning.autocast import autocast_dtype

Compute = Callable[[Sequence[Node]], Sequence[Node | None]]
Nodes = tuple[Node, ...]
MOST_BODIES = 1 << 13
_bodies: dict[tuple[Any, ...], Body] = {}
_history_of = attrgetter("history")
_GIVEN = ("leaf", "scalar")


def placeholder(sig: Signature, tracked: bool = False) -> Node:
    """A node that stands for any of a signature; `tracked` where gradients go through it."""
    if sig.op is not LEAF and sig.dtype.kind not in "iuf":
        raise ImpureError
    number = RuntimeFloat if sig.dtype.kind == "f" else RuntimeInt
    node = Node(sig, (), None if sig.op is LEAF else number(1), None)
    node.history = GradientSlot() if tracked else None
    return node


def check_pure(trace: Trace, *, may_draw: bool = False) -> None:
    """Refuse a function that did more than to compute; whether `autocast` is on, recordings are found by."""
    watched = [get for get, _ in trace.watched if get is not autocast_dtype]
    if trace.changed or (trace.draws and not may_draw) or watched or trace.versioned or trace.slots:
        raise ImpureError


class Recording:
    """What a function computed of nodes: few steps are built one by one, more as a composite, or as a bundle
    and its items. With `whole` all nodes that were given are inputs of that, else those that are used.
    `places` are other nodes that stand for one that was given, by identity.
    """

    def __init__(
        self,
        given: Sequence[Node],
        results: Sequence[Node | None],
        *,
        whole: bool = False,
        compute: Compute | None = None,
        places: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._compute = compute
        self.backwards: dict[Any, Recording | None] = {}  # its gradients, by what is given and wanted
        self.sigs = [each.sig for each in given]
        self.tracked = [each.history is not None for each in given]
        places = {**places, **places_of(given)}
        roots = {
            id(node): node
            for node in results
            if node is not None and node.sig.kind not in _GIVEN and id(node) not in places
        }
        numbers = {each: at for at, each in enumerate(roots)}
        self.results = [_result(node, places, numbers) for node in results]
        self.is_single = self.results == [0]
        self.constants: Nodes = ()
        self.body: Body | None = None
        self._steps: list[tuple[Signature, tuple[int, ...]]] = []
        self._roots: list[int] = []
        self._items: list[Signature] = []
        if roots:
            self._take([*roots.values()], len(given), places, whole)

    def _take(self, roots: list[Node], given: int, places: dict[int, int], whole: bool) -> None:
        """Note how to build the roots."""
        body, constants, inputs, _ = body_of(roots, given, places, whole)
        self.body, self.constants = body, tuple(constants)
        count = given + len(constants)
        if len(body.sigs) - len(body.given) <= max(1, len(roots)):
            places = {at: inputs[place] for at, place in body.given.items()}
            for at, sig in enumerate(body.sigs):
                if at not in places:
                    places[at] = count + len(self._steps)
                    self._steps.append((sig, tuple([places[each] for each in body.inputs[at]])))
            self._roots = [places[each] for each in body.roots]
            return
        self._pick = None if len(inputs) == count else _picker(inputs)
        sigs, device = [each.sig for each in roots], roots[0].sig.device
        if len(roots) == 1:
            self._sig = signature(COMPOSITE, sigs[0].shape, sigs[0].dtype, device, (body,))
            return
        dtype = float32 if any(each.dtype.kind in "fc" for each in sigs) else int32
        self._sig = signature(BUNDLE, (), dtype, device, (body,))
        self._items = [signature(ITEM, each.shape, each.dtype, device, (at,)) for at, each in enumerate(sigs)]

    def computed(self, given: Sequence[Node]) -> list[Any]:
        """The results by running the function again."""
        assert self._compute is not None
        return [*self._compute(given)]

    def __call__(self, given: Nodes) -> list[Node | None]:
        """The function's results for other nodes of the same signatures."""
        made = self._made(given + self.constants)
        if self.is_single:
            return made
        return [_found(each, given, made) for each in self.results]

    def _made(self, pool: Nodes) -> list[Any]:
        """The roots, from what is given and the constants."""
        if self._steps:
            known = [*pool]
            for sig, places in self._steps:
                inputs = tuple([known[each] for each in places])
                known.append(made_of(sig, inputs, grad_mode.on and any(map(_history_of, inputs))))
            return [known[each] for each in self._roots]
        if self.body is None:
            return []
        inputs = pool if self._pick is None else self._pick(pool)
        has_history = grad_mode.on and any(map(_history_of, inputs))
        if not self._items:
            return [made_of(self._sig, inputs, has_history, self)]
        bundle: Any = made_of(self._sig, inputs, has_history, self, Bundle)
        return items_of(bundle, self._items, has_history)


def _flat(graph: Snapshot, placed: dict[int, int]) -> tuple[Any, ...]:
    """A graph's signatures, inputs and roots, inputs first, and where what is given is among them."""
    order = graph.order() if graph.origins else range(len(graph))
    numbers = {each: at for at, each in enumerate(order)}
    return (
        tuple([graph.sigs[each] for each in order]),
        tuple([tuple([numbers[one] for one in graph.inputs[each]]) for each in order]),
        tuple([numbers[each] for each in graph.roots]),
        {numbers[each]: placed[each] for each in order if each in placed},
    )


def places_of(given: Sequence[Node]) -> dict[int, int]:
    """Places by identity: of nodes, and of the numbers that placeholders have, which other nodes may have."""
    numbers = {id(node.storage): at for at, node in enumerate(given) if is_runtime(node.storage)}
    return numbers | {id(node): at for at, node in enumerate(given)}


def _result(node: Node | None, places: dict[int, int], numbers: dict[int, int]) -> Any:
    """Where a result is found: the number of a root, ~place of what is given, a constant; or None."""
    if node is None or id(node) in numbers:
        return None if node is None else numbers[id(node)]
    if id(node) in places:
        return ~places[id(node)]
    if node.sig.kind != "scalar":
        raise ImpureError
    return node


def _found(result: Any, given: Nodes, made: list[Node]) -> Node | None:
    if result is None:
        return None
    if isinstance(result, Node):
        return Node(result.sig, (), result.storage, None)
    place: int = result
    return made[place] if place >= 0 else given[~place]


def _picker(places: Sequence[int]) -> Callable[[Nodes], Nodes]:
    if len(places) < 2:
        return lambda pool: tuple([pool[each] for each in places])
    return itemgetter(*places)


def body_of(
    roots: Sequence[Node], given: int, known: Mapping[int, int], whole: bool
) -> tuple[Body, list[Node], Sequence[int], Walk]:
    """The body with these results; its constants, which are given behind the rest; which of both are inputs
    of a node that has it; and the walk. `known` are the places of what is given, by identity.
    """
    walked = walk(roots)
    constants: list[Node] = []
    places: dict[int, int] = {}
    for number, node in enumerate(walked.nodes):
        if node.sig.device is not roots[0].sig.device:
            raise ImpureError
        if node.sig.kind in _GIVEN:
            place = known.get(id(node))
            if place is None and is_runtime(node.storage):
                place = known.get(id(node.storage))
            if place is None:
                if node.sig.kind == "leaf" or is_runtime(node.storage):
                    raise ImpureError
                place = given + len(constants)
                constants.append(node)
            places[number] = place
    inputs: Sequence[int] = range(given + len(constants)) if whole else sorted(set(places.values()))
    order = {each: at for at, each in enumerate(inputs)}
    placed = {number: order[place] for number, place in places.items()}
    sigs, sources, ends, placed = _flat(snapshot(walked, roots), placed)
    key = (sigs, sources, ends, *placed.values())
    body = _bodies.get(key)
    if body is None:
        if len(_bodies) >= MOST_BODIES:
            _bodies.clear()
        body = _bodies[key] = Body(sigs, sources, ends, placed)
    return body, constants, inputs, walked
