"""torch.nn.functional: the functions of neural networks.

In: tensors, and torch's arguments. Out: tensors.
"""

from __future__ import annotations

import webgrad as _wg

from ..tensor import adopting

__all__ = list(_wg.nn.functional.__all__)

globals().update({name: adopting(getattr(_wg.nn.functional, name)) for name in __all__})
