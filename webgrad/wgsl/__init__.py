"""The text side: templates and users' kernels in, Programs and WGSL text for naga or Tint out.

Reading order: preprocess (.pwgsl → lines), tokens → source → syntax → scopes → layout (what the text says),
reflect (→ Program), render and minify (→ text for a compiler), variants and bindings (every kernel that
ships).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webgrad.wgsl.program import Binding, Field, Program
    from webgrad.wgsl.renderer import Dialect, Parameters
    from webgrad.wgsl.template import load_template, program_from_source

__all__ = [
    "Binding",
    "Dialect",
    "Field",
    "Parameters",
    "Program",
    "load_template",
    "program_from_source",
]

# Imported when they are asked for: native code needs the library's functions, and none of these.
_MODULES = {
    **dict.fromkeys(("Binding", "Field", "Program"), "program"),
    **dict.fromkeys(("Dialect", "Parameters"), "renderer"),
    **dict.fromkeys(("load_template", "program_from_source"), "template"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
