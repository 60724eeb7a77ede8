"""The final text of a Program for one compiler.

In: a Program, the dialect (naga or tint), how params come, whether to minify. Out: WGSL.
Invariant: without minifying, line i of the result is line i of `program.text`, so origins still hold: the
enable directives share the first line.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from webgrad.wgsl.minify import minify as minify_text
from webgrad.wgsl.program import Program

Dialect = Literal["naga", "tint"]
# With the command itself; in a uniform buffer that is a group of its own; in one behind the storage buffers
Parameters = Literal["immediates", "group", "last"]
_UNIFORM = "@group(1) @binding(0) var<uniform>"
# Which features each compiler wants to see enabled; naga refuses `enable subgroups;`.
_ENABLES: dict[Dialect, tuple[tuple[str, str], ...]] = {
    "naga": (("f16", "f16"),),
    "tint": (("f16", "f16"), ("subgroups", "subgroups")),
}


@lru_cache(maxsize=4096)
def render(
    program: Program,
    *,
    dialect: Dialect = "naga",
    parameters: Parameters = "group",
    minify: bool = False,
) -> str:
    """The WGSL text to give to a compiler."""
    declared = {
        "immediates": "var<immediate>",
        "group": _UNIFORM,
        "last": f"@group(0) @binding({len(program.bindings)}) var<uniform>",
    }
    text = program.text.replace(_UNIFORM, declared[parameters], 1)
    if minify:
        text = minify_text(text, program.entry)
    enables = "".join(f"enable {word};" for feature, word in _ENABLES[dialect] if feature in program.requires)
    return enables + text
