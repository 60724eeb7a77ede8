"""jit: a call's commands are captured once and replayed for new inputs of the same shapes.

In: a function of tensors. Out: a function that runs its Python code only when shapes, dtypes or static
arguments are new. The invariant: what a tensor holds at the call is what is used, be it an argument or one
that the function closes over, and what the function changes in place is changed at every call.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload
from weakref import ref

from . import dtypes
from .closures import Names, device_of, is_still, names_of, store_numbers, tensors_that_refer_to
from .errors import ArgumentError, CaptureError
from .evaluate import Recorded, compute, compute_waiting, plan_for, submit, values_still
from .graph.history import CAPTURED, History, recording
from .graph.node import Node, Signature, leaf, scalar, signature
from .graph.op import LEAF
from .graph.slots import GradientSlot
from .graph.trace import (
    Draw,
    RuntimeFloat,
    RuntimeInt,
    Trace,
    current_trace,
    is_runtime,
    one_at_a_time,
    tracing,
)
from .kept import refuse_fixed, refuse_frozen, refuse_kept
from .nested import Nesting, objects_of, put_together, taken_apart
from .runtime.shield import shield
from .tensor import Tensor
from .tuning import is_on

__all__ = ["jit"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
CAPTURES = 64  # kept of one function, for different arguments; the least used go first
VARIANTS = 4  # for the same arguments: a model in training or not, gradients there or not


# A capture


class _Part:
    """What is computed on one device. `feeds` are the leaves and numbers that are others in each run."""

    def __init__(self, roots: list[Node], replaced: Sequence[tuple[Node, Node]]) -> None:
        self.plan, self.nodes = plan_for(roots, replaced)
        numbers = {id(node): number for number, node in enumerate(self.nodes)}
        self.roots = [numbers[id(root)] for root in roots]
        self.leaf_feeds: list[tuple[int, int]] = []
        self.number_feeds: list[tuple[int, int]] = []
        self.recorded: Recorded | None = None
        self.places = {number: at for at, number in enumerate(self.plan.stored)}

    def feed(self, leaves: dict[int, int], numbers: dict[int, int]) -> None:
        """Note what is fed, and let go of the graph; the user's lines stay, for messages."""
        kept = [Node(node.sig, (), node.storage, node.where) for node in self.nodes]
        for at, node in enumerate(self.nodes):
            if id(node) in leaves:
                self.leaf_feeds.append((at, leaves[id(node)]))
                kept[at].storage = None  # the first call's memory must not be held
            elif is_runtime(node.storage):
                self.number_feeds.append((at, numbers[id(node.storage)]))
        self.nodes = kept

    def run(self, leaves: Sequence[Node], numbers: Sequence[Any], donated: frozenset[int]) -> list[Node]:
        """The roots, as leaves."""
        nodes = self.nodes.copy()
        for at, source in self.leaf_feeds:
            nodes[at] = leaves[source]
        for at, source in self.number_feeds:
            nodes[at] = Node(nodes[at].sig, (), numbers[source], None)
        if self.recorded is None:  # the first run is an ordinary one, with every check
            found = submit(self.plan, nodes)
            self.recorded = self.plan.record()
        else:
            free = frozenset(at for at, source in self.leaf_feeds if source in donated)
            found = self.recorded.run(nodes, free)
        made = []
        for each in self.roots:
            sig = nodes[each].sig
            made.append(leaf(found[self.places[each]], sig.shape, sig.dtype, sig.device))
        return made


