"""Where an entry of torch's tables is in `webgrad.torch`: called exactly as torch's own function is.

In: an entry of `op_db`. Out: the function or method of the same name; where the entry calls torch by a
lambda, that lambda with `webgrad.torch` for `torch`; None where the name is absent.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import webgrad.torch as door

__all__ = ["attribute", "found"]


def attribute(path: str, home: Any = door) -> Any:
    """What stands at a dotted name, or None."""
    for each in path.split("."):
        home = getattr(home, each, None)
        if home is None:
            return None
    return home


def rebound(function: FunctionType) -> Any:
    """A function of torch's tables that finds `webgrad.torch` where it says `torch`."""
    scope = {**function.__globals__, "torch": door}
    return FunctionType(function.__code__, scope, None, function.__defaults__, function.__closure__)


def found(op: Any) -> Any:
    """The function that programs call by an entry's name."""
    function = op.op
    if isinstance(function, FunctionType) and function.__module__.startswith("torch.testing"):
        return rebound(function)
    direct = attribute(op.name) or attribute(getattr(function, "__name__", op.name))
    if not callable(direct) or isinstance(direct, type):
        direct = getattr(door.Tensor, op.name, None)
    return direct if callable(direct) else None
