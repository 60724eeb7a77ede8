"""torch.nn.init: values that parameters begin with."""

from __future__ import annotations

import webgrad as _wg

from ..tensor import adopting

__all__ = list(_wg.nn.init.__all__)
globals().update({name: adopting(getattr(_wg.nn.init, name)) for name in __all__})
