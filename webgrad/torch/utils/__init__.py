"""torch.utils: data, checkpoint, hub and what else programs take from there; each loaded when it is used."""

from __future__ import annotations

import importlib
from typing import Any

_PARTS = frozenset({"_pytree", "checkpoint", "data", "model_zoo", "tensorboard"})


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
