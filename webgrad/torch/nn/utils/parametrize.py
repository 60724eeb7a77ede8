"""torch.nn.utils.parametrize: parameters that are computed of others."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..members import MEMBERS
from ..module import counterpart

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_parametrize = wg.nn.utils.parametrize
ParametrizationList: Any = counterpart(_parametrize.ParametrizationList, MEMBERS)
cached = _parametrize.cached
is_parametrized = _parametrize.is_parametrized
register_parametrization = _parametrize.register_parametrization
remove_parametrizations = _parametrize.remove_parametrizations
type_before_parametrizations = _parametrize.type_before_parametrizations
