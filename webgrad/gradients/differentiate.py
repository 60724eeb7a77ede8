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
from ..graph.node import Node, Signature, backlog
from ..graph.op import SCALAR, Op
from ..graph.trace import current_trace
from ..ops import primitives
from ..tensor import Tensor
from . import rules as rules
from .composites import by_rule, through
from .history import CALL, CAPTURED, SLOT, Call, Composed, History, grad_mode, grad_mode_set
from .slots import GradientSlot
from .structures import by_structure

Vertex = Node | Call
Seeds = Sequence[tuple[Node, Tensor]]
_NONE = "0"


def order_of(roots: Iterable[Vertex], ends: Container[int] = ()) -> list[Vertex]:
    """The nodes with a history under `roots`, inputs first; the walk stops at `ends`, by identity."""
    order: list[Vertex] = []
    done: dict[Vertex, bool] = {}  # whether its inputs are in the order already
    stack = [each for each in roots if each.history is not None]
    while stack:
        vertex = stack[-1]
        known = done.get(vertex)
        if known is None:
            done[vertex] = False
            if id(vertex) not in ends:
                stack += [
                    each for each in vertex.history.inputs if each.history is not None and each not in done
                ]
        else:
            stack.pop()
            if not known:
                done[vertex] = True
                order.append(vertex)
    return order


def pull_back(
    seeds: Seeds, wanted: dict[int, Node] | None, *, keep: bool, order: list[Vertex] | None = None
) -> dict[int, Tensor]:
    """The gradients of `wanted` nodes by identity; None: of all nodes that have a slot.

    Without `keep` histories are freed on the way, and with them the values that only they held. `order` are
    the vertices under the seeds, where they are known.
    """
    if order is None:
        order = order_of([node for node, _ in seeds], () if wanted is None else wanted)
    backlog.gradients += 1
    try:
        # the gradients themselves need histories where these are on
        is_plain = grad_mode.on or current_trace() is not None
        found = None if is_plain else by_structure(_pulled, seeds, wanted, order)
        if found is None:
            found = _pulled(seeds, wanted, order)
        if not keep:
            _free(order)
        return found
    finally:
        backlog.gradients -= 1


def _free(order: list[Vertex]) -> None:
    """Let go of histories that no other gradient needs."""
    for vertex in order:
        history: Any = vertex.history
        if history.__class__ in _FREED:
            history.sig, history.inputs = None, ()


_FREED = (History, Composed)


def _pulled(seeds: Seeds, wanted: dict[int, Node] | None, order: list[Vertex]) -> dict[int, Tensor]:
    _refuse_spent(order)
    useful = set(order) if wanted is None else _leading(order, wanted)
    found: dict[int, Tensor] = {}
    waiting: dict[Vertex, Any] = {}
    for node, seed in seeds:
        _add(waiting, node, seed)
    vertex: Any
    for vertex in reversed(order):
        gradient = waiting.pop(vertex, None)
        if gradient is None:
            continue
        history = vertex.history
        if history.hooks or history.slot is not None:
            gradient = _hooked(history, gradient)
        sig: Any = history.sig
        if sig is SLOT if wanted is None else id(vertex) in wanted:
            found[id(vertex)] = _own(gradient)
        elif sig is CALL:
            _spread(waiting, vertex.inputs, vertex.pull(gradient), useful)
        elif sig is not SLOT:
            inputs = history.inputs
            if sig.__class__ is int:
                _add_result(waiting, inputs[0], inputs[0].results, sig, gradient)
            elif sig.kind == "item":
                results = len(inputs[0].history.recording.results)
                _add_result(waiting, inputs[0], results, sig.attributes[0], gradient)
            else:
                _spread(waiting, inputs, _of_inputs(vertex, history, gradient, useful), useful)
    return found


def _refuse_spent(order: Sequence[Vertex]) -> None:
    kinds = {each.history.sig for each in order}
    if None in kinds:
        raise GradientError(
            "gradients were computed through this value before, and its graph was freed: call "
            "backward(retain_graph=True) the first time, or compute the value again"
        )
    if CAPTURED in kinds:
        raise GradientError(
            "a value that a function captured by webgrad.jit returned has no history here: call "
            "backward(), or use webgrad.value_and_grad, inside of the captured function"
        )


