"""`webgrad models`: the models on this machine and in the catalogue; one of them in full; or one less.

In: the cache's folder of models. Out: text or JSON. Showing one model reads its files and says whether they
are as they were pulled.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import webgrad as wg

from .options import Parser, add_json
from .text import Line, encodable, layout, size

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """List the models, show one, or remove one."""
    options = _parser().parse_args(arguments)
    if options.remove is not None:
        return _removed(options.remove, as_json=options.json)
    if options.name is not None:
        row = _in_full(options.name)
        return _print(row, _lines_of(row), as_json=options.json)
    rows = _rows()
    return _print(rows, _lines(rows), as_json=options.json)


def _parser() -> Parser:
    parser = Parser(
        prog="webgrad models",
        description="The models on this machine, and those of the catalogue that are not yet here.",
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "name", nargs="?", metavar="NAME", help="show this one: its files, sizes, sha256, path"
    )
    either.add_argument("--remove", metavar="NAME", help="remove this one from the machine")
    add_json(parser, "print JSON")
    return parser


def _rows() -> list[dict[str, Any]]:
    """One row for each model: those of the catalogue first, then the others that were pulled."""
    here = {each.name: each for each in wg.models.pulled()}
    names = [*wg.models.catalogue(), *(name for name in here if name not in wg.models.catalogue())]
    return [_row(name, here.get(name)) for name in names]


def _row(name: str, here: wg.models.Pulled | None) -> dict[str, Any]:
    entry = wg.models.catalogue().get(name)
    row: dict[str, Any] = {"name": name, "pulled": here is not None}
    if entry is not None:
        row |= {"title": entry.title, "purpose": entry.purpose, "family": entry.family}
        row |= {"parameters": entry.parameters, "licence": entry.licence, "source": entry.source}
        row |= {"bytes": entry.size, "download_bytes": entry.download}
    if here is not None:
        row |= {"source": here.source, "bytes": here.size, "path": str(here.path)}
    return row


def _in_full(name: str) -> dict[str, Any]:
    here = {each.name: each for each in wg.models.pulled()}.get(name)
    entry = wg.models.catalogue().get(name)
    if here is not None:
        damaged = here.damaged()
        files = [
            {"name": file, **asdict(row), "damaged": file in damaged} for file, row in here.files.items()
        ]
    elif entry is not None:
        files = [{"name": file, **asdict(row)} for file, row in entry.files.items()]
    else:
        wg.models.locate(name, pull=False)  # says what is wrong with the name, unless it is a path
        raise wg.ArgumentError(f"{name} is a file or folder of your own; this shows models that were pulled")
    return _row(name, here) | {"files": files}


def _removed(name: str, *, as_json: bool) -> int:
    freed = wg.models.remove(name)
    return _print(
        {"name": name, "freed_bytes": freed}, [Line(f"{name}: {size(freed)} removed")], as_json=as_json
    )


# Text


def _print(value: object, lines: Iterator[Line] | Sequence[Line], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(value, indent=2))
        return 0
    text = "\n".join(layout(lines, shutil.get_terminal_size((100, 24)).columns))
    print(encodable(text, sys.stdout.encoding or "ascii"))
    return 0


def _lines(rows: Sequence[dict[str, Any]]) -> Iterator[Line]:
    here = [row for row in rows if row["pulled"]]
    rest = [row for row in rows if not row["pulled"]]
    total = sum(row["bytes"] for row in here)
    yield Line(
        f"{_count(len(here), 'model')} on this machine, {size(total)}"
        if here
        else "No models on this machine"
    )
    for row in here:
        yield Line(row["name"], ", ".join(_parts(row)))
    if rest:
        yield Line("In the catalogue; `webgrad pull NAME` brings them")
    for row in rest:
        yield Line(row["name"], ", ".join((*_parts(row), f"{size(row['download_bytes'])} to fetch")))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _parts(row: dict[str, Any]) -> Iterator[str]:
    if "title" in row:
        yield row["title"]
    yield size(row["bytes"])
    yield row.get("licence", "licence: see its source")
    yield row["source"]


def _lines_of(row: dict[str, Any]) -> Iterator[Line]:
    yield Line(row["name"])
    if "title" in row:
        yield Line("title", f"{row['title']}: {row['purpose']}")
        yield Line("family", f"{row['family']}, {row['parameters'] / 1e6:.1f} million parameters")
        yield Line("licence", row["licence"])
    yield Line("source", row["source"])
    yield Line("path", row.get("path", f"not on this machine; `webgrad pull {row['name']}` brings it"))
    yield Line(f"{_count(len(row['files']), 'file')}, {size(row['bytes'])}")
    for file in row["files"]:
        state = ", NOT as it was pulled: remove the model and pull it again" if file.get("damaged") else ""
        yield Line(file["name"], f"{size(file['size'])}, sha256 {file['sha256']}{state}")
