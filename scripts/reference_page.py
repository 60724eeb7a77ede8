"""Write docs/reference/ from the public names and their docstrings: `python -m scripts.reference_page`.

In: `webgrad` and the libraries built on it. Out: a page for each row of `PAGES` (reference_table.py), with
every public name's signature, text and example. A name that no row takes is an error, so nothing public is
left out. A test fails where the pages are not what this would write.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import webgrad as wg
from scripts.reference_entries import cell, entry, first_paragraph, function_of, members, prose
from scripts.reference_table import CONSTANTS, PAGES, Page, Section
from scripts.stubs import in_order
from scripts.system import ROOT

__all__ = ["FOLDER", "PAGES", "main", "names_of", "pages", "public_names"]

FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- made by `python -m scripts.reference_page` -->"
# How a namespace is spelled in code → its module
NAMESPACES: Mapping[str, Any] = {
    "wg": wg,
    "wg.random": wg.random,
    **{
        f"wg.{name}": importlib.import_module(f"webgrad.{name}")
        for name in (
            *("nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize"),
            *("nn.utils.parametrizations", "nn.utils.prune", "optim", "optim.lr_scheduler", "amp", "data"),
            *("data.datasets", "io", "linalg", "fft", "signal", "signal.windows", "special", "models"),
            "training",
        )
    },
}


@functools.cache
def public_names() -> dict[str, Any]:
    """Every public name as it is spelled in code → its object; namespaces are none of them."""
    return {
        f"{space}.{name}": getattr(module, name)
        for space, module in NAMESPACES.items()
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
    }


def names_of(*modules: ModuleType) -> list[str]:
    """The public names that modules of functions give webgrad."""
    homes = {module.__name__.removeprefix("webgrad.") for module in modules}
    return [name for name, home in wg._HOMES.items() if home in homes]


def home(spelling: str, thing: Any) -> str:
    """The module that a name is told of, as a section names it."""
    space, name = spelling.rsplit(".", 1)
    if space == "wg" and name in wg._HOMES:
        return wg._HOMES[name]
    if name in CONSTANTS:
        return "constants"
    return str(getattr(thing, "__module__", "")).removeprefix("webgrad.")


def _fits(homes: tuple[str, ...], found: str) -> bool:
    return not homes or any(
        found == each or (each.endswith(".*") and found.startswith(each[:-1])) for each in homes
    )


@functools.cache
def placed() -> dict[str, tuple[str, str]]:
    """Every public name → the page and the section that tells of it."""
    places: dict[str, tuple[str, str]] = {}
    for spelling, thing in public_names().items():
        space = spelling.rsplit(".", 1)[0]
        found = home(spelling, thing)
        for page in PAGES:
            for section in page.sections:
                if section.namespace == space and _fits(section.homes, found):
                    places.setdefault(spelling, (page.name, section.title))
        if spelling not in places:
            raise SystemExit(f"no page of scripts/reference_table.py takes {spelling} of webgrad.{found}")
    return places


def told_elsewhere(spelling: str, thing: Any) -> str | None:
    """The spelling under which the same function or class is told of already."""
    first = _first_spellings().get(id(thing)) if callable(thing) else None
    return first if first != spelling else None


@functools.cache
def _first_spellings() -> dict[int, str]:
    """By identity, so that what is told elsewhere is the same thing."""
    found: dict[int, str] = {}
    for spelling, thing in public_names().items():
        found.setdefault(id(thing), spelling)
    return found


def anchors() -> dict[str, str]:
    """Every public name → the address of its entry, from docs/reference/."""
    addresses: dict[str, str] = {}
    places = placed()
    for page in PAGES:
        used = {section.title.lower().replace(" ", "-") for section in page.sections}
        used.add(page.title.lower())
        for section in page.sections:
            for spelling, _ in _names_of(page, section, places):
                slug = name = spelling.rsplit(".", 1)[1].lower()
                number = 0
                while slug in used:
                    number += 1
                    slug = f"{name}_{number}"
                used.add(slug)
                addresses[spelling] = f"{page.name}.md#{slug}"
    return addresses


def _names_of(page: Page, section: Section, places: Mapping[str, tuple[str, str]]) -> list[tuple[str, Any]]:
    """The names of a section that have an entry there, in alphabetical order."""
    names = public_names()
    own = [each for each, place in places.items() if place == (page.name, section.title)]
    ordered = sorted(own, key=in_order)
    return [(each, names[each]) for each in ordered if told_elsewhere(each, names[each]) is None]


def pages() -> dict[str, str]:
    """File name → text of every page of the reference."""
    places, addresses = placed(), anchors()
    written = {f"{page.name}.md": _page(page, places, addresses) for page in PAGES}
    return {"index.md": _index(addresses), **written}


def _page(page: Page, places: Mapping[str, tuple[str, str]], addresses: Mapping[str, str]) -> str:
    parts = [f"# {page.title}", NOTE, page.sentence]
    for section in page.sections:
        if section.title != page.title:
            parts.append(f"## {section.title}")
        parts += _section(page, section, places, addresses)
    return "\n\n".join(parts) + "\n"


def _section(
    page: Page, section: Section, places: Mapping[str, tuple[str, str]], addresses: Mapping[str, str]
) -> Iterator[str]:
    names = public_names()
    own = [each for each, place in places.items() if place == (page.name, section.title)]
    again = [(each, other) for each in own if (other := told_elsewhere(each, names[each]))]
    if again:
        rows = [f"| `{each}` | [`{other}`]({_to(page, addresses[other])}) |" for each, other in again]
        yield "\n".join(["| name | is |", "|---|---|", *rows])
    for spelling, thing in _names_of(page, section, places):
        yield f"### {spelling.rsplit('.', 1)[1].replace('__', chr(92) + '_' + chr(92) + '_')}"
        yield from _told(spelling, thing, addresses)


def _to(page: Page, address: str) -> str:
    return address.removeprefix(f"{page.name}.md")


def _told(spelling: str, thing: Any, addresses: Mapping[str, str]) -> Iterator[str]:
    name = spelling.rsplit(".", 1)[1]
    if isinstance(thing, wg.DType):
        yield f"```py\n{spelling}\n```"
        yield f"{thing.itemsize} bytes an element." if thing.itemsize > 1 else "1 byte an element."
    elif name in CONSTANTS:
        yield f"```py\n{spelling}\n```"
        yield CONSTANTS[name]
    elif thing is wg.Tensor:
        yield from entry(spelling, thing)[:-1]
        yield from _methods(thing, addresses)
    else:
        yield from entry(spelling, thing)


def _methods(thing: type, addresses: Mapping[str, str]) -> Iterator[str]:
    """Every member of a class: functions of webgrad in a table, the others with an entry each."""
    found = sorted(members(thing), key=lambda pair: pair[0].lower())
    functions = {name: _first_spellings().get(id(member)) for name, member in found}
    yield "## Methods and properties"
    for name, member in found:
        if functions[name]:
            continue
        yield f"### x.{name}"
        function = function_of(member)
        if isinstance(member, property):
            yield prose(first_paragraph(function))
        else:
            yield from entry(f"x.{name}", function)
    yield "## Functions that are methods"
    yield "`x.sum(axis=0)` is `wg.sum(x, axis=0)`, and so on:"
    rows = [
        f"| `x.{name}` | [`{first}`]({addresses[first]}) | {cell(prose(first_paragraph(member)))} |"
        for name, member in found
        if (first := functions[name])
    ]
    yield "\n".join(["| method | function | |", "|---|---|---|", *rows])


def _index(addresses: Mapping[str, str]) -> str:
    rows = [
        f"| [{page.title}]({page.name}.md) | {page.sentence} |" for page in PAGES if page.name != "errors"
    ]
    rows.append("| [Errors](errors.md) | All are `WebgradError`s. |")
    names = [
        f"[`{spelling.removeprefix('wg.')}`]({addresses[spelling]})"
        for spelling in sorted(addresses, key=str.lower)
        if spelling.count(".") == 1
    ]
    return (
        "\n\n".join(
            [
                "# API reference",
                NOTE,
                "Every public name, with its signature, what it does, and an example that the tests run; "
                "`wg` is `import webgrad as wg`. [Ops](../ops.md) has the primitives beneath, with their "
                "dtypes, gradients and accuracy.",
                "\n".join(["| page | |", "|---|---|", *rows]),
                "## All names of wg",
                " · ".join(names),
            ]
        )
        + "\n"
    )


def main() -> int:
    """The command line."""
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
