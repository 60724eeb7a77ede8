"""torch.amp: products in half precision, and scaled gradients.

In: a device's type and a dtype. Out: contexts, and a scaler. As in torch, autocast takes bfloat16 on the cpu
and float16 elsewhere where no dtype is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import webgrad as wg

__all__ = ["GradScaler", "autocast", "is_autocast_available"]


def is_autocast_available(device_type: str) -> bool:
    """Autocast is there on every device."""
    return True


class autocast:
    """Products in half precision, as a context or a decorator."""

    def __init__(
        self,
        device_type: str = "cuda",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.dtype = dtype or (wg.bfloat16 if device_type == "cpu" else wg.float16)
        self.enabled = enabled and self.dtype is not wg.float32
        self._inside: list[Any] = []

    def __enter__(self) -> autocast:
        if self.enabled:
            self._inside.append(wg.amp.autocast(self.dtype))
            self._inside[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.enabled:
            self._inside.pop().__exit__(*error)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


class GradScaler(wg.amp.GradScaler):
    """A loss scaled so that its gradients do not vanish in half precision."""

    def __init__(
        self,
        device: Any = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
