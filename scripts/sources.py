"""apt's source entries: read both formats, and derive a backports entry from the ones a machine has.

In: the text of `.sources` (deb822) and `.list` (one line each) files. Out: `Source` records and deb822 text.
The derived entry differs from the machine's own in its suite alone, so mirrors, keys and options stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

__all__ = ["Source", "backports", "has_suite", "parse_deb822", "parse_one_line", "to_deb822"]

# one-line option → deb822 field, where it is not just the same word
_FIELDS = {"arch": "Architectures", "lang": "Languages", "target": "Targets", "pdiffs": "PDiffs"}
_KNOWN = ("types", "uris", "suites", "components")


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of apt's sources."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    fields: Mapping[str, str]  # everything else: Signed-By, Architectures, …, values as written


def parse_deb822(text: str) -> Iterator[Source]:
    """The enabled binary entries of a `.sources` file."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n[ \t]*\n", "\n".join(lines)):
        values: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1] in (" ", "\t") and name:
                values[name] += "\n" + line  # a continued value, an inline key say
            elif ":" in line:
                name, value = line.split(":", 1)
                values[name] = value.strip()
        words = {key.lower(): value.split() for key, value in values.items()}
        enabled = words.get("enabled", ["yes"])[:1] not in (["no"], ["false"], ["0"], ["off"])
        if enabled and "deb" in words.get("types", []) and words.get("uris") and words.get("suites"):
            rest = {key: value for key, value in values.items() if key.lower() not in (*_KNOWN, "enabled")}
            yield Source(
                tuple(words["uris"]), tuple(words["suites"]), tuple(words.get("components", [])), rest
            )


def parse_one_line(text: str) -> Iterator[Source]:
    """The binary entries of a `.list` file."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?([^\s\[]\S*)\s+(\S+)([^#]*)", line)
        if match is None:
            continue
        options, uri, suite, components = match.groups()
        pairs = (option.split("=", 1) for option in (options or "").split() if "=" in option)
        # The forms name+=value and name-=value change a default; apt has no such thing for a new entry.
        fields = {_field(name): value.replace(",", " ") for name, value in pairs if name[-1] not in "+-"}
        yield Source((uri,), (suite,), tuple(components.split()), fields)


def _field(option: str) -> str:
    return _FIELDS.get(option.lower(), option.title())


def has_suite(sources: Iterable[Source], suite: str) -> bool:
    """Whether a suite is among the machine's sources already."""
    return any(suite in source.suites for source in sources)


def backports(sources: Iterable[Source], codename: str) -> Source | None:
    """The backports entry of a release, made from its main archive's entry; None where that is not found."""
    candidates = [source for source in sources if codename in source.suites and "main" in source.components]
    if not candidates:
        return None
    # Other archives may also have a suite of that name: the distribution's own looks most like one.
    best = max(candidates, key=lambda source: _likeness(source, codename))
    return replace(best, suites=(f"{codename}-backports",), components=("main",))


def _likeness(source: Source, codename: str) -> int:
    named = any(urlsplit(uri).path.rstrip("/").endswith("/debian") for uri in source.uris)
    return (
        named
        + (f"{codename}-updates" in source.suites)
        + ("archive-keyring" in source.fields.get("Signed-By", ""))
    )


def to_deb822(source: Source) -> str:
    """The entry as the text of a `.sources` file."""
    rows = {
        "Types": "deb",
        "URIs": " ".join(source.uris),
        "Suites": " ".join(source.suites),
        "Components": " ".join(source.components),
        **source.fields,
    }
    return "".join(f"{name}: {value}\n".replace(": \n", ":\n") for name, value in rows.items())
