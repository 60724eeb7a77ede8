"""What torch.compile makes of a module.

In: a module and its compiled call. Out: a module whose parts and names are below `_orig_mod`, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A module whose calls are compiled: its parts and names are below `_orig_mod`, as in torch."""

    def __init__(self, module: Any, compiled: Callable[..., Any]) -> None:
        super().__init__()
        self._orig_mod = module
        self._compiled = compiled
        self.train(module.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)
