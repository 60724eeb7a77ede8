"""torch.nn._reduction: what the old arguments `size_average` and `reduce` mean."""

from __future__ import annotations

from typing import Any

__all__ = ["legacy_get_string", "reduction_of"]


def legacy_get_string(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """The reduction that the two old arguments stand for."""
    averaged = "mean" if size_average is None or size_average else "sum"
    return averaged if reduce is None or reduce else "none"


def reduction_of(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction: the old arguments, where they are given, decide."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)
