"""torch.nn: modules, parameters, losses; `functional`, `init` and `utils` as torch has them."""

from __future__ import annotations

import inspect as _inspect
from typing import TYPE_CHECKING
from typing import Any as _Any

import webgrad as _wg

from . import attention, functional, init, parallel, utils
from .members import MEMBERS as _MEMBERS
from .module import Module
from .module import counterpart as _counterpart
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "init",
    "parallel",
    "utils",
]
for _name in _wg.nn.__all__:
    _each = getattr(_wg.nn, _name)
    if _inspect.isclass(_each) and issubclass(_each, _wg.nn.Module) and _name != "Module":
        globals()[_name] = _counterpart(_each, _MEMBERS)
        __all__ += [_name]

from . import common_types, optimized, others  # noqa: E402
from .others import *  # noqa: E402, F403

__all__ += ["common_types", *others.__all__]

from . import modules  # noqa: E402  (which names the classes above)

__all__ += ["modules"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> _Any: ...
