"""Hooks: functions that are called with gradients, or around a module's `forward`, and how to remove them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class HookHandle:
    """What takes a hook away again: by `remove()`, or at the end of a with block.

    >>> w = wg.ones(2).requires_grad_()
    >>> with w.register_hook(lambda gradient: gradient * 10):
    ...     w.sum().backward()
    >>> w.grad.tolist()
    [10.0, 10.0]
    """

    def __init__(self, hooks: Hooks, hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        hooks[self] = hook

    def remove(self) -> None:
        """The hook is called no more."""
        self._hooks.pop(self, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


Hooks = dict[HookHandle, Callable[..., Any]]  # in the order in which they are called