class _Capture:
    """One captured call: what it computes, from which tensors and numbers, and what becomes of the results.

    Its leaves are those of the arguments, then those of the tensors that it changes or closes over.
    """

    def __init__(self, traced: _Traced, given: Sequence[Tensor], was: Sequence[Node], names: Names) -> None:
        self.shape = traced.shape
        self.names = names
        self.draws = [draw for draw, _ in traced.draws]
        # for the first run
        self.drawn = [_plain(each) for _, numbers in traced.draws for each in numbers]
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
        replaced = [(after, before) for _, before, after in traced.changed]
        self.parts = [_Part(each, replaced) for each in by_device]
        self._close_over(leaves, results, traced.gradients)
        self.first = leaves[self.arguments :]
        self.sigs = [node.sig for node in self.first]
        self.marks = [_mark(node) for node in self.first]
        places = {id(node): at for at, node in enumerate(leaves)}
        numbers = [node.storage for node in was if node.sig.op is not LEAF]
        numbers += [each for _, drawn in traced.draws for each in drawn]
        number_places = {id(each): at for at, each in enumerate(numbers)}
        for part in self.parts:
            part.feed(places, number_places)
        computed = {id(node): at for at, node in enumerate(node for each in by_device for node in each)}
        tables = (("computed", computed), ("leaf", places))
        self.results = [_origin(node, tables, number_places) for node in results]
        self.needed = {at for kind, at in self.results if kind == "leaf"}
        self.empty = traced.empty
        self.replaced = traced.replaced
        self.tracked = [at for at, node in enumerate(traced.results) if _is_open(node)]

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

    def first_leaves(self, ends: Sequence[Any]) -> list[Node]:
        """The leaves of the call that was captured."""
        found = [each.node for each in ends if isinstance(each, Tensor)] + self.first
        self.first = []
        return found

    def leaves(self, ends: Sequence[Any]) -> list[Node] | None:
        """The leaves of a call; None where they are not what was captured."""
        for name, then in self.names:
            now = name()
            if now is not then and not is_still(now, then):
                return None
        found = [each.node for each in ends if isinstance(each, Tensor)]
        for owners, sig, mark in zip(self.owners, self.sigs, self.marks, strict=True):
            node = _node_of(owners) if len(owners) > 1 else getattr(owners[0](), "node", None)
            if node is None or not (node.sig is sig or _is_alike(node.sig, sig)) or not _has(node, mark):
                return None
            found.append(node)
        if any((slot := each()) is None or slot.node is not None for each in self.empty):
            return None
        return found

    def is_dead(self) -> bool:
        """Whether a tensor it needs is gone, so that it never fits again."""
        return any(all(each() is None for each in owners) for owners in self.owners)

    def run(self, ends: Sequence[Any], leaves: list[Node]) -> Any:
        """The results of a call, after what it changes was changed."""
        numbers = [_fitted(each) for each in ends if not isinstance(each, Tensor)]
        numbers += self.drawn or [each for draw in self.draws for each in draw()]
        self.drawn = []
        for each in self.replaced:  # first, so that the new ones lie where the old ones did
            if (slot := each()) is not None:
                slot.grad = None
        compute([node for node in leaves if node.sig.op is not LEAF])
        if not self.changed and not self.slots:
            found = [each for part in self.parts for each in part.run(leaves, numbers, frozenset())]
            return self._put_together(self._nodes(found, leaves, numbers))
        tensors = [each for each in ends if isinstance(each, Tensor)]
        if len(set(map(id, leaves))) < len(leaves):
            self._refuse_both(tensors)
        with values_still():  # whoever takes the node of a tensor meanwhile waits, and finds its new storage
            donated = frozenset(
                at for at, _ in self.changed if at not in self.needed and _is_free(leaves, at)
            )
            with shield if donated else nullcontext():  # their tensors must not be left without storage
                found = [each for part in self.parts for each in part.run(leaves, numbers, donated)]
                nodes = self._nodes(found, leaves, numbers)
                last = len(nodes) - sum(is_left for _, is_left in self.slots)
                with shield:  # all of it, or nothing
                    self._change(tensors, leaves, nodes[:last], donated)
                    self._leave_gradients(iter(nodes[last:]))
        return self._put_together(nodes[: last - len(self.changed)])

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
            tensor = tensors[at] if reference is None else reference()
            if at in donated and node.sig is leaves[at].sig:
                leaves[at].storage = node.storage
            elif tensor is not None:
                history = tensor.node.history
                if isinstance(history, GradientSlot):  # a mark on a node is seen by all that hold it
                    node = Node(node.sig, (), node.storage, None)
                    node.history = history
                tensor.node = node

    def _leave_gradients(self, nodes: Iterator[Node]) -> None:
        """Leave the gradients that the function left."""
        for reference, is_left in self.slots:
            gradient = Tensor(next(nodes)) if is_left else None
            slot = reference()
            if slot is not None:
                slot.grad = gradient

    def _put_together(self, nodes: Sequence[Node]) -> Any:
        for at in self.tracked:
            if nodes[at].history is None:
                nodes[at].history = History(CAPTURED, ())
        return put_together(self.shape, iter([Tensor(node) for node in nodes]))

    def _refuse_both(self, tensors: Sequence[Tensor]) -> None:
        """Refuse an argument that is closed over too, where either is changed: they were captured apart."""
        ours = {id(each()) for owners in self.owners for each in owners}
        changed = {
            id(tensors[at]) if reference is None else id(reference()) for at, reference in self.changed
        }
        if any(id(each) in ours and id(each) in changed for each in tensors):
            raise CaptureError(
                "a tensor is passed to a captured function that also closes over it, and it is changed in "
                "place: pass it, or close over it, but not both"
            )

    def _nodes(self, found: list[Node], leaves: list[Node], numbers: list[Any]) -> list[Node]:
        """The nodes of the results: computed, or a leaf or number as it came in."""
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


