"""Gradients by walking histories backwards: the one place that knows how a gradient goes through a graph.

In: results with their gradients, and the nodes whose gradients are wanted. Out: those gradients, as lazy
tensors that are scheduled and fused like any other. An op's gradient is in its row of the table, as text over
the functions of `gradients/rules.py`. Nothing here recurses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from ..errors import GradientError
from ..graph.node import Node, backlog
from ..graph.op import Op
from ..tensor import Tensor
from . import rules as rules
from .history import CAPTURED, Call, History
from .slots import GradientSlot

Vertex = Node | Call
Seeds = Sequence[tuple[Node, Tensor]]
_NONE = "0"


def order_of(roots: Iterable[Vertex], ends: Container[int] = ()) -> list[Vertex]:
    """The nodes with a history under `roots`, inputs first; the walk stops at `ends`, by identity."""
    order: list[Vertex] = []
    state: dict[int, bool] = {}  # by identity: whether its inputs are in the order already
    stack = [each for each in roots if each.history is not None]
    while stack:
        vertex = stack[-1]
        known = state.get(id(vertex))
        if known is None:
            state[id(vertex)] = False
            if id(vertex) not in ends:
                stack += [
                    each
                    for each in vertex.history.inputs
                    if each.history is not None and id(each) not in state
                ]
        else:
            stack.pop()
            if not known:
                state[id(vertex)] = True
                order.append(vertex)
    return order


def pull_back(seeds: Seeds, wanted: dict[int, Node] | None, *, keep: bool) -> dict[int, Tensor]:
    """The gradients of `wanted` nodes by identity; None: of all nodes that have a slot.

    Without `keep` histories are freed on the way, and with them the values that only they held.
    """
    backlog.gradients += 1
    try:
        return _pulled(seeds, wanted, keep)
    finally:
        backlog.gradients -= 1


def _pulled(seeds: Seeds, wanted: dict[int, Node] | None, keep: bool) -> dict[int, Tensor]:
    order = order_of([node for node, _ in seeds], () if wanted is None else wanted)
    _refuse_spent(order)
    useful = _leading(order, wanted)
    found: dict[int, Tensor] = {}
    waiting: dict[int, Any] = {}
    for node, seed in seeds:
        _add(waiting, node, seed)
    for vertex in reversed(order):
        gradient = waiting.pop(id(vertex), None)
        if gradient is None:
            continue
        gradient = _hooked(vertex, gradient)
        history = vertex.history
        if id(vertex) in wanted if wanted is not None else _is_slot(history):
            found[id(vertex)] = _own(gradient)
            continue
        if isinstance(vertex, Call):
            _spread(waiting, vertex.inputs, vertex.pull(gradient), useful)
        elif isinstance(history, History):
            (first, *_) = history.inputs
            if isinstance(first, Call):
                _add_result(waiting, first, history.sig, gradient)
            else:
                _spread(waiting, history.inputs, _rule(vertex, history, gradient, useful), useful)
    if not keep:
        for vertex in order:
            if isinstance(vertex.history, History):
                vertex.history.let_go()
    return found


def _is_slot(history: Any) -> bool:
    return isinstance(history, GradientSlot)


def _refuse_spent(order: Sequence[Vertex]) -> None:
    for vertex in order:
        history = vertex.history
        if isinstance(history, History) and history.sig is None:
            raise GradientError(
                "gradients were computed through this value before, and its graph was freed: call "
                "backward(retain_graph=True) the first time, or compute the value again"
            )
        if isinstance(history, History) and history.sig is CAPTURED:
            raise GradientError(
                "a value that a function captured by webgrad.jit returned has no history here: call "
                "backward(), or use webgrad.value_and_grad, inside of the captured function"
            )


def _leading(order: Sequence[Vertex], wanted: dict[int, Node] | None) -> set[int]:
    """The vertices through which a needed gradient goes."""
    useful: set[int] = set()
    for vertex in order:
        if (
            wanted is None
            or id(vertex) in wanted
            or any(id(each) in useful for each in vertex.history.inputs)
        ):
            useful.add(id(vertex))
    return useful


def _add(waiting: dict[int, Any], node: Vertex, gradient: Tensor) -> None:
    known = waiting.get(id(node))
    waiting[id(node)] = gradient if known is None else known + gradient


def _add_result(waiting: dict[int, Any], call: Call, place: int, gradient: Tensor) -> None:
    """The gradient of one of a call's results."""
    gathered = waiting.setdefault(id(call), [None] * call.results)
    gathered[place] = gradient if gathered[place] is None else gathered[place] + gradient


def _spread(
    waiting: dict[int, Any], inputs: Sequence[Vertex], gradients: Sequence[Any], useful: set[int]
) -> None:
    for node, gradient in zip(inputs, gradients, strict=True):
        if gradient is not None and id(node) in useful:
            _add(waiting, node, gradient)


def _hooked(vertex: Vertex, gradient: Any) -> Any:
    """The gradient after the vertex's hooks."""
    history = vertex.history
    for hook in tuple(history.hooks.values()) if history.hooks else ():
        changed = hook(gradient := _own(gradient))
        if changed is not None:
            gradient = changed
    if isinstance(history, History) and history.slot is not None:
        accumulate(history.slot, _own(gradient))
    return gradient


def _own(gradient: Tensor) -> Tensor:
    """A new tensor of the same node, which users may change in place: a + b has one gradient for both."""
    return Tensor(gradient.node)


def accumulate(slot: GradientSlot, gradient: Tensor) -> None:
    """Add to a slot's gradient."""
    known = slot.grad
    slot.grad = gradient if known is None else known + gradient


# Rules


def _rule(vertex: Node, history: History, gradient: Tensor, useful: set[int]) -> Sequence[Any]:
    """The gradients of an op's inputs; only of those in `useful`."""
    sig, inputs = history.sig, history.inputs
    xs = tuple(Tensor(each) for each in inputs)
    values = (gradient, Tensor(vertex), xs, sig.attributes)
    if isinstance(sig.op.gradient, str):
        return _compiled(sig.op.gradient)(*values, 0, *xs)  # type: ignore[no-any-return]
    found = []
    for at, (node, text) in enumerate(zip(inputs, _texts(sig.op, len(inputs)), strict=True)):
        each = None
        if text != _NONE and id(node) in useful:
            each = _compiled(text)(*values, at, *xs)
            if sig.kind == "map":
                each = rules.summed_to(each, node.sig.shape)
        found.append(each)
    return found


def _texts(op: Op, count: int) -> Sequence[str]:
    """A rule for each input; ops of any number of inputs have one for all."""
    texts = op.gradient
    assert isinstance(texts, tuple), op
    return texts * count if op.arity == -1 else texts


@functools.cache
def _compiled(text: str) -> Callable[..., Any]:
    """A rule as a function: of the result's gradient g, the result y, the inputs xs, or a, b, c."""
    code = f"lambda g, y, xs, attributes, at, a=None, b=None, c=None, *_: {text}"
    # With the name of one of our files, so that nodes remember the user's line, not this one.
    function: Callable[..., Any] = eval(compile(code, __file__, "eval"), vars(rules))
    return function
