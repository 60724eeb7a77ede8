"""Operators that order elements, or look for some of them; how many there are is known on the host alone."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ...arrays import np
from .table import Call, operator
from .values import as_indices, whole

__all__: list[str] = []


@operator("TopK", 10, host="k")
def top(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    values, places = wg.topk(x, whole(k), axis=axis, largest=bool(largest))
    return values, as_indices(places)


@operator("TopK", 1)
def top_by_attribute(x: Any, *, k: int, axis: int = -1) -> Any:
    return top(x, np.asarray(k), axis=axis)


@operator("NonZero", 9, known="x")
def places_of_nonzero(x: Any, *, call: Call) -> Any:
    return np.stack(np.nonzero(np.atleast_1d(call.host(x)))).astype(np.int64)


@operator("Unique", 11, known="x")
def unique(x: Any, *, axis: int | None = None, sorted: int = 1, call: Call) -> Any:
    """Distinct elements or slices, where the first of each is, which each element is, and how often."""
    array = call.host(x)
    found, first, which, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    which = which.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        found = np.take(found, order, axis=axis or 0)
        first, which, counts = first[order], np.argsort(order)[which], counts[order]
    return found, *(each.astype(np.int64) for each in (first, which, counts))
