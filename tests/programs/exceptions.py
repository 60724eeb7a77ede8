"""Programs that do not give torch's numbers, each with the reason."""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[str, str] = {}
