"""torch.accelerator: the best device, whatever it is.

In: nothing. Out: answers as torch.cuda gives them.
"""

from __future__ import annotations

from typing import Any

from .cuda import current_device as current_device_index
from .cuda import device_count, is_available, set_device, synchronize
from .devices import device

__all__ = [
    *("current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index"),
    "synchronize",
]
set_device_index = set_device


def current_accelerator(check_available: bool = False) -> Any:
    """The best device, or None where there is none but the cpu."""
    return device("cuda") if is_available() else None
