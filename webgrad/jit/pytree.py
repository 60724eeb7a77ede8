"""Nested values: lists, tuples and dicts (and results: dataclasses) with tensors and numbers as leaves.

In: what a function takes or gives. Out: its leaves, and its `TreeSpec`, which is compared with other calls';
and the value again, with other leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple
from weakref import ref

from ..arrays import np
from ..dtypes import DType
from ..functions.array.creation import asarray
from ..tensor import Tensor

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


class TreeSpec(NamedTuple):
    """What a value is, without the contents of its tensors and numbers."""

    kind: str  # tensor, number, static, slice, list, tuple, dict, dataclass
    data: Any = None
    parts: tuple[TreeSpec, ...] = ()


def flatten(value: Any, leaves: list[Any], *, numbers: bool) -> TreeSpec:
    """A value's structure; its tensors, and with `numbers` its numbers, are added to `leaves`."""
    if isinstance(value, Tensor):
        leaves.append(value)
        sig = value.node.sig
        return TreeSpec("tensor", (sig.shape, sig.dtype, sig.device))
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return TreeSpec(kind, type(value), tuple(flatten(each, leaves, numbers=numbers) for each in value))
    if isinstance(value, dict):
        parts = tuple(flatten(each, leaves, numbers=numbers) for each in value.values())
        return TreeSpec("dict", tuple(value), parts)
    if numbers:
        if isinstance(value, np.ndarray):
            return flatten(asarray(value), leaves, numbers=numbers)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int | float) and not isinstance(value, bool):
            leaves.append(value)
            return TreeSpec("number", float if isinstance(value, float) else int)
    elif is_dataclass(value) and not isinstance(value, type):
        names = tuple(each.name for each in fields(value) if hasattr(value, each.name))
        parts = tuple(flatten(getattr(value, name), leaves, numbers=False) for name in names)
        return TreeSpec("dataclass", (type(value), names), parts)
    if isinstance(value, slice):
        bounds = (value.start, value.stop, value.step)
        if all(isinstance(each, int | None) for each in bounds):
            return TreeSpec("slice", bounds)  # slices themselves cannot be hashed
    return TreeSpec(
        "static", (type(value), value) if isinstance(value, _VALUES) else _Same(value, keep=not numbers)
    )


def objects_of(spec: TreeSpec) -> list[Any]:
    """The objects in a value that are compared by identity."""
    if isinstance(spec.data, _Same):
        return [spec.data.value]
    return [each for part in spec.parts for each in objects_of(part)]


def unflatten(spec: TreeSpec, leaves: Iterator[Any]) -> Any:
    """The value of a structure, with other leaves."""
    if spec.kind in ("tensor", "number"):
        return next(leaves)
    if spec.kind == "static":
        return spec.data.value if isinstance(spec.data, _Same) else spec.data[1]
    parts = [unflatten(each, leaves) for each in spec.parts]
    if spec.kind == "slice":
        return slice(*spec.data)
    if spec.kind == "dataclass":
        kind, names = spec.data
        made = object.__new__(kind)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(made, name, part)
        return made
    if spec.kind == "dict":
        return dict(zip(spec.data, parts, strict=True))
    if spec.kind == "list":
        return parts
    return spec.data(*parts) if hasattr(spec.data, "_fields") else tuple(parts)
