"""`webgrad export MODEL OUT`: a model as a page that runs in browsers, without Python.

In: what `chat` and `embed` take, and a folder or an .html file. Out: the page and its path: one that talks
for a model that writes, one that searches for a model that embeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..web.embedding import export_embedding_model
from ..web.folder import check_target
from ..web.language import export_language_model
from . import protocols
from .options import Parser, add_json, clean, count
from .terminal import Output

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Write the page, and say how to try it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    notes = Output(sys.stderr)
    folder = check_target(options.out, overwrite=options.force)  # before all the work
    alone = folder != options.out or options.single_file
    start = time.perf_counter()
    model = protocols.load(options.model, options.device)
    writes = hasattr(model, "generate")
    if not writes and options.context is not None:
        parser.error(f"--context is for models that write, and {options.model} embeds texts")
    page = _exported(model, options, notes, writes)
    seconds = time.perf_counter() - start
    files = _files(page, alone)
    if options.json:
        kind = "chat" if writes else "search"
        print(json.dumps({"page": str(page), "kind": kind, "bytes": sum(files.values()), "files": files}))
        return 0
    print(page, flush=True)
    weights = sum(size for name, size in files.items() if name.endswith(".safetensors"))
    parts = f", {_megabytes(weights)} of them weights" if weights else ""
    notes.line(f"{_megabytes(sum(files.values()))}{parts}, in {seconds:.0f} s", notes.dim)
    notes.line(f"try it: {f'open {page} in a browser' if alone else f'webgrad serve-static {page.parent}'}")
    return 0


def _exported(model: Any, options: argparse.Namespace, notes: Output, writes: bool) -> Path:
    title = clean(options.name) if options.name else _title(options.model, writes)

    def report(line: str) -> None:
        notes.line(line, notes.dim)

    more = {
        "single_file": options.single_file,
        "overwrite": options.force,
        "name": title,
        "report": report,
    }
    try:
        if writes:
            return export_language_model(model, options.out, context=options.context, **more)
        return export_embedding_model(model, options.out, **more)
    except OSError as error:  # a full disk, say
        raise wg.ArgumentError(f"{options.out} could not be written: {error.strerror or error}") from None


def _title(model: str, writes: bool) -> str:
    """What the page is called where nobody says so."""
    entry = wg.models.catalogue().get(model)
    name = entry.title if entry is not None else clean(Path(model).stem or model)
    return name if writes else f"Search with {name}"


def _files(page: Path, alone: bool) -> dict[str, int]:
    """The page and its large files, with their bytes."""
    names = [page.name]
    if not alone:
        plan = json.loads((page.parent / "plan.json").read_text(encoding="utf-8"))
        names += ["plan.json", "tokenizer.json", *(each["file"] for each in plan["weights"])]
    return {name: (page.parent / name).stat().st_size for name in names}


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="webgrad export",
        description="Write a page that runs a model in browsers: a chat with a model that writes, a "
        "search through texts with a model that embeds.",
    )
    parser.add_argument("model", metavar="MODEL", help="a name of the catalogue, a source, or a path")
    parser.add_argument("out", metavar="OUT", type=Path, help="a folder, or an .html file to have one file")
    parser.add_argument("--single-file", action="store_true", help="one HTML file, which needs no server")
    parser.add_argument("--force", action="store_true", help="replace files that are not of an export, too")
    parser.add_argument("--name", metavar="TITLE", help="what the page is called (default: the model's name)")
    parser.add_argument(
        "--context",
        type=count,
        metavar="N",
        help="tokens of a conversation (default: 2048, or less where its caches would take over 256 MiB)",
    )
    parser.add_argument(
        "--device",
        default="cpu",
        help="where the model is held meanwhile; nothing is computed (default: cpu)",
    )
    add_json(parser)
    return parser
