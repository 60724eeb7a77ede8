"""C types by their names, quickly: cffi's parser told only of the names that a type's text mentions.

In: cffi's FFI object of wgpu, as it is imported. Out: nothing; the object is changed. For every new text,
such as "WGPULimits *", cffi parses a declaration of each of the 450 types of wgpu's header first, which
takes 15 ms; opening a device needs 28 such texts. The invariant: a text means the same type as before.
"""

from __future__ import annotations

import re
from typing import Any

_PREFIX = "typedef "


def hasten(ffi: Any) -> None:
    """Make `ffi.new(text)`, `ffi.typeof(text)` … quick. A cffi that is built otherwise stays as it is."""
    parser: Any = getattr(ffi, "_parser", None)
    plain = getattr(parser, "_parse", None)
    if plain is None or not isinstance(getattr(parser, "_declarations", None), dict):
        return

    def parse(text: str) -> Any:  # called with cffi's lock held
        every = parser._declarations
        words = set(re.findall(r"\w+", text))
        parser._declarations = {
            name: each
            for name, each in every.items()
            if not name.startswith(_PREFIX) or name[len(_PREFIX) :] in words
        }
        try:
            return plain(text)
        finally:
            parser._declarations = every

    parser._parse = parse
