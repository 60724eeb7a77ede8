"""Signals: windows, and transforms of short pieces, `webgrad.signal`.

In: tensors. Out: lazy tensors on the same device, with gradients.
"""

from __future__ import annotations

from . import windows
from .spectrograms import istft, stft

__all__ = ["istft", "stft", "windows"]
