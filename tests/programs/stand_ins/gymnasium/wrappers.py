"""Nothing is recorded, clipped or normed."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return lambda env, *_, **__: env
