"""torch.nn.utils: norms of gradients, parameters as one vector."""

from __future__ import annotations

import webgrad as _wg

from ...tensor import adopting

__all__ = list(_wg.nn.utils.__all__)
globals().update({name: adopting(getattr(_wg.nn.utils, name)) for name in __all__})
