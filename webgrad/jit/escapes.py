"""What a captured function keeps: a tensor in an attribute, a global name, a list, an object it returns.

In: the trace of a call, the nodes of its arguments, its result. Out: nothing, or an error: the code that put
a tensor there does not run again, so that it would have its first value for ever.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Awaitable, Container, Iterator, Sequence

from ..errors import CaptureError
from ..gradients.slots import GradientSlot
from ..graph.node import Node, backlog, where_made
from ..graph.refcounts import LISTED
from ..graph.trace import Trace, is_runtime
from ..tensor import Tensor
from .pytree import TreeSpec, objects_of


def refuse_kept(trace: Trace, was: Sequence[Node], leaves: list[Tensor], left: list[Tensor]) -> None:
    """Raise where a tensor that was made of the arguments is held by more than the leaves of the result, and
    the gradients that are left.
    """
    states = {id(tensor): tensor.node for tensor in _states(trace)}
    known = {id(node) for node in states.values()} | {id(tensor.node) for tensor in (*leaves, *left)}
    known |= {id(before) for _, before in trace.changed.values()}
    others = _made_of(was, [node for node in backlog.held() if id(node) not in known])
    if not others and not _held_twice(states, was, leaves) and not _held_twice(states, was, left):
        return
    gc.collect()  # what only a ring of Python objects holds is not kept
    kept = {id(node) for node in others}
    tensors = [each for each in gc.get_referrers(*others) if isinstance(each, Tensor)] if others else []
    tensors = [each for each in tensors if id(each.node) in kept]
    for tensor in (*tensors, *_held_twice(states, was, leaves), *_held_twice(states, was, left)):
        line = where_made(tensor.node)
        raise CaptureError(
            f"a tensor of shape {tensor.shape} and {tensor.dtype.name}{line and f', made at {line},'} is "
            "kept outside of the function that webgrad.jit captures: in an attribute, a global name or a "
            "list, or in a result that is no tensor, list, tuple or dict. Python code runs only at the first "
            "call, so it would never change again. Write to a tensor in place (state[...] = new, "
            "state += change), or return it"
        )


def _states(trace: Trace) -> list[Tensor]:
    """What was there before, and is changed in place: that is done at every call."""
    found = [reference() for reference, before in trace.changed.values() if not before.inputs]
    return [tensor for tensor in found if tensor is not None]


def _held_twice(states: Container[int], was: Sequence[Node], leaves: list[Tensor]) -> list[Tensor]:
    """The leaves that something else holds too, and that are no states."""
    counts = list(map(sys.getrefcount, leaves))
    times = Counter(map(id, leaves))
    found = [
        tensor
        for tensor, count in zip(leaves, counts, strict=True)
        if count > LISTED - 1 + times[id(tensor)] and id(tensor) not in states
    ]
    made = {id(node) for node in _made_of(was, [each.node for each in found if each.node.storage is None])}
    return [tensor for tensor in found if id(tensor.node) in made]


def _made_of(sources: Sequence[Node], nodes: list[Node]) -> list[Node]:
    """Those nodes whose value depends on the sources, or on numbers that each run has others of."""
    depends = {id(node): True for node in sources}
    stack = list(nodes)
    while stack:
        node = stack[-1]
        waiting = [each for each in node.inputs if id(each) not in depends]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if id(node) not in depends:
            depends[id(node)] = is_runtime(node.storage) or any(depends[id(each)] for each in node.inputs)
    return [node for node in nodes if depends[id(node)]]


def refuse_fixed(spec: TreeSpec, trace: Trace) -> None:
    """Refuse results whose tensors could not be replaced by another call's."""
    for value in objects_of(spec):
        held = gc.get_referents(value)
        held += gc.get_referents(*[each for each in held if isinstance(each, dict | list | tuple | set)])
        made = [each for each in held if isinstance(each, Tensor) and each.node.storage is None]
        if isinstance(value, Iterator | Awaitable) or any(id(each) not in trace.changed for each in made):
            raise CaptureError(
                f"a captured function returned a {type(value).__name__}, which would be the same at every "
                "call: return tensors, or lists, tuples, dicts and dataclasses of them"
            )


def refuse_frozen(trace: Trace, was: Sequence[Node]) -> None:
    """Refuse a function after which a tensor that it closes over asks for a gradient, or no longer does."""
    arguments = {id(node) for node in was}
    for reference, before in trace.changed.values():
        tensor = reference()
        if tensor is None or before.inputs or id(before) in arguments:
            continue
        if isinstance(before.history, GradientSlot) != isinstance(tensor.node.history, GradientSlot):
            raise CaptureError(
                f"requires_grad of a tensor of shape {tensor.shape} is another after a function that "
                "webgrad.jit captures than before, and its Python code runs only at the first call: set it "
                "outside (the function is captured anew where it changed), or set it back before returning"
            )
