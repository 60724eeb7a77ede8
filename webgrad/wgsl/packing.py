"""Params packed into bytes as the GPU reads them.

In: the fields of a params struct and their values. Out: bytes of exactly the struct's size, padding zero.
Invariant: a value that does not fit its field is a LaunchError that names the field.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex

from webgrad.errors import LaunchError
from webgrad.wgsl.program import Program

ParamScalar = SupportsIndex | SupportsFloat
ParamValue = ParamScalar | Sequence[ParamScalar]

_CODES = {"i32": "i", "u32": "I", "f32": "f"}
_RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1)}


class Packer:
    """Packs the params of one kernel; fields are (name, type, offset)."""

    __slots__ = ("_fields", "_kernel", "_scalar", "_struct")

    def __init__(self, kernel: str, fields: Sequence[tuple[str, str, int]], size: int) -> None:
        self._kernel = kernel
        self._fields = tuple((name, *_split(type_name)) for name, type_name, _ in fields)
        self._scalar = all(count == 1 for _, _, count in self._fields)
        layout = "<"
        end = 0
        for (_, component, count), (_, _, offset) in zip(self._fields, fields, strict=True):
            layout += f"{offset - end}x{count}{_CODES[component]}"
            end = offset + 4 * count
        self._struct = struct.Struct(f"{layout}{size - end}x")

    @property
    def format(self) -> str:
        """The layout, as `struct` has it."""
        return self._struct.format

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._struct.size

    def pack(self, *values: ParamValue) -> bytes:
        """The bytes of the params, given in the order of the fields."""
        try:
            if self._scalar:
                return self._struct.pack(*values)
            return self._struct.pack(*self._flatten(values))
        except (struct.error, OverflowError, TypeError, ValueError):
            raise self._mistake(values) from None

    def _flatten(self, values: Sequence[ParamValue]) -> list[Any]:
        flat: list[Any] = []
        for (_, _, count), value in zip(self._fields, values, strict=True):
            parts = (value,) if count == 1 else value
            if not isinstance(parts, Sequence) or len(parts) != count:
                raise TypeError
            flat += parts
        return flat

    def _mistake(self, values: Sequence[ParamValue]) -> LaunchError:
        """Finds which value is wrong, and says why."""
        if len(values) != len(self._fields):
            names = ", ".join(name for name, _, _ in self._fields)
            return LaunchError(f"{self._kernel}: {len(values)} params for the fields ({names})")
        for (name, component, count), value in zip(self._fields, values, strict=True):
            type_name = component if count == 1 else f"vec{count}<{component}>"
            parts = [value] if count == 1 else value
            if not isinstance(parts, Sequence) or len(parts) != count:
                return LaunchError(
                    f"{self._kernel}: param `{name}` is {value!r}; {type_name} takes {count} numbers"
                )
            for part in parts:
                if reason := _unfit(component, part):
                    return LaunchError(f"{self._kernel}: param `{name}` is {value!r}; {type_name} {reason}")
        return LaunchError(f"{self._kernel}: params {values!r} cannot be packed")


@functools.lru_cache(maxsize=4096)
def packer(program: Program) -> Packer:
    """The packer of a program's params."""
    fields = [(field.name, field.type, field.offset) for field in program.params]
    return Packer(program.label, fields, program.params_size)


@functools.lru_cache(maxsize=4096)
def flat_packer(program: Program) -> Packer:
    """The same for one number after another, those of vectors too."""
    fields = []
    for field in program.params:
        component, count = _split(field.type)
        names = [field.name] if count == 1 else [f"{field.name}.{each}" for each in "xyzw"[:count]]
        fields += [(name, component, field.offset + 4 * at) for at, name in enumerate(names)]
    return Packer(program.label, fields, program.params_size)


def _split(type_name: str) -> tuple[str, int]:
    """The component type and count: ("f32", 3) for vec3<f32>."""
    if type_name.startswith("vec"):
        return type_name[5:-1], int(type_name[3])
    return type_name, 1


def _unfit(component: str, value: object) -> str:
    """Why a value does not fit a component type; empty if it does."""
    if component in _RANGES:
        least, most = _RANGES[component]
        if not isinstance(value, SupportsIndex):
            return "takes integers"
        return "" if least <= value.__index__() <= most else f"holds {least} to {most}"
    if isinstance(value, str | bytes) or not isinstance(value, SupportsFloat | SupportsIndex):
        return "takes numbers"
    try:
        struct.pack("<f", value)
    except (OverflowError, struct.error, TypeError):
        return "holds numbers up to 3.4e38, and inf and nan"
    return ""
