"""Where an entry of torch's tables is in `webgrad.torch`: by the same name, nothing adapted.

In: an entry of `op_db`. Out: the function or method of the same name, or None.
"""

from __future__ import annotations

from typing import Any

import webgrad.torch as door
from tests.torch.checking import torch

__all__ = ["found"]

# Entries whose function is no attribute of the namespace: how torch is called for them.
OPERATORS = {
    "__rdiv__": "__rtruediv__",
    "nn.functional.upsample_nearest": "nn.functional.upsample_nearest",
}


def attribute(path: str) -> Any:
    """What stands at a dotted name, or None."""
    home: Any = door
    for each in path.split("."):
        home = getattr(home, each, None)
        if home is None:
            return None
    return home


def found(op: Any) -> Any:
    """The function that programs call by an entry's name."""
    name = OPERATORS.get(op.name, op.name)
    direct = attribute(name.removeprefix("torch."))
    if callable(direct) and not isinstance(direct, type):
        return direct
    if isinstance(op.op, type(torch.Tensor.add)) or "." not in name:
        method = getattr(door.Tensor, name, None)
        if isinstance(method, property):
            return method.fget
        if callable(method):
            return method
    return None
