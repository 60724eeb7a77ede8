"""`webgrad native`: how much native code was compiled here and kept on disk; or none of it any more.

In: the object files of `native/objects.py`. Out: text. Nothing is compiled.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence

from ..errors import ConfigError
from ..native.compiler import OLDEST, is_available, objects
from ..native.objects import Objects
from ..native.processor import chosen
from .options import Parser
from .text import Line, encodable, layout, size

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Say what there is, or clear it."""
    parser = Parser(
        prog="webgrad native",
        description="Native code for the cpu, compiled by llvmlite and kept for the next process.",
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--list", action="store_true", help="show how much is kept (the default)")
    either.add_argument("--clear", action="store_true", help="remove it: code is compiled anew")
    options = parser.parse_args(arguments)
    kept = objects()
    if kept.folder is None:
        raise ConfigError("there is no home folder to keep anything in: name one with WEBGRAD_CACHE.")
    if options.clear:
        try:
            print(f"{kept.clear()} files removed from {kept.folder}")
        except OSError as error:
            raise ConfigError(f"{kept.folder} cannot be cleared: {error.strerror}.") from error
        return 0
    text = "\n".join(layout(_lines(kept), shutil.get_terminal_size((100, 24)).columns))
    print(encodable(text, sys.stdout.encoding or "ascii"))
    return 0


def _lines(kept: Objects) -> Iterator[Line]:
    count, nbytes = kept.usage()
    yield Line(f"{count} files in {kept.folder}")
    room = (
        f"{size(nbytes)} of {size(kept.limit)}"
        if kept.limit
        else "nothing is kept: WEBGRAD_NATIVE_CACHE is 0"
    )
    yield Line("size", room)
    yield Line("processor", _processor())


def _processor() -> str:
    """What is compiled for."""
    if not is_available():
        oldest = ".".join(map(str, OLDEST))
        return (
            f"no native code here: it is switched off, or needs llvmlite {oldest} or newer, x86-64 or ARM64"
        )
    found = chosen()
    has = (("fma", found.has_fma), ("half floats", found.has_halves), ("masks", found.has_masks))
    named = ", ".join(name for name, there in has if there) or "nothing more"
    return f"{found.cpu}: {found.registers} vector registers of {found.register_bytes} bytes, {named}"
