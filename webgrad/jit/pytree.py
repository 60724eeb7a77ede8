"""Nested values: lists, tuples and dicts (and results: dataclasses) with tensors and numbers at their ends.

In: what a function takes or gives. Out: its `Nesting`, which can be compared with other calls', and its ends;
and the value again, with other ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple
from weakref import ref

from ..arrays import np
from ..dtypes import DType
from ..tensor import Tensor

__all__ = ["Nesting", "objects_of", "put_together", "taken_apart"]

_VALUES = (bool, str, bytes, type(None), DType, type, type(Ellipsis))  # static, compared by value


class _Same:
    """An object that is compared by identity: a model, say. An argument is not kept alive where that can
    be; one that died equals nothing.
    """

    __slots__ = ("_hash", "_held")

    def __init__(self, value: Any, *, keep: bool) -> None:
        self._hash = id(value)
        self._held: Callable[[], Any] = lambda: value
        if not keep:
            with suppress(TypeError):  # it knows no weak references
                self._held = ref(value)

    @property
    def value(self) -> Any:
        return self._held()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value is not None

    def __hash__(self) -> int:
        return self._hash


class Nesting(NamedTuple):
    """What a value is, without the contents of its tensors and numbers."""

    kind: str  # tensor, number, static, slice, list, tuple, dict, dataclass
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
            from ..ops.creation import asarray

            return taken_apart(asarray(value), ends, numbers=numbers)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int | float) and not isinstance(value, bool):
            ends.append(value)
            return Nesting("number", float if isinstance(value, float) else int)
    elif is_dataclass(value) and not isinstance(value, type):
        names = tuple(each.name for each in fields(value) if hasattr(value, each.name))
        parts = tuple(taken_apart(getattr(value, name), ends, numbers=False) for name in names)
        return Nesting("dataclass", (type(value), names), parts)
    if isinstance(value, slice):
        bounds = (value.start, value.stop, value.step)
        if all(isinstance(each, int | None) for each in bounds):
            return Nesting("slice", bounds)  # slices themselves cannot be hashed
    return Nesting(
        "static", (type(value), value) if isinstance(value, _VALUES) else _Same(value, keep=not numbers)
    )


def objects_of(shape: Nesting) -> list[Any]:
    """The objects in a value that are compared by identity."""
    if isinstance(shape.data, _Same):
        return [shape.data.value]
    return [each for part in shape.parts for each in objects_of(part)]


def put_together(shape: Nesting, ends: Iterator[Any]) -> Any:
    """The value of a shape, with other ends."""
    if shape.kind in ("tensor", "number"):
        return next(ends)
    if shape.kind == "static":
        return shape.data.value if isinstance(shape.data, _Same) else shape.data[1]
    parts = [put_together(each, ends) for each in shape.parts]
    if shape.kind == "slice":
        return slice(*shape.data)
    if shape.kind == "dataclass":
        kind, names = shape.data
        made = object.__new__(kind)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(made, name, part)
        return made
    if shape.kind == "dict":
        return dict(zip(shape.data, parts, strict=True))
    if shape.kind == "list":
        return parts
    return shape.data(*parts) if hasattr(shape.data, "_fields") else tuple(parts)