def _leading(order: Sequence[Vertex], wanted: dict[int, Node]) -> set[Vertex]:
    """The vertices through which a needed gradient goes."""
    useful: set[Vertex] = set()
    for vertex in order:
        if id(vertex) in wanted or not useful.isdisjoint(vertex.history.inputs):
            useful.add(vertex)
    return useful


def _add(waiting: dict[Vertex, Any], node: Vertex, gradient: Tensor) -> None:
    known = waiting.get(node)
    waiting[node] = gradient if known is None else known + gradient


def _add_result(waiting: dict[Vertex, Any], source: Vertex, count: int, place: int, gradient: Tensor) -> None:
    """The gradient of one of the results of a call, or of a bundle."""
    gathered = waiting.setdefault(source, [None] * count)
    gathered[place] = gradient if gathered[place] is None else gathered[place] + gradient


def _spread(
    waiting: dict[Vertex, Any], inputs: Sequence[Vertex], gradients: Sequence[Any], useful: set[Vertex]
) -> None:
    for node, gradient in zip(inputs, gradients, strict=True):
        if gradient is not None and node in useful:
            _add(waiting, node, gradient)


def _hooked(history: Any, gradient: Any) -> Any:
    """The gradient after a vertex's hooks."""
    for hook in tuple(history.hooks.values()) if history.hooks else ():
        changed = hook(gradient := _own(gradient))
        if changed is not None:
            gradient = changed
    if history.slot is not None:
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


def _of_inputs(vertex: Any, history: Any, gradient: Any, useful: set[Vertex]) -> Sequence[Any]:
    """The gradients of an op's inputs, or of a composite's; only of those in `useful`."""
    inputs = history.inputs
    wanted = tuple([each in useful for each in inputs])
    trace = current_trace()
    is_plain = grad_mode.on or (trace is not None and not trace.composes)
    if isinstance(history, Composed):
        gradients = gradient if isinstance(gradient, list) else [gradient]
        nodes = [None if each is None else each.node for each in gradients]
        found = None if is_plain else through(pull_back, vertex, history, nodes, wanted)
        if found is None:
            return _again(history, gradients, wanted)
    else:
        is_plain = is_plain or history.sig.op.form is not None  # where movement begins is no structure
        found = None if is_plain else by_rule(_rule, history, gradient.node, vertex, wanted)
        if found is None:
            xs = tuple([Tensor(each) for each in inputs])
            return _rule(history.sig, gradient, Tensor(vertex), xs, wanted)
    return [None if each is None else Tensor(each) for each in found]


def _again(history: Composed, gradients: Sequence[Tensor | None], wanted: tuple[bool, ...]) -> Sequence[Any]:
    """The gradients of a composite's inputs by running its function again, over the inputs themselves."""
    count = len(history.recording.sigs)
    with grad_mode_set(True):
        inner = [_inner(each) for each in history.inputs[:count]]
        results = history.recording.computed(inner)
    seeds = [(node, each) for node, each in zip(results, gradients, strict=True) if each is not None]
    ends = {id(node): node for node, each in zip(inner, wanted, strict=False) if each}
    found = pull_back(seeds, ends, keep=True)
    return [found.get(id(node)) for node in inner] + [None] * (len(history.inputs) - count)


def _inner(node: Node) -> Node:
    """Another node of the same value, for gradients to end at; numbers without any stay known."""
    is_number = node.sig.op is SCALAR and node.history is None
    return node if is_number else primitives.alias(node)


def _rule(
    sig: Signature, g: Tensor, y: Tensor, xs: tuple[Tensor, ...], wanted: tuple[bool, ...]
) -> Sequence[Any]:
    """The gradients of an op's inputs, as its row says."""
    values = (g, y, xs, sig.attributes)
    if isinstance(sig.op.gradient, str):
        return _compiled(sig.op.gradient)(*values, 0, *xs)  # type: ignore[no-any-return]
    found = []
    for at, (x, text) in enumerate(zip(xs, _texts(sig.op, len(xs)), strict=True)):
        each = None
        if text != _NONE and wanted[at]:
            each = _compiled(text)(*values, at, *xs)
            if sig.kind == "map":
                each = rules.summed_to(each, x.shape)
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
