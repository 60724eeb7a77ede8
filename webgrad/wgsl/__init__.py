"""The text side: templates and users' kernels in, Programs and WGSL text for naga or Tint out.

Reading order: preprocess (.pwgsl → lines), tokens → source → syntax → scopes → layout (what the text says),
reflect (→ Program), render and minify (→ text for a compiler), variants and bindings (every kernel that
ships).
"""

from __future__ import annotations

from webgrad.wgsl.program import Binding, Field, Program
from webgrad.wgsl.render import Dialect, Parameters, render
from webgrad.wgsl.template import load_template, program_from_source

__all__ = [
    "Binding",
    "Dialect",
    "Field",
    "Parameters",
    "Program",
    "load_template",
    "program_from_source",
    "render",
]