class _Traced(NamedTuple):
    """What a function did: the shape and nodes of its result, what it changed (tensor, before, after)."""

    shape: Nesting
    results: list[Node]
    changed: list[tuple[ref[Tensor], Node, Node]]
    draws: list[tuple[Draw, list[RuntimeFloat | RuntimeInt]]]
    slots: list[tuple[ref[GradientSlot], Node | None]]  # the gradients it leaves
    gradients: dict[int, ref[GradientSlot]]  # those there were, by the identity of their tensors
    empty: list[ref[GradientSlot]]  # those that must not be there
    replaced: list[ref[GradientSlot]]  # those that it does not look at, and replaces
    watched: Names


def _traced(function: Callable[[], Any], was: Sequence[Node]) -> _Traced:
    """Run a function under a trace. Of what it made nothing but nodes stays: who holds a tensor afterwards
    is somebody else. `was` are the nodes of its arguments.
    """
    trace = Trace()
    try:
        with tracing(trace):
            result = function()
        ends: list[Tensor] = []
        shape = taken_apart(result, ends, numbers=False)
        refuse_fixed(shape, trace)
        del result
        slots = _left_gradients(trace, was)
        _drop_histories([each.node for each in ends])
        refuse_kept(trace, was, ends)
        refuse_frozen(trace, was)
        changed = [
            (reference, before, tensor.node)
            for reference, before in trace.changed.values()
            if (tensor := reference()) is not None and not before.inputs  # else it was made inside
        ]
        read = [
            (ref(slot), gradient)
            for slot, gradient, matters in trace.slots.values()
            if matters and not slot.is_inner
        ]
        gradients = {id(gradient): slot for slot, gradient in read if gradient is not None}
        empty = [slot for slot, gradient in read if gradient is None]
        unread = {id(slot) for slot, _, matters in trace.slots.values() if not matters}
        replaced = [slot for slot, _ in slots if id(slot()) in unread]
        results = [each.node for each in ends]
        return _Traced(shape, results, changed, trace.draws, slots, gradients, empty, replaced, trace.watched)
    finally:
        trace.undo()


def _left_gradients(trace: Trace, was: Sequence[Node]) -> list[tuple[ref[GradientSlot], Node | None]]:
    """The gradients that a function left, as nodes; the slots get back what they had.

    Slots of tensors that it made itself are gone with those.
    """
    found: list[tuple[ref[GradientSlot], Node | None]] = []
    for slot, before, _ in trace.slots.values():
        if any(node.history is slot for node in was) and slot.node is not None:
            raise CaptureError(
                "backward() inside of a captured function to a tensor that was passed to it: the gradient "
                "would be a stand-in's. Close over the tensor, as over a model, or use webgrad.grad"
            )
        after = slot._grad
        if after is before and before is not None and id(before) in trace.changed:
            node = after.node
            after.node = trace.changed.pop(id(before))[1]
            found.append((ref(slot), node))
        elif after is not before and not slot.is_inner:
            found.append((ref(slot), None if after is None else after.node))
        slot._grad = before
    return found


def _drop_histories(results: Sequence[Node]) -> None:
    """Let go of how results came about, and so of the tensors that functions with own gradients hold."""
    ends = [node for node in results if node.inputs and _is_open(node)]
    stack, seen = list(results), set()
    while stack:
        node = stack.pop()
        if node.inputs and id(node) not in seen:
            seen.add(id(node))
            stack += node.inputs
            if isinstance(node.history, History):
                node.history = None
    for node in ends:
        node.history = History(CAPTURED, ())


