"""Views: tensors that share elements, and what a write to one of them does to the others.

In: a tensor that gets another node. Out: the new nodes of all tensors that share elements with it. The
invariant: nodes never change; only tensors share elements. A view keeps the moves that made it, and its base
keeps weak references to its views; without writes that is all. Only a write finds out which tensors share
elements, by PyTorch's rules: every computed tensor is contiguous, and a reshape shares where strides allow.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple
from weakref import ref

from .. import dtypes
from ..errors import ShapeError
from ..gradients.history import grad_mode, grad_mode_set
from ..graph.node import Node, scalar
from ..graph.op import SCALAR
from . import primitives
from .moves import (
    BACK,
    OFFSETS,
    REPEATS,
    SHAPES,
    STRIDES,
    Move,
    Shape,
    as_numbers,
    as_parts,
    contiguous,
    diagonal,
    is_dense,
    one_part,
    strided,
    windows,
)
from .primitives import elementwise
from .table import TABLE


class Alias(NamedTuple):
    """How a tensor was made from the one that it shares elements with; compared by identity.

    The kind says whether it shares: a "view" always shares, "reshape" and "contiguous" where no copy is
    needed, "strict" must share, and "detach" shares values, but no gradients. A "base" has no parent.
    """

    parent: Alias | None
    kind: str
    moves: tuple[Move, ...]
    shape: Shape
    members: Members


class Members(list["ref[Any]"]):
    """The tensors that may share elements, by weak references: a view keeps no other tensor alive."""

    __slots__ = ()
    _lock = threading.Lock()

    def alive(self) -> list[Any]:
        """The tensors that are alive; dead references are dropped."""
        with self._lock:
            count = len(self)  # other threads may append behind these
            found = [(each, each()) for each in self[:count]]
            self[:count] = [each for each, tensor in found if tensor is not None]
        return [tensor for _, tensor in found if tensor is not None]


def share(base: Any, tensor: Any, kind: str, moves: tuple[Move, ...]) -> None:
    """Record that a tensor was made from `base` by moves."""
    alias = base.alias or base_of(base)
    members = alias.members
    tensor.alias = _new(Alias, (alias, kind, moves, tensor.node.sig.shape, members))
    members.append(ref(tensor))
    if not len(members) % _TIDIED:
        members.alive()


_new = tuple.__new__  # every movement makes an alias: this takes a third of the time of Alias(…)
_TIDIED = 64  # when that many members were added, dead ones are dropped


def base_of(tensor: Any) -> Alias:
    """The alias of a tensor; a new one if it has none yet."""
    alias: Alias | None = tensor.alias
    if alias is None:
        members = Members((ref(tensor),))
        alias = tensor.alias = _new(Alias, (None, "base", (), tensor.node.sig.shape, members))
    return alias


def shares_with(tensor: Any) -> list[Any]:
    """The other living tensors that may share elements with this one."""
    alias = tensor.alias
    if alias is None or len(alias.members) == 1:  # which is the tensor itself
        return []
    return [each for each in alias.members.alive() if each is not tensor]


def mirrored(alias: Alias, known: dict[int, Alias]) -> Alias:
    """A copy of an alias over other parents: `known` maps aliases, by identity, to new ones, and grows."""
    line = [alias]
    while id(line[-1]) not in known and line[-1].parent is not None:
        line.append(line[-1].parent)
    for each in reversed(line):
        if id(each) not in known:
            parent = None if each.parent is None else known[id(each.parent)]
            members = Members() if parent is None else parent.members
            known[id(each)] = Alias(parent, each.kind, each.moves, each.shape, members)
    return known[id(alias)]


def join(tensor: Any, alias: Alias) -> None:
    """Give a tensor an alias."""
    tensor.alias = alias
    alias.members.append(ref(tensor))


def relation(aliases: Sequence[Alias | None]) -> tuple[Any, ...]:
    """How tensors share elements with each other, as a tuple to compare; empty where none may share any."""
    sets = [id(each.members) for each in aliases if each is not None]
    if len(set(sets)) == len(sets):
        return ()
    several = Counter(sets)
    numbers: dict[int, int] = {}
    found: list[Any] = []
    for alias in aliases:
        line, each = [], alias if alias is not None and several[id(alias.members)] > 1 else None
        while each is not None:
            number = numbers.setdefault(id(each), len(numbers))
            line.append((number, each.kind, each.moves, each.shape))
            each = each.parent
        found.append(tuple(line))
    return tuple(found)


# The layout of a tensor in the memory that it shares


class _Moved(NamedTuple):
    """A move, and the shape before it."""

    move: Callable[[Node, Any], Node]
    argument: Any
    shape: Shape


class _Place(NamedTuple):
    """The layout of a tensor in the tensor that owns its elements."""

    owner: Alias  # the tensor that is not a view
    tape: Alias  # the owner, or the last "detach" on the way: gradients go no further
    moves: list[_Moved]  # from the owner
    since: int  # how many of these come before the tape
    strides: tuple[int, ...]


def _place(alias: Alias) -> _Place:
    """Follow the moves from the owner on."""
    line = [alias]
    while line[-1].parent is not None:
        line.append(line[-1].parent)
    owner = tape = line[-1]
    moves: list[_Moved] = []
    since, strides = 0, contiguous(owner.shape)
    shape = owner.shape
    for each in reversed(line[:-1]):
        found = None if each.kind == "contiguous" and not is_dense(shape, strides) else strides
        if each.kind == "detach":
            tape, since = each, len(moves)
        for move, argument in each.moves if found is not None else ():
            found = STRIDES[move](shape, found, argument)
            if found is None:
                break
            moves.append(_Moved(move, argument, shape))
            shape = SHAPES[move](shape, argument)
        if found is None:
            if each.kind == "strict":
                raise ShapeError(
                    f"view: a tensor of shape {shape} whose axes were permuted or cut has no view of shape "
                    f"{each.shape} that shares its elements, and a write to one would be lost: use reshape, "
                    "which copies here, or write to the tensor itself"
                )
            owner = tape = each  # a copy
            moves, since, found = [], 0, contiguous(each.shape)
        shape, strides = each.shape, found
    return _Place(owner, tape, moves, since, strides)


class Layout(NamedTuple):
    """Where a tensor's elements lie: which memory, the place of the first one, and the steps of the axes."""

    memory: int
    offset: int
    strides: tuple[int, ...]


