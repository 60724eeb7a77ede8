"""Whole ways back by their structure: one that was gone before is one node with its items.

In: vertices with histories, in order, and the gradients of some. Out: the gradients of those that are wanted,
or None where the way is gone vertex by vertex: the first time, and where hooks, retained gradients or
functions with their own gradient are on it. The invariant: a structure has every signature and which inputs
are the same node, so that what is recorded is what the walk would build.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from ..errors import CaptureError
from ..functions.learning.autocast import autocast_dtype
from ..functions.recording import Recording, check_pure, placeholder
from ..graph.node import Node, Signature
from ..graph.trace import ImpureError, noting
from ..tensor import Tensor
from .history import SLOT, Composed, History
from .slots import GradientSlot

Vertex = Any
Seeds = Sequence[tuple[Node, Tensor]]
Pulled = Callable[[Seeds, dict[int, Node] | None, list[Vertex]], dict[int, Tensor]]
MOST_STRUCTURES, MOST_SEEN = 256, 1 << 14
_END, _OTHER_SLOT, _SEEDED, _CONSTANT = range(-4, 0)


class _Known:
    """What was recorded, by structure, and what was seen before."""

    def __init__(self) -> None:
        self.recordings: dict[tuple[Any, ...], Recording | None] = {}
        self.seen: dict[int, int | None] = {}  # by hashes, since structures are long

    def is_steady(self, structure: tuple[Any, ...]) -> bool:
        """Whether a structure was seen before, and none that differs only in where movement begins: of these
        one plan serves all, as long as the places are no part of a composite.
        """
        if len(self.seen) >= MOST_SEEN:
            self.seen.clear()
        form = hash(tuple([each.form if each.__class__ is Signature else each for each in structure]))
        own = hash(structure)
        if form not in self.seen:
            self.seen[form] = own
            return False
        if self.seen[form] != own:
            self.seen[form] = None
        return self.seen[form] == own

    def keep(self, structure: tuple[Any, ...], recording: Recording | None) -> None:
        """Remember what was recorded."""
        if len(self.recordings) >= MOST_STRUCTURES:
            self.recordings.clear()
        self.recordings[structure] = recording


_known = _Known()


def by_structure(
    pulled: Pulled, seeds: Seeds, wanted: dict[int, Node] | None, order: list[Vertex]
) -> dict[int, Tensor] | None:
    """The gradients by identity, as `pulled` gives them; None where it must be asked."""
    given: list[Any] = []
    structure = _structure(order, seeds, wanted, given)
    if structure is None:
        return None
    recording = _known.recordings.get(structure)
    if recording is None:
        if structure in _known.recordings or not _known.is_steady(structure):
            return None
        recording = _recorded(pulled, seeds, wanted, order)
        _known.keep(structure, recording)
        if recording is None:
            return None
    ends = [each for each in order if _is_end(each, wanted)]
    found = zip(ends, recording(tuple(given)), strict=True)
    return {id(end): Tensor(node) for end, node in found if node is not None}


def _is_end(vertex: Vertex, wanted: Container[int] | None) -> bool:
    return vertex.history.sig is SLOT if wanted is None else id(vertex) in wanted


def _structure(
    order: Sequence[Vertex], seeds: Seeds, wanted: Container[int] | None, given: list[Any]
) -> tuple[Any, ...] | None:
    """Everything that the way back depends on but values; `given` gets all nodes there are, each once."""
    places: dict[Any, int] = {}
    code: list[Any] = [autocast_dtype()]
    for vertex in order:
        history = vertex.history
        kind = history.__class__
        if history.hooks or history.slot is not None:
            return None
        if wanted is not None and id(vertex) in wanted:
            code += (_END, vertex.sig.given)
        elif kind is GradientSlot:
            code += (_END if wanted is None else _OTHER_SLOT, vertex.sig.given)
        elif kind is Composed or (kind is History and history.sig.__class__ is Signature):
            code.append(history.recording if kind is Composed else history.sig)
            for each in history.inputs:
                place = places.get(each)
                if place is None:
                    place = places[each] = len(given)
                    given.append(each)
                    code += (_CONSTANT, each.sig.given)
                code.append(place)
        else:
            return None
        places[vertex] = len(given)
        given.append(vertex)
    for node, seed in seeds:
        if node in places:  # else no gradient goes through it
            code += (_SEEDED, places[node], seed.node.sig.given)
            given.append(seed.node)
    return tuple(code)


def _recorded(
    pulled: Pulled, seeds: Seeds, wanted: dict[int, Node] | None, order: Sequence[Vertex]
) -> Recording | None:
    """The way back over placeholders; None where it is more than a graph."""
    made: dict[Any, Node] = {}
    try:
        with noting(composes=True) as trace:
            vertices = [_stand_in(each, made, wanted) for each in order]
            pairs = [
                (made[node], Tensor(placeholder(seed.node.sig.given))) for node, seed in seeds if node in made
            ]
            ends = [made[each] for each in order if _is_end(each, wanted)]
            found = pulled(pairs, {id(each): each for each in ends}, vertices)
            check_pure(trace)
            gradients = [found.get(id(each)) for each in ends]
            given = [*made.values(), *[seed.node for _, seed in pairs]]
            return Recording(given, [None if each is None else each.node for each in gradients])
    except (ImpureError, CaptureError):
        return None


def _stand_in(vertex: Vertex, made: dict[Any, Node], wanted: Container[int] | None) -> Node:
    """A placeholder for a vertex, with the history of one; `made` gets what it is computed from, too."""
    history = vertex.history
    is_end = _is_end(vertex, wanted) or history.sig is SLOT
    if not is_end:
        for each in history.inputs:
            if each not in made:
                made[each] = placeholder(each.sig.given)
    node = made[vertex] = placeholder((vertex.sig if is_end else history.sig).given)
    if is_end:
        node.history = GradientSlot()
    else:
        inputs = tuple([made[each] for each in history.inputs])
        is_composed = history.__class__ is Composed
        node.history = (
            Composed(history.sig, inputs, history.recording) if is_composed else History(history.sig, inputs)
        )
    return node