def _is_open(node: Node) -> bool:
    """Whether a gradient could be asked for."""
    return isinstance(node.history, History) and node.history.sig is not None


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


def _is_free(leaves: list[Node], at: int) -> bool:
    """Whether only its tensor and this list hold a leaf, and only the leaf its storage."""
    return sys.getrefcount(leaves[at]) <= _LEAF_HOLDERS and sys.getrefcount(leaves[at].storage) <= 2


_LEAF_HOLDERS = 3  # the tensor, the list, and the argument of getrefcount


# The function


class Jit:
    """A function with its captures. Made by `jit`."""

    def __init__(self, function: Callable[..., Any], static: Sequence[str | int]) -> None:
        self.function = function
        self._static = _static_places(function, static)
        self._captures: OrderedDict[Any, list[_Capture]] = OrderedDict()
        self._lock = threading.RLock()
        functools.update_wrapper(self, function, updated=())  # a callable's attributes are its own

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"<jit of {name}: {self.captures} captured>"

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def captures(self) -> int:
        """How many calls are captured: one for each combination of shapes, dtypes and static arguments."""
        return sum(map(len, self._captures.values()))

    def clear(self) -> None:
        """Forget what was captured."""
        with self._lock:
            self._captures.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:  # inside of another captured function: part of that
            return self.function(*args, **kwargs)
        ends: list[Any] = []
        shapes = [self._shape(at, each, ends) for at, each in enumerate(args)]
        named = [(name, self._shape(name, each, ends)) for name, each in kwargs.items()]
        # Kernels chosen by measuring are others; so is what a function does to one tensor under two names.
        key = (tuple(shapes), tuple(named), _repeats(ends), is_on(), recording.on and _asking(ends))
        with self._lock:
            variants = self._captures.setdefault(key, [])
            self._captures.move_to_end(key)
            for capture in variants:
                leaves = capture.leaves(ends)
                if leaves is not None:
                    break
            else:
                with one_at_a_time:
                    capture = self._capture(shapes, named, ends)
                leaves = capture.first_leaves(ends)
                alive = [each for each in variants if not each.is_dead()]
                variants[:] = [capture, *alive[: VARIANTS - 1]]
                if len(self._captures) > CAPTURES:
                    self._captures.popitem(last=False)
            return capture.run(ends, leaves)

    def _shape(self, place: int | str, value: Any, ends: list[Any]) -> Nesting:
        if place not in self._static:
            return taken_apart(value, ends, numbers=True)
        try:
            hash(value)
        except TypeError:
            raise ArgumentError(
                f"{self!r}: the static argument {place!r} is a {type(value).__name__}, which cannot "
                "be compared with other calls'; pass something hashable, such as a tuple"
            ) from None
        return Nesting("static", (type(value), value))

    def _capture(self, shapes: list[Nesting], named: list[tuple[str, Nesting]], ends: list[Any]) -> _Capture:
        """Run the function over stand-ins for its tensors and numbers, and keep what it would compute."""
        compute_waiting()
        store_numbers()
        compute([each.node for each in ends if isinstance(each, Tensor)])
        device = device_of(self.function, [*ends, *(each for shape in shapes for each in objects_of(shape))])
        made = {id(each): _stand_in(each, device) for each in ends if isinstance(each, Tensor)}
        given = [made[id(each)] if isinstance(each, Tensor) else _stand_in(each, device) for each in ends]
        was = [each.node for each in given]
        places = iter(given)
        args = [put_together(each, places) for each in shapes]
        kwargs = {name: put_together(each, places) for name, each in named}
        names = names_of(self.function)
        traced = _traced(lambda: self.function(*args, **kwargs), was)
        unchanged = [each for each in names if is_still(each[0](), each[1])]  # not those it gives to others
        return _Capture(traced, given, was, [*unchanged, *traced.watched])


def _repeats(ends: Sequence[Any]) -> tuple[int, ...]:
    """For each tensor the first place it is in; nothing where all are different."""
    tensors = [id(each) for each in ends if isinstance(each, Tensor)]
    return tuple(map(tensors.index, tensors)) if len(set(tensors)) < len(tensors) else ()


def _asking(ends: Sequence[Any]) -> tuple[int, ...]:
    """The places of tensors that require gradients."""
    return tuple(
        [at for at, each in enumerate(ends) if isinstance(each, Tensor) and each.node.history is not None]
    )


