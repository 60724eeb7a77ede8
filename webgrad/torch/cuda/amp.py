"""torch.cuda.amp: torch.amp for GPUs."""

from __future__ import annotations

from typing import Any

from ..amp import GradScaler
from ..amp import autocast as _autocast

__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):
    """Products in half precision."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled)
