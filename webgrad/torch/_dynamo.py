"""torch._dynamo: what programs call of it. What may be captured is found out at each call (`compiling.py`).

In: functions. Out: the same functions; `config` takes whatever is set, and nothing depends on it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["allow_in_graph", "config", "disable", "reset"]

config = SimpleNamespace()


def allow_in_graph(fn: Any) -> Any:
    """The function, or functions, as they are."""
    return fn


def disable(fn: Any = None, recursive: bool = True, **_: Any) -> Any:
    """The function as it is; without one a decorator that gives it."""
    return (lambda function: function) if fn is None else fn


def reset() -> None:
    """Captured functions look after themselves."""
