"""What the text side gives to the runtime: one compute kernel with everything that is known about it.

A Program is made by `load_template` or `program_from_source` and is never changed. Invariant: `text` is
canonical: storage bindings are @group(0) @binding(0..n-1), the params variable is @group(1) @binding(0),
only what the entry point reaches is left, and line i of `text` came from `origins[i]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Access = Literal["read", "read_write"]


@dataclass(frozen=True, slots=True)
class Binding:
    """A storage buffer of a kernel."""

    name: str
    access: Access
    type: str  # aliases resolved: "array<vec4<f32>>"
    element_bytes: int  # stride of a runtime-sized array; 0 for any other type
    bytes: int = 0  # the least size of a buffer: the fixed size, with one element of a runtime-sized array


@dataclass(frozen=True, slots=True)
class Field:
    """A member of the params struct."""

    name: str
    type: str  # i32, u32, f32, or vec2/3/4 of them: "vec3<u32>"
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Program:
    """One entry point of a template or of a user's source, ready to be rendered."""

    label: str
    text: str
    entry: str
    bindings: tuple[Binding, ...]
    params: tuple[Field, ...]
    params_size: int
    workgroup_size: tuple[int, int, int]
    requires: frozenset[str]
    origins: tuple[tuple[str, int], ...]
    defines: tuple[tuple[str, str], ...]
    uses_array_length: bool

    def __hash__(self) -> int:
        # Texts keep their hash: a Program is a cheap dictionary key although its tables are long.
        return hash((self.label, self.text, self.entry))


def reads_first(program: Program) -> Program:
    """The same program with the bindings that are written behind all others."""
    order = sorted(range(len(program.bindings)), key=lambda at: program.bindings[at].access == "read_write")
    if order == sorted(order):
        return program
    text = re.sub(
        r"@group\(0\) @binding\((\d+)\)",
        lambda found: f"@group(0) @binding({order.index(int(found[1]))})",
        program.text,
    )
    return replace(program, text=text, bindings=tuple(program.bindings[at] for at in order))
