"""Templates by name and sources by text, made into Programs.

In: the name of a file in webgrad/kernels/ (or a user's text), an entry point and defines. Out: a Program.
Invariant: the same name, entry and defines give the same Program object.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

from webgrad.errors import TemplateError
from webgrad.wgsl.macros import NAME
from webgrad.wgsl.preprocess import DefineValue, Expanded, normalise_defines, preprocess
from webgrad.wgsl.program import Program
from webgrad.wgsl.reflect import reflect

KERNELS = Path(__file__).parent.parent / "kernels"
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]*)"', re.MULTILINE)


def template_names() -> tuple[str, ...]:
    """The template files of webgrad/kernels/."""
    return tuple(sorted(path.name for path in KERNELS.glob("*.pwgsl")))


@lru_cache(maxsize=256)
def template_text(name: str) -> str:
    """The text of one template file."""
    pure = PurePosixPath(name)
    path = KERNELS / name
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or not path.is_file():
        near = difflib.get_close_matches(name, template_names(), 3, 0.4)
        hint = (
            f"near it: {', '.join(near)}" if near else f"there are: {', '.join(template_names()) or 'none'}"
        )
        raise TemplateError(f"there is no template {name!r} in webgrad/kernels; {hint}")
    return path.read_text(encoding="utf-8")


def _load(name: str, including: str) -> tuple[str, str]:
    """Finds an included file beside the including one, else in webgrad/kernels/."""
    beside = str(PurePosixPath(including).parent / name)
    if beside != name and (KERNELS / including).is_file():
        try:
            return beside, template_text(beside)
        except TemplateError:
            pass
    return name, template_text(name)


@lru_cache(maxsize=1024)
def expand_template(name: str, defines: tuple[tuple[str, str], ...]) -> Expanded:
    """The WGSL lines of a template with all its entry points."""
    text = template_text(name)
    _check_defines(name, text, defines)
    return preprocess(text, file=name, defines=dict(defines), loader=_load)


@lru_cache(maxsize=4096)
def _program(name: str, entry: str, defines: tuple[tuple[str, str], ...]) -> Program:
    shown = ", ".join(f"{key}={value}" for key, value in defines)
    label = f"{name} {entry} [{shown}]" if shown else f"{name} {entry}"
    return reflect(expand_template(name, defines), entry=entry, label=label, defines=defines)


def load_template(name: str, entry: str, **defines: DefineValue) -> Program:
    """The Program of a template's entry point, such as load_template("map.pwgsl", "map_grid", T="f32")."""
    return _program(name, entry, normalise_defines(defines))


def program_from_source(
    source: str,
    *,
    entry: str | None = None,
    label: str = "kernel",
    defines: dict[str, DefineValue] | None = None,
) -> Program:
    """The Program of a user's own WGSL or .pwgsl text; `label` stands for the file name in errors."""
    pairs = normalise_defines(defines or {})
    _check_defines(label, source, pairs)
    expanded = preprocess(source, file=label, defines=dict(pairs), loader=_load)
    return reflect(expanded, entry=entry, label=label, defines=pairs)


def clear_templates() -> None:
    """Forgets every loaded template, so that changed files are read again."""
    for cache in (template_text, expand_template, _program):
        cache.cache_clear()


def _check_defines(file: str, text: str, defines: tuple[tuple[str, str], ...]) -> None:
    """A define that the template never mentions is a misspelling."""
    if not defines:
        return
    words = _words(text)
    for name, _ in defines:
        if name not in words:
            near = difflib.get_close_matches(name, sorted(words), 3, 0.5)
            hint = f"; near it: {', '.join(near)}" if near else ""
            raise TemplateError(f"{file}: define `{name}` is not mentioned in the template{hint}")


@lru_cache(maxsize=64)
def _words(text: str) -> frozenset[str]:
    """Every word of a template and of what it includes."""
    return frozenset(word for each in _with_includes(text) for word in NAME.findall(each))


def values_of(define: str, text: str) -> tuple[str, ...]:
    """What a template, and what it includes, compares a define with: `#if NAME == value`, or #elif."""
    line = re.compile(rf"^\s*#\s*(?:el)?if\s+{define}\s*==\s*(\w+)\s*$", re.MULTILINE)
    return tuple(dict.fromkeys(value for each in _with_includes(text) for value in line.findall(each)))


def _with_includes(text: str) -> Iterator[str]:
    """A template's text, and the texts of what it includes."""
    seen: set[str] = set()
    pending = [text]
    while pending:
        current = pending.pop()
        yield current
        for name in set(_INCLUDE.findall(current)) - seen:
            seen.add(name)
            with suppress(TemplateError):  # the preprocessor says so, if it comes to it
                pending.append(template_text(name))
