"""Gradient slots: the history of a tensor that requires a gradient.

In: gradients, as tensors. Out: the same. Captured functions read and write them like any other state.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from ..graph.trace import current_trace
from .history import SLOT
from .hooks import Hooks


class GradientSlot:
    """The history of a tensor that requires a gradient: it holds the gradient.

    Other tensors may have the same node (x.reshape to its own shape, say), but only one is the owner.
    """

    __slots__ = ("__weakref__", "_grad", "_owner", "hooks", "is_inner")
    inputs: tuple[Any, ...] = ()
    sig, slot = SLOT, None

    def __init__(self, owner: Any = None) -> None:
        self._grad: Any = None
        self._owner = None if owner is None else ref(owner)
        self.hooks: Hooks | None = None
        self.is_inner = current_trace() is not None  # made by a captured function: nobody sees it later

    def belongs_to(self, tensor: Any) -> bool:
        """Whether this tensor is the slot's owner."""
        return self._owner is not None and self._owner() is tensor

    @property
    def grad(self) -> Any:
        """The gradient as a tensor, or None."""
        trace = current_trace()
        if trace is not None:
            trace.note_slot(self, written=False)
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        trace = current_trace()
        if trace is not None:
            trace.note_slot(self, written=True)
        self._grad = value

    @property
    def node(self) -> Any:
        """The gradient's node: what a captured function that accumulates reads."""
        return None if self._grad is None else self._grad.node
