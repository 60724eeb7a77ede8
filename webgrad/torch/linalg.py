"""torch.linalg: the functions of `webgrad.linalg` by torch's names."""

from __future__ import annotations

import webgrad as wg

from .tensor import adopting

__all__ = [name for name in wg.linalg.__all__ if name[0].islower()]
globals().update({name: adopting(getattr(wg.linalg, name)) for name in __all__})
