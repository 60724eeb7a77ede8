"""What torch's classes of modules do otherwise than webgrad's of the same names.

In: nothing. Out: `MEMBERS`: members that `counterpart` gives torch's classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from .module import own
from .state import Stateful

__all__ = ["MEMBERS"]


def _owned(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation whose result are torch's modules."""

    def owned(*args: Any) -> Any:
        return own(function(*args))

    return owned


def _listed(self: Any) -> str:
    """A list of parameters as text."""
    rows = [
        f"    ({name}): Parameter containing: [torch.{each.dtype.name} of size "
        f"{'x'.join(map(str, each.shape))}]"
        for name, each in self.named_parameters(recurse=False)
    ]
    return "\n".join([f"{type(self).__name__}(", *rows, ")"]).replace("(\n)", "()")


def _load_batch_norm(self: Any, state: Any, prefix: str, local: Any, *args: Any) -> None:
    """States of before counts were kept have no count."""
    key = f"{prefix}num_batches_tracked"
    if (local.get("version") or 1) < 2 and self.track_running_stats and key not in state:
        count = self.num_batches_tracked
        state[key] = wg.zeros((), dtype=wg.int32) if count is None else count.detach()
    Stateful._load_from_state_dict(self, state, prefix, local, *args)


_BATCH_NORM = {"_version": 2, "_load_from_state_dict": _load_batch_norm}
MEMBERS: dict[str, dict[str, Any]] = {
    "Sequential": {
        name: _owned(getattr(wg.nn.Sequential, name)) for name in ("__add__", "__mul__", "__rmul__")
    },
    "ModuleList": {"__add__": _owned(wg.nn.ModuleList.__add__)},
    "ParameterList": {"__repr__": _listed},
    "ParameterDict": {"__repr__": _listed},
    "_Running": _BATCH_NORM,
}
