"""A captured call: what it computes, from which tensors and numbers, and what becomes of the results.

In: what was traced; then, for each call, its arguments. Out: its results, after what it changes was changed.
The invariant: a capture holds signatures and constants, never the storage of what is fed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import nullcontext
from operator import attrgetter, call, is_
from sys import getrefcount
from typing import Any
from weakref import ref

from ..errors import ArgumentError, CaptureError
from ..evaluate.evaluate import Recorded, compute, evaluation_lock, picker, plan_for, submit
from ..gradients.history import CAPTURED, History, grad_mode_set
from ..gradients.slots import GradientSlot
from ..graph.node import Node, Signature, backlog, scalar, signature
from ..graph.op import LEAF
from ..graph.refcounts import LISTED
from ..graph.trace import is_runtime, plain
from ..observing import stage
from ..ops.views import Alias, base_of, join, mirrored, shares_with, told
from ..ops.writes import give
from ..runtime.shield import shield
from ..tensor import Tensor
from .closures import Names, is_still, tensors_that_refer_to
from .pytree import unflatten
from .trace import Traced, is_open

_node_of_one, _signature_of, _history_of = attrgetter("node"), attrgetter("sig"), attrgetter("history")
_storage_of = attrgetter("storage")


class _Part:
    """What is computed on one device. `feeds` are the leaves and numbers that are others in each run."""

    def __init__(self, roots: list[Node], changed: Sequence[tuple[Node, Node]]) -> None:
        self.plan, self.nodes = plan_for(roots, changed)
        numbers = {id(node): number for number, node in enumerate(self.nodes)}
        self.roots = [numbers[id(root)] for root in roots]
        self.leaf_feeds: list[tuple[int, int]] = []
        self.number_feeds: list[tuple[int, int]] = []
        self.recorded: Recorded | None = None
        self.spare: list[list[Node]] = []  # copies of `nodes` that no run uses
        self.apart = picker([])
        self.places = {number: at for at, number in enumerate(self.plan.stored)}

    def feed(self, leaves: dict[int, int], numbers: dict[int, int], steady: Container[int]) -> None:
        """Note what is fed, and let go of the graph; the user's lines stay, for messages. `steady` are the
        leaves that seldom change.
        """
        kept = [Node(node.sig, (), node.storage, node.where) for node in self.nodes]
        for at, node in enumerate(self.nodes):
            if id(node) in leaves:
                self.leaf_feeds.append((at, leaves[id(node)]))
                kept[at].storage = None  # the first call's memory must not be held
            elif is_runtime(node.storage):
                self.number_feeds.append((at, numbers[id(node.storage)]))
        self.nodes = kept
        self.steady = [at for at, source in self.leaf_feeds if source in steady]
        leaf_sigs = [signature(LEAF, sig.shape, sig.dtype, sig.device) for sig in self._root_sigs()]
        self.made = [
            (sig, self.nodes[each].where, self.places[each])
            for sig, each in zip(leaf_sigs, self.roots, strict=True)
        ]
        self.nbytes = sum(sig.nbytes for sig in leaf_sigs)

    def _root_sigs(self) -> list[Signature]:
        return [self.nodes[each].sig for each in self.roots]

    def run(self, leaves: Sequence[Node], numbers: Sequence[Any], donated: frozenset[int]) -> list[Node]:
        """The roots, as leaves."""
        try:  # a list that is used again: to copy it is to touch every node of a graph
            nodes = self.spare.pop()
        except IndexError:
            nodes = self.nodes.copy()
        for at, source in self.leaf_feeds:
            nodes[at] = leaves[source]
        for at, source in self.number_feeds:
            nodes[at] = Node(nodes[at].sig, (), numbers[source], None)
        if self.recorded is None:  # the first run is an ordinary one, with every check
            found = submit(self.plan, nodes)
            self._record()
        else:
            free = (
                frozenset([at for at, source in self.leaf_feeds if source in donated]) if donated else donated
            )
            with stage("record"):
                found = self.recorded.run(nodes, free, self.apart(leaves))
            for at, _ in self.leaf_feeds:
                nodes[at] = self.nodes[at]
            self.spare.append(nodes)
        backlog.added(self.nbytes)
        return [Node(sig, (), found[place], where) for sig, where, place in self.made]

    def _record(self) -> None:
        """Go on with less to do: leaves that are given apart are fed no more."""
        self.recorded = recorded = self.plan.record(self.steady)
        sources = dict(self.leaf_feeds)
        self.apart = picker([sources.pop(at) for at in recorded.apart])
        self.leaf_feeds = [*sources.items()]


class Capture:
    """One captured call: what it computes, from which tensors and numbers, and what becomes of the results.

    Its leaves are those of the arguments, then those of the tensors that it changes or closes over.
    """

    def __init__(self, traced: Traced, given: Sequence[Tensor], was: Sequence[Node], names: Names) -> None:
        self.spec = traced.spec
        referred = [each for each in names if isinstance(each[1], ref)]
        self.referring, self.referred = [name for name, _ in referred], [then for _, then in referred]
        self.named = [name for name, then in names if not isinstance(then, ref)]
        self.values = [then for _, then in names if not isinstance(then, ref)]
        self.versions = [*traced.versioned]
        self.versioned = [each for names in traced.versioned.values() for each in names]
        self.seen: list[object] = []  # the versions at which those had the values they were captured with
        self.draws = [draw for draw, _ in traced.draws]
        # for the first run
        self.drawn = [plain(each) for _, numbers in traced.draws for each in numbers]
        leaves = [node for node in was if node.sig.op is LEAF]
        self.arguments = len(leaves)
        self.owners: list[list[ref[Any]]] = []  # of the leaves behind the arguments'
        self.changed: list[tuple[int, ref[Tensor] | None]] = []  # (leaf, its tensor if that is no argument)
        results = traced.results.copy()
        arguments = {id(tensor) for tensor in given}
        for reference, before, after in traced.changed:
            tensor = reference()
            if tensor is None or before.sig.op is not LEAF:
                continue  # it was made inside, or is a number: the caller's does not change
            if id(tensor) in arguments:
                self.changed.append((_place(before, leaves), None))
            else:
                self.changed.append((len(leaves), reference))
                self.owners.append([reference])
                leaves.append(before)
            results.append(after)
        self.slots = [(slot, node is not None) for slot, node in traced.slots]
        results += [node for _, node in traced.slots if node is not None]
        by_device = _by_device(results)
        changed = [(before, after) for _, before, after in traced.changed]
        self.parts = [_Part(each, changed) for each in by_device]
        self._close_over(leaves, results, traced.gradients)
        self.first = leaves[self.arguments :]
        self.sigs = [node.sig for node in self.first]
        self.marks = [_mark(node) for node in self.first]
        # each leaf's owner, where each has one and wants no gradient: most captures are asked by these alone
        single = all(len(each) == 1 for each in self.owners) and not any(self.marks)
        single = single and all(sig.op is LEAF for sig in self.sigs)
        self.only_owners = [owners[0] for owners in self.owners] if single else []
        places = {id(node): at for at, node in enumerate(leaves)}
        numbers = [node.storage for node in was if node.sig.op is not LEAF]
        numbers += [each for _, drawn in traced.draws for each in drawn]
        number_places = {id(each): at for at, each in enumerate(numbers)}
        loose = {at for at, _ in self.changed}
        steady = [at for at in range(self.arguments, len(leaves)) if at not in loose]
        for part in self.parts:
            part.feed(places, number_places, frozenset(steady))
        computed = {id(node): at for at, node in enumerate(node for each in by_device for node in each)}
        tables = (("computed", computed), ("leaf", places))
        self.results = [_origin(node, tables, number_places) for node in results]
        self.is_plain = self.results == [("computed", at) for at in range(len(self.results))]
        needed = {at for kind, at in self.results if kind == "leaf"}
        self.loose = [at for at, _ in self.changed if at not in needed]  # what may be donated
        self.loose_nodes = picker(self.loose)
        self.empty = traced.empty
        self.replaced = traced.replaced
        self.tracked = [at for at, node in enumerate(traced.results) if is_open(node)]
        self.closed_over = {id(each()) for owners in self.owners for each in owners}
        self.given = [id(base_of(each)) for each in given if each.node.sig.op is LEAF]
        self.views = self._views(traced.aliases)
        self.repeated = traced.repeated

    def _views(self, aliases: Sequence[Alias | None]) -> list[tuple[int, Alias]]:
        """The results that share elements with arguments, with tensors that were there, or each other."""
        counted = Counter(id(each) for alias in aliases for each in _ancestors(alias))
        self.there = {
            id(each): each
            for alias in aliases
            for each in _ancestors(alias)
            if any(tensor.alias is each for tensor in each.members.alive()) and id(each) not in self.given
        }
        return [
            (at, alias)
            for at, alias in enumerate(aliases)
            if alias is not None
            and any(
                counted[id(each)] > 1 or id(each) in self.there or id(each) in self.given
                for each in _ancestors(alias)
            )
        ]

    def _close_over(
        self, leaves: list[Node], results: Sequence[Node], gradients: dict[int, ref[GradientSlot]]
    ) -> None:
        """Find the tensors that hold the other leaves: what they hold at a call is what it uses.

        Gradients are found by their slots, since each call puts another tensor there.
        """
        known = {id(node): at for at, node in enumerate(leaves)}
        used = [*results, *leaves[self.arguments :], *(node for part in self.parts for node in part.nodes)]
        found = {id(node): node for node in used if node.sig.op is LEAF}
        for tensor in tensors_that_refer_to(found.values()):
            at = known.get(id(tensor.node))
            if at is None:
                at = known[id(tensor.node)] = len(leaves)
                leaves.append(tensor.node)
                self.owners.append([])
            if at >= self.arguments:
                owners = self.owners[at - self.arguments]
                owner: ref[Any] = gradients.get(id(tensor)) or ref(tensor)
                if not any(each() is owner() for each in owners):
                    owners.append(owner)

    def first_leaves(self, arguments: Sequence[Any]) -> list[Node]:
        """The leaves of the call that was captured."""
        found = [each.node for each in arguments if isinstance(each, Tensor)] + self.first
        self.first, self.are_computed = [], False
        return found

    def leaves(self, arguments: Sequence[Any]) -> list[Node] | None:
        """The leaves of a call; None where they are not what was captured."""
        try:
            if not self._names_are_still():
                return None
        except ReferenceError:  # what a watched value is of is gone
            return None
        found = [each.node for each in arguments if isinstance(each, Tensor)]
        self.are_computed = False
        if self.only_owners and (nodes := self._unchanged_nodes()):
            self.are_computed = all(node.sig.op is LEAF for node in found)
            return found + nodes
        for owners, sig, mark in zip(self.owners, self.sigs, self.marks, strict=True):
            node = _node_of(owners) if len(owners) > 1 else getattr(owners[0](), "node", None)
            if node is None or not (node.sig is sig or _is_alike(node.sig, sig)) or not _has(node, mark):
                return None
            found.append(node)
        if any((slot := each()) is None or slot.node is not None for each in self.empty):
            return None
        return found

    def _names_are_still(self) -> bool:
        """Whether names stand for what they stood for: most often the very same."""
        if not all(map(is_, map(call, self.named), self.values)):
            now = map(call, self.named)
            if not all(
                each is then or is_still(each, then) for each, then in zip(now, self.values, strict=True)
            ):
                return False
        if not all(map(is_, map(call, self.referring), map(call, self.referred))):
            return False
        versions = list(map(call, self.versions))  # before what they stand for, which may change meanwhile
        if len(versions) == len(self.seen) and all(map(is_, versions, self.seen)):
            return True
        if not all((now := get()) is then or is_still(now, then) for get, then in self.versioned):
            return False
        self.seen = versions
        return True

    def _unchanged_nodes(self) -> list[Node] | None:
        """The nodes of what it closes over, if they are as they were in every way; quicker than to look at
        each by itself.
        """
        try:
            nodes: list[Node] = list(map(_node_of_one, map(call, self.only_owners)))
            alike = all(map(is_, map(_signature_of, nodes), self.sigs)) and not any(map(_history_of, nodes))
        except AttributeError:  # a tensor is gone, or a slot is empty
            return None
        return nodes if alike and not self.empty else None

    def is_dead(self) -> bool:
        """Whether a tensor it needs is gone, so that it never fits again."""
        return any(all(each() is None for each in owners) for owners in self.owners)

    def run(self, arguments: Sequence[Any], leaves: list[Node]) -> Any:
        """The results of a call, after what it changes was changed."""
        numbers = [runtime_number(each) for each in arguments if not isinstance(each, Tensor)]
        numbers += self.drawn or [each for draw in self.draws for each in draw()]
        self.drawn = []
        for each in self.replaced:  # first, so that the new ones lie where the old ones did
            if (slot := each()) is not None:
                slot.grad = None
        if not self.are_computed and (waiting := [node for node in leaves if node.sig.op is not LEAF]):
            compute(waiting)
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        if not self.changed and not self.slots:
            found = [each for part in self.parts for each in part.run(leaves, numbers, frozenset())]
            return self._unflatten(self._nodes(found, leaves, numbers), tensors)
        self._refuse_both(tensors)
        # whoever takes the node of a tensor meanwhile waits, and finds its new storage
        with evaluation_lock():
            donated = self._free(leaves)
            with shield if donated else nullcontext():  # their tensors must not be left without storage
                found = [each for part in self.parts for each in part.run(leaves, numbers, donated)]
                nodes = self._nodes(found, leaves, numbers)
                last = len(nodes) - sum(is_left for _, is_left in self.slots)
                with shield:  # all of it, or nothing
                    self._change(tensors, leaves, nodes[:last], donated)
                    self._leave_gradients(iter(nodes[last:]))
        self._tell_views(tensors)
        return self._unflatten(nodes[: last - len(self.changed)], tensors)

    def _free(self, leaves: list[Node]) -> frozenset[int]:
        """Which leaves are donated: only their tensors hold them, and only they their storage."""
        nodes = self.loose_nodes(leaves)
        held = map(getrefcount, nodes), map(getrefcount, map(_storage_of, nodes))
        return frozenset(
            [
                at
                for at, of_node, of_storage in zip(self.loose, *held, strict=True)
                if of_node <= LISTED + 2 and of_storage <= LISTED  # a tensor, `leaves` and `nodes`
            ]
        )

    def _change(
        self,
        tensors: Sequence[Tensor],
        leaves: Sequence[Node],
        nodes: Sequence[Node],
        donated: frozenset[int],
    ) -> None:
        """Give the tensors that are changed their new values, the last of `nodes`."""
        changed = nodes[len(nodes) - len(self.changed) :]
        for (at, reference), node in zip(self.changed, changed, strict=True):
            if at in donated and node.sig is leaves[at].sig:
                leaves[at].storage = node.storage
                continue
            tensor = tensors[at] if reference is None else reference()
            if tensor is not None:
                history = tensor.node.history
                if isinstance(history, GradientSlot):  # a mark on a node is seen by all that hold it
                    node = Node(node.sig, (), node.storage, node.where)
                    node.history = history
                tensor.node = node

    def _tell_views(self, tensors: Sequence[Tensor]) -> None:
        """Give what shares elements with a changed tensor, and was not changed with it, its new values."""
        found = [tensors[at] if reference is None else reference() for at, reference in self.changed]
        shared = [
            each
            for each in found
            if each is not None and (alias := each.alias) is not None and len(alias.members) > 1
        ]
        if shared := [each for each in shared if shares_with(each)]:
            known = set(map(id, found))
            with grad_mode_set(False):
                for each in shared:
                    give(told(each, known))

    def _leave_gradients(self, nodes: Iterator[Node]) -> None:
        """Leave the gradients that the function left."""
        for reference, is_left in self.slots:
            gradient = Tensor(next(nodes)) if is_left else None
            slot = reference()
            if slot is not None:
                slot.grad = gradient

    def _unflatten(self, nodes: Sequence[Node], tensors: Sequence[Tensor]) -> Any:
        for at in self.tracked:
            if nodes[at].history is None:
                nodes[at].history = History(CAPTURED, ())
        made = [Tensor(node) for node in nodes]
        for at, first in self.repeated:
            made[at] = made[first]
        if self.views:
            known = self.there.copy()
            known.update(zip(self.given, map(base_of, tensors), strict=True))
            for at, alias in self.views:
                join(made[at], mirrored(alias, known))
        return unflatten(self.spec, iter(made))

    def _refuse_both(self, tensors: Sequence[Tensor]) -> None:
        """Refuse an argument that is closed over too, itself or a view of it, where either is changed: they
        were captured apart.
        """
        apart = [
            (each, other)
            for each in tensors
            for other in (each, *shares_with(each))
            if id(other) in self.closed_over
        ]
        if not apart:
            return
        changed = {
            id(tensors[at]) if reference is None else id(reference()) for at, reference in self.changed
        }
        if any(id(each) in changed or id(other) in changed for each, other in apart):
            raise CaptureError(
                "a tensor is passed to a captured function that also closes over it, or over a view of it, "
                "and it is changed in place: pass it, or close over it, but not both"
            )

    def _nodes(self, found: list[Node], leaves: list[Node], numbers: list[Any]) -> list[Node]:
        """The nodes of the results: computed, or a leaf or number as it came in."""
        if self.is_plain:
            return found
        nodes = []
        for kind, what in self.results:
            if kind == "computed":
                nodes.append(found[what])
            elif kind == "leaf":
                nodes.append(leaves[what])
            elif kind == "number":
                at, sig = what
                nodes.append(scalar(numbers[at], sig.dtype, sig.device))
            else:
                nodes.append(what)
        return nodes


def _ancestors(alias: Alias | None) -> Iterator[Alias]:
    """An alias, what it was made of, and so on."""
    while alias is not None:
        yield alias
        alias = alias.parent


def _node_of(owners: list[ref[Tensor]]) -> Node | None:
    """The node that several tensors share; None where they do not share one any more."""
    nodes = [tensor.node for tensor in (each() for each in owners) if tensor is not None]
    return nodes[0] if nodes and all(node is nodes[0] for node in nodes) else None


def _mark(node: Node) -> Any:
    """What gradients are wanted of a leaf, without holding it: none, those for a slot, or any."""
    history = node.history
    return ref(history) if isinstance(history, GradientSlot) else None if history is None else True


def _has(node: Node, mark: Any) -> bool:
    """Whether the same are wanted."""
    history = node.history
    if history is None or mark is None:
        return history is mark
    return isinstance(history, History) if mark is True else history is mark()


def _is_alike(new: Signature, old: Signature) -> bool:
    return new.shape == old.shape and new.dtype is old.dtype and new.device is old.device


def _place(node: Node, nodes: list[Node]) -> int:
    return next(at for at, each in enumerate(nodes) if each is node)


def _by_device(results: list[Node]) -> list[list[Node]]:
    """What is to be computed, each once."""
    devices: dict[Any, dict[int, Node]] = {}
    for node in results:
        if node.storage is None:
            devices.setdefault(node.sig.device, {})[id(node)] = node
    return [list(each.values()) for each in devices.values()]


def _origin(
    node: Node, tables: Sequence[tuple[str, dict[int, int]]], numbers: dict[int, int]
) -> tuple[str, Any]:
    """Where a result comes from."""
    for kind, table in tables:
        if id(node) in table:
            return kind, table[id(node)]
    if id(node.storage) in numbers:
        return "number", (numbers[id(node.storage)], node.sig)
    return "constant", node


# Numbers


def runtime_number(value: Any) -> Any:
    """A run-time number as its dtype holds it: floats that are too large for float32 are infinite."""
    if isinstance(value, float):
        return math.copysign(math.inf, value) if abs(value) >= _INFINITE else value
    if not -(1 << 31) <= value < 1 << 31:
        raise ArgumentError(
            f"the number {value} does not fit int32, which captured functions take whole numbers as; pass a "
            "tensor, or name the argument in webgrad.jit(..., static=...)"
        )
    return value


_INFINITE = 2.0**128 - 2.0**103  # what lies nearer to the largest float32 is rounded to that
