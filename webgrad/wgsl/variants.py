"""Which variants of each template ship: read from the `//! variants:` lines at its top.

In: template files. Out: one Program for every declared variant. Invariant: a variant is listed once, in the
order of the files and lines; a file without such a line is an include, or has holes (`//! holes:`) that the
code generator fills, and gives none. The notation is in webgrad/kernels/README.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from webgrad.errors import TemplateError
from webgrad.wgsl.directives import Place, template_error
from webgrad.wgsl.program import Program
from webgrad.wgsl.reflect import entry_names
from webgrad.wgsl.template import expand_template, load_template, template_names, template_text, values_of

_HEADER = re.compile(r"\s*//!\s*(\w*)\s*(:?)(.*)")
_ENTRIES = re.compile(r"\s*([\w|]+)(?=\s|$)(?!\s*=)")
_CHOICE = re.compile(r"\s*([^\W\d]\w*)\s*=\s*([\w.\-+|]+|\*)\s*")
_UNDEFINED, _EVERY = "-", "*"
_NOTATION = "a `//!` line is written `//! variants: [entry|entry] NAME=a|b; NAME=c` or `//! holes: by whom`"


@dataclass(frozen=True, slots=True)
class VariantLine:
    """One line: entry points (none: all) and, for each define, its values; None leaves it undefined."""

    place: Place
    entries: tuple[str, ...]
    choices: tuple[tuple[str, tuple[str | None, ...]], ...]

    def combinations(self) -> Iterator[dict[str, str]]:
        """The defines of every combination, the last define varying fastest."""
        names = [name for name, _ in self.choices]
        for values in itertools.product(*(values for _, values in self.choices)):
            yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def variant_lines(text: str, file: str) -> tuple[VariantLine, ...]:
    """The `//! variants:` lines of a template."""
    found: list[VariantLine] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _HEADER.fullmatch(line)
        if match is None:
            continue
        place = Place(file, number, line)
        if match[1] == "holes" and match[2]:
            continue
        if match[1] != "variants" or not match[2]:
            raise template_error(place, _NOTATION)
        found.append(_parse(place, match[3], text))
    return tuple(found)


def _parse(place: Place, line: str, text: str) -> VariantLine:
    entries: tuple[str, ...] = ()
    if match := _ENTRIES.match(line):
        entries = tuple(match[1].split("|"))
        line = line[match.end() :]
    choices: dict[str, tuple[str | None, ...]] = {}
    for part in filter(str.strip, line.split(";")):
        choice = _CHOICE.fullmatch(part)
        if choice is None:
            raise template_error(place, f"`{part.strip()}` is not NAME=value|value")
        name, values = choice[1], choice[2].split("|")
        if values == [_EVERY]:
            values = [*values_of(name, text)] or [""]
        if name in choices or "" in values or len(set(values)) < len(values):
            raise template_error(place, f"`{part.strip()}`: a name or value is empty or there twice")
        choices[name] = tuple(None if value == _UNDEFINED else value for value in values)
    return VariantLine(place, entries, tuple(choices.items()))


def variant_keys(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The (entry point, defines) of every declared variant of one template."""
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for line in variant_lines(template_text(name), name):
        for defines in line.combinations():
            key = tuple(sorted(defines.items()))
            for entry in line.entries or _entries(line.place, name, key):
                if (entry, key) not in seen:
                    seen.add((entry, key))
                    yield entry, defines


def _entries(place: Place, name: str, defines: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    entries = entry_names(expand_template(name, defines))
    if not entries:
        raise template_error(place, f"with {dict(defines)} there is no @compute entry point")
    return entries


def all_variants() -> Iterator[Program]:
    """Every declared variant of every template in webgrad/kernels/."""
    for name in template_names():
        text = template_text(name)
        if "@compute" in text and "//! holes:" not in text and not variant_lines(text, name):
            raise TemplateError(
                f"{name} has an entry point and declares neither variants nor holes: {_NOTATION}"
            )
        for entry, defines in variant_keys(name):
            yield load_template(name, entry, **defines)
