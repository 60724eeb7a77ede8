"""torch.optim: webgrad's optimisers, which have torch's names, arguments and arithmetic."""

from __future__ import annotations

import sys as _sys
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

import webgrad as _wg

from . import lr_scheduler, swa_utils
from .optimizer import Optimizer
from .rules import CLASSES as _CLASSES

__all__ = ["Optimizer", "lr_scheduler", "swa_utils", *_CLASSES]
globals().update(_CLASSES)
for _name in ("LAMB", "Lion"):  # which torch does not have
    globals()[_name] = type(_name, (getattr(_wg.optim, _name), Optimizer), {"__module__": __name__})


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which webgrad does not have."""

    def __init__(self, params: _Any, *args: _Any, **options: _Any) -> None:
        raise NotImplementedError(
            "SparseAdam is for sparse gradients, and those of webgrad are dense: use torch.optim.Adam"
        )


__all__ += ["SparseAdam"]


def _file(name: str) -> _ModuleType:
    """torch's module of one optimiser, such as torch.optim.adamw."""
    module = _ModuleType(f"{__name__}.{name.lower()}", f"torch.optim.{name.lower()}.")
    module.__dict__.update({name: _CLASSES[name], "Optimizer": Optimizer, "__all__": [name]})
    _sys.modules[module.__name__] = module
    return module


globals().update({_name.lower(): _file(_name) for _name in _CLASSES})

if TYPE_CHECKING:

    def __getattr__(name: str) -> _Any: ...
