"""torch.nn.attention: which kernel attention uses. webgrad chooses it itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """torch's kernels of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Taken, and without effect on results."""
    for each in backends if isinstance(backends, list | tuple) else [backends]:
        if not isinstance(each, SDPBackend):
            raise AssertionError("sdpa_kernel takes an SDPBackend, or a list of them")
    yield
