"""The functions that generated kernels call, from `library*.wgsl`, for scalars and vectors of four.

In: expressions that call `wg_…` functions, or the names they call. Out: WGSL text. A function whose head has
one of the type words F I U B L M D is written once in its file and exists twice, for width 1 (`wg_exp_1`) and
width 4 (`wg_exp_4`); any other exists once, under its own name, which may be that of one width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from webgrad.errors import ShaderError

WORDS = {"F": "f32", "I": "i32", "U": "u32", "B": "bool", "L": "i64", "M": "u64", "D": "f64"}
WIDTHS = (1, 4)
_FILES = tuple(Path(__file__).with_name(name) for name in ("library.wgsl", "library64.wgsl"))
_FUNCTION = re.compile(r"^fn (wg_\w+)(.*)\{(?:.*\}|\n(?:.*\n)*?\})$", re.MULTILINE)
CALL = re.compile(r"\bwg_\w+")
_WORD = re.compile(rf"\b[{''.join(WORDS)}]\b")
_COMMENT = re.compile(r"\s*//.*")


@dataclass(frozen=True, slots=True)
class _Function:
    """A function: of a file, or as it is written into kernels."""

    place: int  # in the order of the files, and of widths
    text: str
    generic: bool  # whether it exists for each width


@cache
def _source() -> dict[str, _Function]:
    """The functions of the files by name, without comments."""
    text = _COMMENT.sub("", "".join(file.read_text(encoding="utf-8") for file in _FILES))
    return {
        found[1]: _Function(2 * place, found[0], _WORD.search(found[2]) is not None)
        for place, found in enumerate(_FUNCTION.finditer(text))
    }


@cache
def _in_kernels(name: str) -> tuple[_Function, tuple[str, ...]]:
    """A function as it is in kernels, by its name there, and the names that it calls."""
    source = _source()
    base, _, width = name.rpartition("_")
    function = source.get(name)
    if function is not None and not function.generic:
        text = function.text
    elif width in ("1", "4") and base in source and source[base].generic:
        function = source[base]
        text = spell(function.text, int(width))
    else:
        raise ShaderError(f"wgsl/library.wgsl and library64.wgsl have no function {name}")
    calls = tuple(dict.fromkeys(each for each in CALL.findall(text) if each != name))
    return _Function(function.place + (width == "4"), text, False), calls


def written(name: str) -> str:
    """A function as it stands in its file, without comments; one that is written twice, for one lane.

    >>> from webgrad.wgsl import library
    >>> library.written("wg_wrap_u8")
    'fn wg_wrap_u8(x: U) -> U { return x & U(0xffu); }'
    """
    source = _source()
    function = source.get(name) or source.get(f"{name}_1") or source.get(name.removesuffix("_1"))
    if function is None:
        raise ShaderError(f"wgsl/library.wgsl and library64.wgsl have no function {name}")
    return function.text


def names() -> tuple[str, ...]:
    """Every function by its name in kernels, in the files' order: "wg_exp_1", "wg_exp_4", …"""
    return tuple(
        spell(name, width)
        for name, function in _source().items()
        for width in (WIDTHS if function.generic else WIDTHS[:1])
    )


def spell(expression: str, width: int) -> str:
    """WGSL for one width: type words as types, and the names of functions with their suffix.

    >>> from webgrad.wgsl import library
    >>> library.spell("wg_exp(x) + F(1.0)", 4)
    'wg_exp_4(x) + vec4<f32>(1.0)'
    """
    source = _source()

    def name(found: re.Match[str]) -> str:
        function, wide = source.get(found[0]), f"{found[0]}_{width}"
        return wide if wide in source or (function is not None and function.generic) else found[0]

    def word(found: re.Match[str]) -> str:
        scalar = WORDS[found[0]]
        return scalar if width == 1 else f"vec4<{scalar}>"

    return _WORD.sub(word, CALL.sub(name, expression))


def functions(wanted: Iterable[str]) -> str:
    """The text of these functions and of all that they call, each once, in the files' order.

    >>> from webgrad.wgsl import library
    >>> library.functions(["wg_wrap_u8_1"])
    'fn wg_wrap_u8_1(x: u32) -> u32 { return x & u32(0xffu); }\\n'
    """
    found: dict[str, _Function] = {}
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name], calls = _in_kernels(name)
            waiting += calls
    ordered = sorted(found.values(), key=lambda each: each.place)
    return "".join(f"{each.text}\n" for each in ordered)
