"""torch.nn.utils.parametrizations: weights by length and direction, or over their largest singular value."""

from __future__ import annotations

import webgrad as wg

from ..members import MEMBERS
from ..module import counterpart

__all__ = ["spectral_norm", "weight_norm"]

_parametrizations = wg.nn.utils.parametrizations
for _each in _parametrizations.MODULES:
    counterpart(_each, MEMBERS)
spectral_norm = _parametrizations.spectral_norm
weight_norm = _parametrizations.weight_norm
