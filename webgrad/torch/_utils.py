"""torch._utils: many tensors as one of a single axis, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad as wg

from .tensor import adopt

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Any:
    """The elements of all of them, one tensor after another."""
    return adopt(wg.concat([wg.reshape(each, (-1,)) for each in tensors]))


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Parts of a tensor with the shapes of others."""
    ends = [0]
    for each in tensors:
        ends.append(ends[-1] + each.numel())
    parts = zip(ends, ends[1:], tensors, strict=False)
    return tuple(adopt(wg.reshape(flat[begin:end], tuple(each.shape))) for begin, end, each in parts)
