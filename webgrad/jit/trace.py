"""A function run over placeholders: what it computes, changes, draws, leaves and depends on, as nodes.

In: a function without arguments, and the nodes of its placeholders. Out: a `Traced`. The invariant:
afterwards every tensor and every slot has what it had, and nothing but nodes is left of what was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import ref

from ..errors import CaptureError
from ..gradients.history import CAPTURED, History
from ..gradients.slots import GradientSlot
from ..graph.node import Node
from ..graph.trace import Draw, NoteCall, RuntimeFloat, RuntimeInt, Trace, tracing
from ..ops.views import Alias
from ..tensor import Tensor
from .closures import Names
from .escapes import refuse_fixed, refuse_frozen, refuse_kept
from .pytree import TreeSpec, flatten


class Traced(NamedTuple):
    """What a function did: the spec and nodes of its result, what it changed (tensor, before, after)."""

    spec: TreeSpec
    results: list[Node]
    changed: list[tuple[ref[Tensor], Node, Node]]
    draws: list[tuple[Draw, list[RuntimeFloat | RuntimeInt]]]
    slots: list[tuple[ref[GradientSlot], Node | None]]  # the gradients it leaves
    gradients: dict[int, ref[GradientSlot]]  # those there were, by the identity of their tensors
    empty: list[ref[GradientSlot]]  # those that must not be there
    replaced: list[ref[GradientSlot]]  # those that it does not look at, and replaces
    watched: Names
    versioned: dict[Callable[[], object], Names]
    aliases: list[Alias | None]  # of the results
    repeated: list[tuple[int, int]]  # results that are the same tensor as one before them


def traced(function: Callable[[], Any], was: Sequence[Node], calls: NoteCall | None = None) -> Traced:
    """Run a function under a trace. Of what it made nothing but nodes stays: who holds a tensor afterwards
    is somebody else. `was` are the nodes of its arguments; `calls` hears of the pure functions that it calls.
    """
    trace = Trace(was, calls)
    try:
        with tracing(trace):
            result = function()
        leaves: list[Tensor] = []
        spec = flatten(result, leaves, numbers=False)
        refuse_fixed(spec, trace)
        del result
        places, left = _left_gradients(trace, was)
        _drop_histories([each.node for each in leaves])
        refuse_kept(trace, was, leaves, left)
        slots = [(slot, None if at is None else left[at].node) for slot, at in places]
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
        results = [each.node for each in leaves]
        aliases = [each.alias for each in leaves]
        firsts = {id(each): at for at, each in reversed([*enumerate(leaves)])}
        repeated = [(at, firsts[id(each)]) for at, each in enumerate(leaves) if firsts[id(each)] != at]
        versioned = {version: lasting(names) for version, names in trace.versioned.items()}
        return Traced(
            *(spec, results, changed, trace.draws, slots, gradients, empty, replaced, lasting(trace.watched)),
            *({version: names for version, names in versioned.items() if names}, aliases, repeated),
        )
    finally:
        trace.undo()


def lasting(names: Names) -> Names:
    """Those of objects that are still there: one that a function made and let go of is another each time."""
    found: Names = []
    for get, then in names:
        with suppress(ReferenceError):
            get()
            found.append((get, then))
    return found


def _left_gradients(
    trace: Trace, was: Sequence[Node]
) -> tuple[list[tuple[ref[GradientSlot], int | None]], list[Tensor]]:
    """The gradients that a function left: for each slot its place among them, and them; nothing else here
    holds these. The slots get back what they had. Slots of tensors that it made itself are gone with those.
    """
    found: list[tuple[ref[GradientSlot], int | None]] = []
    left: list[Tensor] = []
    for slot, before, _ in trace.slots.values():
        if any(node.history is slot for node in was) and slot.node is not None:
            raise CaptureError(
                "backward() inside of a captured function to a tensor that was passed to it: the gradient "
                "would be a placeholder's. Close over the tensor, as over a model, or use webgrad.grad"
            )
        after = slot._grad
        if after is before and before is not None and id(before) in trace.changed:
            node = after.node
            after.node = trace.changed.pop(id(before))[1]
            found.append((ref(slot), len(left)))
            left.append(Tensor(node))
        elif after is not before and not slot.is_inner:
            found.append((ref(slot), None if after is None else len(left)))
            left += [] if after is None else [after]
        slot._grad = before
    return found, left


def _drop_histories(results: Sequence[Node]) -> None:
    """Let go of how results came about, and so of the tensors that functions with own gradients hold."""
    leaves = [node for node in results if node.inputs and is_open(node)]
    stack, seen = list(results), set()
    while stack:
        node = stack.pop()
        if node.inputs and id(node) not in seen:
            seen.add(id(node))
            stack += node.inputs
            if isinstance(node.history, History):
                node.history = None
    for node in leaves:
        node.history = History(CAPTURED, ())


def is_open(node: Node) -> bool:
    """Whether a gradient could be asked for."""
    return isinstance(node.history, History) and node.history.sig is not None
