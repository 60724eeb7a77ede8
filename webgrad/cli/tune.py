"""`webgrad tune`: what was measured on this machine and kept on disk, as a list; or none of it any more.

In: the entries of `with wg.tune():` and WEBGRAD_TUNE=1. Out: text. No GPU is touched.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence

from ..errors import ConfigError
from ..tuning.entries import Entries, Entry, entries_folder
from .options import Parser
from .text import Line, encodable, layout

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """List the entries, or clear them."""
    parser = Parser(
        prog="webgrad tune",
        description="Kernel choices that were measured inside `with wg.tune():` or with WEBGRAD_TUNE=1.",
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--list", action="store_true", help="show what was measured (the default)")
    either.add_argument("--clear", action="store_true", help="remove it: kernels are measured anew")
    options = parser.parse_args(arguments)
    folder = entries_folder()
    if folder is None:
        raise ConfigError("there is no home folder to keep anything in: name one with WEBGRAD_CACHE.")
    entries = Entries(folder)
    if options.clear:
        try:
            print(f"{entries.clear()} entries removed from {folder}")
        except OSError as error:
            raise ConfigError(f"{folder} cannot be cleared: {error.strerror}.") from error
        return 0
    text = "\n".join(layout(_lines(entries), shutil.get_terminal_size((100, 24)).columns))
    print(encodable(text, sys.stdout.encoding or "ascii"))
    return 0


def _lines(entries: Entries) -> Iterator[Line]:
    found = list(entries)
    yield Line(f"{len(found)} entries in {entries.folder}")
    adapter = ""
    for path, entry in sorted(found, key=lambda each: str(each[1] and each[1].key.get("adapter"))):
        if entry is None:
            yield Line(path.name, "damaged: it will be measured anew")
            continue
        if entry.key.get("adapter") != adapter:
            adapter = str(entry.key.get("adapter"))
            yield Line(f"{adapter}, {entry.key.get('driver')}")
        yield Line(*_described(entry))


def _described(entry: Entry) -> tuple[str, str]:
    shapes = " ".join("×".join(map(str, each)) or "()" for each in entry.key.get("shapes", ()))
    winner = ", ".join(f"{name} {value}" for name, value in entry.winner)
    seconds = next(each.seconds for each in entry.candidates if each.choice == entry.winner)
    gain = f", {entry.gain:.2f} × the default" if entry.gain > 1 else ", the default"
    return str(entry.key.get("kernel")), f"{shapes}: {winner}{gain}, {(seconds or 0) * 1e3:.3f} ms"
