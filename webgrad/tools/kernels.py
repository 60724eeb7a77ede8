"""The kernels of a run: every compiled variant, how often it was launched, and which of them are needless.

In: what the stages tell while a program runs (`Watch`), and the devices' compiled pipelines. Out: `Variant`s
and `Finding`s. A finding shows something that need not have been compiled: it is advice for whoever works on
webgrad or on a kernel, and no error.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph.node import line_of
from ..observing import Note, Observer
from ..runtime.device import opened_gpus
from ..wgsl.minify import minify
from ..wgsl.template import template_names, template_text
from ..wgsl.variants import variant_keys, variant_lines

__all__ = ["Finding", "Shipped", "Variant", "Watch", "findings", "shipped"]

MANY = 8  # variants of one kernel, from which on it is asked whether they are worth it
FEW = 2  # launches of a variant that was hardly worth compiling


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiled pipeline of a run. `role`: "plain" or "in place"."""

    device: str
    name: str
    ops: tuple[str, ...]
    defines: tuple[tuple[str, str], ...]
    checked: bool
    role: str
    launches: int
    requires: tuple[str, ...]
    text: str
    entry: str
    seconds: float  # of compiling
    line: str

    @property
    def label(self) -> str:
        """What its file is called by."""
        return self.name


@dataclass(frozen=True, slots=True)
class Finding:
    """Variants that need not be: why, and where their texts differ."""

    kind: str  # "never launched", "checks", "names", "order", "shared numbers", "numbers", "many"
    variants: tuple[Variant, ...]
    what: str
    difference: tuple[str, ...] = ()  # lines of the first two texts: "- …", "+ …"


@dataclass(frozen=True, slots=True)
class Shipped:
    """A template that ships with webgrad, and how many variants can be asked for."""

    name: str
    variants: int
    entries: tuple[str, ...]
    defines: tuple[str, ...]
    nbytes: int


class Watch(Observer):
    """Counts launches by pipeline, and keeps what each is about."""

    def __init__(self) -> None:
        self._before = {id(each): {_address(one) for one in _compiled(each)} for each in opened_gpus()}
        self._launches: dict[tuple[int, int], int] = defaultdict(int)
        self._notes: dict[tuple[int, int], Note] = {}

    def flushed(self, flush: Any) -> None:
        """A flush was submitted."""
        for each in flush.launches:
            key = id(flush.queue), _address(each.row.pipeline)
            self._launches[key] += 1
            if each.note is not None:
                self._notes.setdefault(key, each.note)

    def variants(self) -> list[Variant]:
        """What was compiled, or launched, since this began; in the order in which it was asked for."""
        found = []
        for device in opened_gpus():
            roles = _roles(device)
            for each in _compiled(device):
                key = id(device.queue), _address(each)
                if key[1] not in self._before.get(id(device), ()) or key in self._launches:
                    role = roles.get(each.pipeline.number, "plain")
                    found.append(self._variant(device, each, key, role))
        return found

    def _variant(self, device: Any, compiled: Any, key: tuple[int, int], role: str) -> Variant:
        program = compiled.pipeline.program
        note = self._notes.get(key, Note(program.label))
        return Variant(
            device.name,
            note.name,
            note.ops,
            program.defines,
            compiled.pipeline.checked,
            role,
            self._launches.get(key, 0),
            tuple(sorted(program.requires)),
            program.text,
            program.entry,
            compiled.seconds,
            line_of(note.where),
        )


def _address(compiled: Any) -> int:
    """What tells pipelines of different texts apart."""
    return int(compiled.argument.value)


def _compiled(device: Any) -> list[Any]:
    with device.queue.lock:
        return list(device.queue.context.compiler.compiled())


def _roles(device: Any) -> dict[int, str]:
    """Which pipelines write in place, by number."""
    roles: dict[int, str] = {}
    for each in device.pipelines():
        roles |= {variant.number: "in place" for _, variant in each.in_place if variant is not None}
    return roles


# What need not have been compiled


def findings(variants: Sequence[Variant]) -> list[Finding]:
    """What is needless among variants, each kind by itself."""
    return [
        *_never_launched(variants),
        *_checks(variants),
        *_alike(variants),
        *_many(variants),
    ]


def _never_launched(variants: Sequence[Variant]) -> Iterator[Finding]:
    for each in variants:
        if not each.launches:
            yield Finding("never launched", (each,), f"{each.name} ({each.role}) was compiled for nothing")


def _checks(variants: Sequence[Variant]) -> Iterator[Finding]:
    both: dict[tuple[str, str], list[Variant]] = defaultdict(list)
    for each in variants:
        both[each.device, each.text].append(each)
    for same in both.values():
        if len({each.checked for each in same}) > 1:
            yield Finding(
                "checks", tuple(same), f"{same[0].name} was compiled with and without bounds checks"
            )


