"""What a lowering can be told: named whole numbers, as its `choices` lists them."""

from __future__ import annotations

__all__ = ["Choice"]

Choice = tuple[tuple[str, int], ...]