def layout(tensor: Any) -> Layout:
    """How a tensor shares elements: by an owner's identity, an offset in it, and strides, in elements."""
    place = _place(tensor.alias or base_of(tensor))
    offset, strides = 0, contiguous(place.owner.shape)
    for move, argument, shape in place.moves:
        if move in OFFSETS:
            offset = OFFSETS[move](shape, strides, argument, offset)
        strides = STRIDES[move](shape, strides, argument)  # type: ignore[assignment]  # a view has them
    return Layout(id(place.owner), offset, place.strides)


# Writing


class Change(NamedTuple):
    """A tensor that gets another node; it `keeps` its history where no gradient goes through the write."""

    tensor: Any
    node: Node
    keeps: bool


def changes(tensor: Any, node: Node) -> list[Change]:
    """All that changes when a tensor gets another node: the tensor, and those that share elements with it."""
    own = Change(tensor, node, not grad_mode.on)
    alias = tensor.alias
    if alias is None:
        return [own]
    others = shares_with(tensor)
    if alias.parent is None and not others:
        return [own]
    place = _place(alias)
    repeat = _repeat(place)
    if repeat is not None:
        raise ShapeError(
            f"a write to a view of shape {tensor.shape} of an expanded tensor: it repeats the elements of "
            f"{repeat.shape} to {SHAPES[repeat.move](repeat.shape, repeat.argument)}, so that one element "
            "would get several values. Write to the tensor before it is expanded, or to a copy, x.clone()"
        )
    return [own, *_pushed(node, place, others)]


def told(tensor: Any, known: Container[int]) -> list[Change]:
    """The changes of others when a tensor has its new node already, except the `known`, by identity."""
    others = [each for each in shares_with(tensor) if id(each) not in known]
    if not others or _repeat(place := _place(tensor.alias)) is not None:
        return []  # an expanded view was changed together with its base
    return list(_pushed(tensor.node, place, others))