def _alike(variants: Sequence[Variant]) -> Iterator[Finding]:
    """Texts that are one but for names, the order of bindings, which numbers are equal, or numbers."""
    ways = (
        ("names", _renamed, "but for names"),
        ("order", _reordered, "but for the order of their bindings"),
        ("shared numbers", _unshared, "but for which of their numbers happened to be equal"),
        ("numbers", _unnumbered, "but for numbers, which could be parameters"),
    )
    seen: set[frozenset[str]] = set()
    for kind, simpler, words in ways:
        alike: dict[tuple[str, bool, str], dict[str, Variant]] = defaultdict(dict)
        for each in variants:
            alike[each.device, each.checked, simpler(each)].setdefault(each.text, each)
        for same in alike.values():
            texts = frozenset(same)
            if len(same) > 1 and not any(texts <= each for each in seen):
                seen.add(texts)
                first, second = list(same.values())[:2]
                yield Finding(
                    kind,
                    tuple(same.values()),
                    f"{len(same)} texts of {first.name} are the same {words}",
                    _difference(first.text, second.text),
                )


def _many(variants: Sequence[Variant]) -> Iterator[Finding]:
    kinds: dict[tuple[str, str], list[Variant]] = defaultdict(list)
    for each in variants:
        kinds[each.device, each.name.split()[0]].append(each)
    for (_, name), same in kinds.items():
        seldom = [each for each in same if each.launches <= FEW]
        if len(same) >= MANY and 2 * len(seldom) > len(same):
            what = f"{name} has {len(same)} variants, {len(seldom)} of them launched at most {FEW} times"
            yield Finding("many", tuple(same), what)


_PARAMS = re.compile(r"^struct Params \{.*?\}\s*", re.MULTILINE | re.DOTALL)
_BINDING = re.compile(r"^@group\(0\) @binding\(\d+\) var<storage, \w+> (\w+): .*;\n", re.MULTILINE)
_WORD = re.compile(r"\b[a-zA-Z_]\w*")
_PARAMETER = re.compile(r"\bp\.p\d+\b")
_NUMBER = re.compile(r"(?<![\w.])(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)[uifh]?\b")
# What must be known when a text is compiled: sizes of workgroups and arrays, bindings, constants.
_FIXED = re.compile(r"@\w+\([^)]*\)|\barray<[^;{}()]*>|\bconst\b[^;]*;")


def _renamed(variant: Variant) -> str:
    return minify(variant.text, variant.entry)


def _reordered(variant: Variant) -> str:
    """With buffers named by their first use, and declared in that order."""
    declared = {match[1]: match[0] for match in _BINDING.finditer(variant.text)}
    body = _BINDING.sub("", variant.text)
    order = dict.fromkeys(name for name in _WORD.findall(body) if name in declared)
    names = {name: f"buffer{at}" for at, name in enumerate(order)}
    lines = [re.sub(r"@binding\(\d+\)", "", declared[name]) for name in order]
    return _WORD.sub(lambda match: names.get(match[0], match[0]), "".join(lines) + body)


def _unshared(variant: Variant) -> str:
    """Without the parameters' own names: values are told apart by where they are used."""
    return minify(
        _PARAMETER.sub("p.n", _PARAMS.sub("struct Params { n: u32 }\n", variant.text)), variant.entry
    )


def _unnumbered(variant: Variant) -> str:
    text = _unshared(variant)
    fixed = [match.span() for match in _FIXED.finditer(text)]

    def shown(match: re.Match[str]) -> str:
        inside = any(start <= match.start() < end for start, end in fixed)
        return match[0] if inside else "#"

    return _NUMBER.sub(shown, text)


def _difference(first: str, second: str, most: int = 6) -> tuple[str, ...]:
    """The first lines in which two texts differ, the parameters' declaration last."""
    lines = [
        line
        for line in difflib.unified_diff(first.splitlines(), second.splitlines(), lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    lines.sort(key=lambda line: line[1:].startswith("struct Params"))
    return tuple(lines[:most])


# What ships


_ENTRIES = re.compile(r"@compute[^{]*?\bfn\s+(\w+)")


def shipped() -> list[Shipped]:
    """The templates with an entry point, and how many variants of each can be asked for by themselves.

    Of those whose holes the code generator fills there are none: every product has a text of its own.
    """
    found = []
    for name in template_names():
        text = template_text(name)
        keys = list(variant_keys(name))
        entries = tuple(dict.fromkeys(entry for entry, _ in keys) if keys else _ENTRIES.findall(text))
        if entries:
            defines = dict.fromkeys(each for line in variant_lines(text, name) for each, _ in line.choices)
            found.append(Shipped(name, len(keys), entries, tuple(defines), len(text.encode())))
    return found
