"""Writes: tensors that get other nodes, with the histories that gradients need.

In: tensors and their new values. Out: nothing; the tensors, and all that share elements with them, have other
nodes. The invariant: where one of several writes is refused, none is done.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..errors import GradientError
from ..gradients.history import Call, History, grad_mode, grad_mode_set
from ..gradients.slots import GradientSlot
from ..graph.node import Node
from ..graph.refcounts import ARGUMENT
from ..graph.trace import current_trace
from ..runtime.shield import shield
from . import primitives
from .views import Change, changes


def replace(tensor: Any, node: Node) -> None:
    """Give a tensor, and all that share elements with it, another value; an open trace records it.

    A tensor that requires a gradient still requires one, and gets its own node, which carries its slot.
    """
    if tensor.alias is not None:
        give(changes(tensor, node))
        return
    trace = current_trace()
    if trace is not None:
        trace.note(tensor)
    history = tensor.node.history
    if history is not None:
        if not _stays(tensor, not grad_mode.on):
            node = _still_requiring(tensor.node, node)
        else:
            if sys.getrefcount(node) > ARGUMENT or node.storage is not None:
                node = primitives.alias(node)
            node.history = history
    tensor.node = node


def _still_requiring(old: Node, node: Node) -> Node:
    """The new value of a tensor that gradients go through. Where none goes through the new value, the tensor
    still requires one, as in PyTorch: what the old value was computed from gets 0.
    """
    if node.history is not None or not grad_mode.on:
        return node
    with grad_mode_set(False):
        node = primitives.alias(node)
    node.history = History(0, (Call((old,), 1, lambda gradients: [None]),))
    if grad_mode.made is not None:
        grad_mode.made.add(id(node))
    return node


def _stays(tensor: Any, keeps: bool) -> bool:
    """Whether a tensor keeps its history with a new value; an error where gradients would become wrong."""
    history = tensor.node.history
    if not keeps and isinstance(history, GradientSlot) and history.belongs_to(tensor):
        raise GradientError(
            f"a tensor of shape {tensor.shape} that requires a gradient is changed in place, itself or "
            "through a view: gradients would be those of its old value. Change it under webgrad.no_grad(), "
            "as optimisers do, or write x = x … instead"
        )
    return keeps


def _with_history(change: Change) -> Node:
    """The node of a change, with the history that its tensor has afterwards."""
    tensor, node, keeps = change
    history = tensor.node.history
    if history is None:
        return node
    if not _stays(tensor, keeps):
        return _still_requiring(tensor.node, node)
    with grad_mode_set(False):
        node = primitives.alias(node)
    node.history = history
    return node


def give(found: Sequence[Change]) -> None:
    """Apply changes: all of them or none."""
    trace = current_trace()
    values = [(each.tensor, _with_history(each)) for each in found]
    with shield:
        for tensor, node in values:
            if trace is not None:
                trace.note(tensor)
            tensor.node = node
