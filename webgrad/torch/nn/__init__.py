"""torch.nn: modules, parameters, losses; `functional`, `init` and `utils` as torch has them."""

from __future__ import annotations

import inspect as _inspect

import webgrad as _wg

from . import functional, init, utils
from .module import Buffer, Module, Parameter
from .module import counterpart as _counterpart

__all__ = ["Buffer", "Module", "Parameter", "functional", "init", "utils"]
for _name in _wg.nn.__all__:
    _each = getattr(_wg.nn, _name)
    if _inspect.isclass(_each) and issubclass(_each, _wg.nn.Module) and _name != "Module":
        globals()[_name] = _counterpart(_each)
        __all__ += [_name]
