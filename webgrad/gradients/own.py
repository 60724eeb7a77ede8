"""Custom gradients for values composed of many nodes: one rule instead of one per node.

In: a function that computes a value, and its sources, each with a rule from the value's gradient to its own.
Out: the value, whose history is a `Call`. Rules are made of ops that have gradients themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.node import Node
from ..ops import primitives
from ..tensor import Tensor
from .history import Call, History, grad_mode, grad_mode_set

Rule = Callable[[Tensor], Tensor]


def own_gradient(compute: Callable[[], Tensor], *sources: tuple[Tensor, Rule]) -> Tensor:
    """A new tensor that `compute` makes from the sources, with their rules as its history.

    Sources must not be users' tensors, which may get another value before the rules run.
    """
    if not grad_mode.on or all(x.node.history is None for x, _ in sources):
        return compute()
    with grad_mode_set(False):
        result = compute()
    wanted = [x.node.history is not None for x, _ in sources]

    def pull(gradients: list[Any]) -> list[Any]:
        (g,) = gradients
        return [rule(g) if each else None for each, (_, rule) in zip(wanted, sources, strict=True)]

    _remember(result.node, Call(tuple(x.node for x, _ in sources), 1, pull), 0)
    return result


def results_of(call: Call, results: Sequence[Tensor]) -> list[Tensor]:
    """A call's results, with the call as their history."""
    made = []
    for at, each in enumerate(results):
        with grad_mode_set(False):
            node = primitives.alias(each.node)
        if each.dtype.kind in "fc":
            _remember(node, call, at)
        made.append(Tensor(node))
    return made


def _remember(node: Node, call: Call, place: int) -> None:
    node.history = History(place, (call,))
    if grad_mode.made is not None:
        grad_mode.made.add(id(node))
