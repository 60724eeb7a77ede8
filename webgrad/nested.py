"""Nested values: lists, tuples and dicts with tensors and numbers at their ends.

In: what a function takes or gives. Out: its `Nesting`, which can be compared with other calls', and its ends;
and the value again, with other ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .dtypes import DType
from .tensor import Tensor

__all__ = ["Nesting", "put_together", "taken_apart"]

_VALUES = (bool, str, bytes, type(None), DType, type, slice, type(Ellipsis))  # static, compared by value


class _Same:
    """An object that is compared by identity: a model, say. Holding it keeps its address its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Nesting(NamedTuple):
    """What a value is, without the contents of its tensors and numbers."""

    kind: str  # tensor, number, static, list, tuple, dict
    data: Any = None
    parts: tuple[Nesting, ...] = ()


def taken_apart(value: Any, ends: list[Any], *, numbers: bool) -> Nesting:
    """A value's shape; its tensors, and with `numbers` its numbers, are added to `ends`."""
    if isinstance(value, Tensor):
        ends.append(value)
        sig = value.node.sig
        return Nesting("tensor", (sig.shape, sig.dtype, sig.device))
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return Nesting(kind, type(value), tuple(taken_apart(each, ends, numbers=numbers) for each in value))
    if isinstance(value, dict):
        parts = tuple(taken_apart(each, ends, numbers=numbers) for each in value.values())
        return Nesting("dict", tuple(value), parts)
    if numbers:
        if isinstance(value, np.ndarray):
            from .ops.creation import asarray

            return taken_apart(asarray(value), ends, numbers=numbers)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int | float) and not isinstance(value, bool):
            ends.append(value)
            return Nesting("number", float if isinstance(value, float) else int)
    return Nesting("static", (type(value), value) if isinstance(value, _VALUES) else _Same(value))


def put_together(shape: Nesting, ends: Iterator[Any]) -> Any:
    """The value of a shape, with other ends."""
    if shape.kind in ("tensor", "number"):
        return next(ends)
    if shape.kind == "static":
        return shape.data.value if isinstance(shape.data, _Same) else shape.data[1]
    parts = [put_together(each, ends) for each in shape.parts]
    if shape.kind == "dict":
        return dict(zip(shape.data, parts, strict=True))
    if shape.kind == "list":
        return parts
    return shape.data(*parts) if hasattr(shape.data, "_fields") else tuple(parts)