def _stand_in(value: Any, device: Any) -> Tensor:
    """A tensor of its own for an argument, so that two arguments are never taken for one."""
    if isinstance(value, Tensor):
        sig = value.node.sig
        node = Node(signature(LEAF, sig.shape, sig.dtype, sig.device), (), value.node.storage, None)
        made = Tensor(node)
        if value.requires_grad:
            node.history = GradientSlot(made)
        return made
    value = _fitted(value)
    if isinstance(value, float):
        return Tensor(scalar(RuntimeFloat(value), dtypes.float32, device))
    return Tensor(scalar(RuntimeInt(value), dtypes.int32, device))


def _fitted(value: Any) -> Any:
    """A run-time number as its dtype holds it: floats that are too large for float32 are infinite."""
    if isinstance(value, float):
        return math.copysign(math.inf, value) if abs(value) >= _INFINITE else value
    if not -(1 << 31) <= value < 1 << 31:
        raise ArgumentError(
            f"the number {value} does not fit int32, which captured functions take whole numbers as; pass a "
            "tensor, or name the argument in webgrad.jit(..., static=...)"
        )
    return value


def _plain(number: RuntimeFloat | RuntimeInt) -> float | int:
    return float(number) if isinstance(number, float) else int(number)


_INFINITE = 2.0**128 - 2.0**103  # what lies nearer to the largest float32 is rounded to that


def _static_places(function: Callable[..., Any], static: Sequence[str | int]) -> frozenset[int | str]:
    """Static arguments by place and by name."""
    if isinstance(static, str | int):
        static = (static,)
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    places: set[int | str] = set()
    for each in static:
        if isinstance(each, int) and 0 <= each < len(names):
            places |= {each, names[each]}
        elif each in names:
            places |= {each, names.index(str(each))}
        else:
            raise ArgumentError(
                f"jit: {each!r} is no argument of the function; it has {', '.join(names) or 'none'}"
            )
    return frozenset(places)


@overload
def jit(
    function: Callable[Arguments, Result], *, static: Sequence[str | int] = ()
) -> Callable[Arguments, Result]: ...
@overload
def jit(
    *, static: Sequence[str | int] = ()
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]: ...
def jit(function: Any = None, *, static: Sequence[str | int] = ()) -> Any:
    """A function whose commands are captured at its first call, and replayed for inputs of the same shapes.

    Its Python code runs only when the shapes, dtypes or devices of its tensors, or what is neither tensor nor
    number, are new. Then nothing is built or scheduled any more: a call fills in its inputs and submits.

    - Tensors among the arguments, in lists, tuples and dicts too, and tensors the function closes over, may
      hold other values at each call.
    - Numbers are run-time numbers: inside they are tensors of no dimensions (float32 or int32), so that a
      learning rate or a position may change without a new capture. `static` names arguments, or their places,
      that Python code needs as they are (a count of steps, say); each value of these is captured on its own.
    - What it changes in place (`x += …`, `x[i] = …`) is changed at every call, whether that is an argument or
      a cache or parameter it closes over. Other effects of its Python code, such as print, happen only when
      it is captured; a tensor that it keeps elsewhere (`self.state = x + 1`) is an error.
    - A number or tensor that its code names, but that is no argument, is the one of that name at each call;
      another number, which is part of the capture, means capturing anew. What lies deeper, a number in
      `self.rate`, is the one it was when captured: give tensors there new values in place (`w[...] = …`).
    - Random numbers are drawn anew at every call.
    - Reading a value inside (`if x > 0`, `x.numpy()`, `float(x)`) is an error: there is none yet.

    >>> @wg.jit
    ... def step(x, rate):
    ...     return x - rate * x.mean()
    >>> step(wg.asarray([1.0, 3.0]), 0.5).tolist()
    [0.0, 2.0]
    >>> step(wg.asarray([2.0, 6.0]), 0.25).tolist()
    [1.0, 5.0]
    """
    if function is None:
        return functools.partial(jit, static=static)
    if not callable(function):
        raise ArgumentError(f"jit takes a function, not a {type(function).__name__}")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ArgumentError(
            f"jit: {function.__name__} is a coroutine or a generator, whose code runs bit by bit after the "
            "call: take what computes out of it, as a plain function that returns tensors"
        )
    return Jit(function, static)