def _repeat(place: _Place) -> _Moved | None:
    """The move that repeats elements between the owner and a tensor, if any."""
    return next(
        (
            each
            for each in place.moves
            if each.move in REPEATS and REPEATS[each.move](each.argument, each.shape)
        ),
        None,
    )


def _pushed(node: Node, place: _Place, others: Sequence[Any]) -> Iterator[Change]:
    """The changes of the others, tape by tape: across a detach, histories stay as they are."""
    sharing = [(each, there) for each in others if (there := _place(each.alias)).owner is place.owner]
    tapes = {id(there.tape): there.tape for _, there in sharing}
    by_parts = any(
        each.move in _PARTS for there in (place, *(at for _, at in sharing)) for each in there.moves
    )
    for tape in tapes.values():
        keeps = tape is not place.tape or not grad_mode.on
        with grad_mode_set(False) if keeps else nullcontext():
            value, mask = _put_back(node, place.moves, by_parts)
            head = node if tape is place.tape and len(place.moves) == place.since else None
            there_too = [pair for pair in sharing if pair[1].tape is tape]
            # First the tensor at the start of the tape: the others are views of its new node.
            for each, there in sorted(there_too, key=lambda pair: len(pair[1].moves) > pair[1].since):
                if head is not None:
                    found = _applied(head, there.moves[there.since :])
                else:
                    found = _chosen(value, mask, there.moves, each.node)
                    if len(there.moves) == there.since and each.alias is tape:
                        head = found
                yield Change(each, found, keeps)


def _put_back(node: Node, moves: Sequence[_Moved], by_parts: bool) -> tuple[Node, Node | None]:
    """Elements at their indices in the owner, and a mask of them (None: all)."""
    number = None if by_parts else _constant(node)
    value, mask = node, None
    for move, argument, shape in reversed(moves):
        back = BACK[move]
        if mask is None and not _is_whole(move, argument, shape):
            mask = _marks(node if by_parts else None, node.sig.device, SHAPES[move](shape, argument))
        if mask is not None:
            mask = back(mask, argument, shape)
        if number is None:
            value = back(value, argument, shape)
    return (value if number is None else number), mask


def _constant(node: Node) -> Node | None:
    """The scalar that a node repeats, if it is an expanded scalar."""
    inputs = node.inputs
    is_one = bool(inputs) and node.sig.op is _EXPAND and inputs[0].sig.op is SCALAR and node.history is None
    return inputs[0] if is_one else None


def _is_whole(move: Any, ranges: Any, shape: Shape) -> bool:
    """Whether a move takes all elements."""
    if move is primitives.slice_:
        return all(each == (0, size, 1) for each, size in zip(ranges, shape, strict=True))
    return move not in (diagonal, one_part, windows, strided)


def _marks(numbers: Node | None, device: Any, shape: Shape) -> Node:
    """True for every element; where parts of complex numbers are written, 1 for every part."""
    if numbers is None:
        return primitives.expand(scalar(True, dtypes.bool, device), shape)
    one = 1 + 1j if numbers.sig.dtype.kind == "c" else 1
    return primitives.expand(primitives.constant("write", one, numbers.sig.dtype, device), shape)


def _applied(node: Node, moves: Sequence[_Moved]) -> Node:
    for move, argument, _ in moves:
        node = move(node, argument)
    return node


def _chosen(value: Node, mask: Node | None, moves: Sequence[_Moved], old: Node) -> Node:
    """A tensor's elements: new where they were written, else old."""
    new = value if value.sig.op is SCALAR else _applied(value, moves)
    if mask is None:
        return primitives.expand(new, old.sig.shape)
    marks = _applied(mask, moves)
    if marks.sig.dtype.kind == "c":
        pairs = [primitives.as_real(each) for each in (marks, new, old)]
        return primitives.as_complex(_chosen_parts(*pairs))
    return _chosen_parts(marks, new, old)


def _chosen_parts(marks: Node, new: Node, old: Node) -> Node:
    if marks.sig.dtype.kind != "b":
        marks = elementwise(_NOT_EQUAL, marks, 0)
    return primitives.choose(marks, new, old)


_EXPAND, _NOT_EQUAL = TABLE["expand"], TABLE["not_equal"]
_PARTS = (as_parts, as_numbers, one_part)
