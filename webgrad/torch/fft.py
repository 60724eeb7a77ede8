"""torch.fft: the functions of `webgrad.fft` by torch's names."""

from __future__ import annotations

import webgrad as wg

from .tensor import adopting

__all__ = [name for name in wg.fft.__all__ if name[0].islower()]
globals().update({name: adopting(getattr(wg.fft, name)) for name in __all__})
