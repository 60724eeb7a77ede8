"""torch.jit: functions and modules as they are; webgrad compiles what runs, without being asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["export", "ignore", "script", "script_method", "trace", "unused"]


def script(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The same function or module."""
    return obj


def trace(func: Any, example_inputs: Any = None, **options: Any) -> Any:
    """The same function or module."""
    return func


def ignore(drop: Any = False, **options: Any) -> Callable[..., Any]:
    """The same function, as a decorator with or without arguments."""
    return drop if callable(drop) else script


script_method = export = unused = script
