"""Neural networks, with PyTorch's names: `webgrad.nn.functional` has the functions that layers are made of.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from . import functional, utils

__all__ = ["functional", "utils"]
