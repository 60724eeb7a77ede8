"""`webgrad export MODEL OUT`: a model as a page that runs in browsers, without Python.

In: what `chat` and `embed` take, an ONNX model, or a folder with a diffusion model; and a folder or an .html
file. Out: the page and its path: one that talks for a model that writes, one that searches for a model that
embeds, a form or a picture, one that paints.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import webgrad as wg

from ..web.embedding import export_embedding_model
from ..web.folder import check_target
from ..web.language import export_language_model
from . import protocols
from .diffusion_export import add_painting, export_painting, is_diffusion
from .onnx_export import export_onnx
from .onnx_models import add_inputs, is_onnx
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
    try:
        page, kind = _exported(options, parser, lambda line: notes.line(line, notes.dim))
    except OSError as error:  # a full disk, say
        raise wg.ArgumentError(f"{options.out} could not be written: {error.strerror or error}") from None
    seconds = time.perf_counter() - start
    files = _files(page, alone)
    if options.json:
        print(json.dumps({"page": str(page), "kind": kind, "bytes": sum(files.values()), "files": files}))
        return 0
    print(page, flush=True)
    weights = sum(size for name, size in files.items() if name.endswith(".safetensors"))
    parts = f", {_megabytes(weights)} of them weights" if weights else ""
    notes.line(f"{_megabytes(sum(files.values()))}{parts}, in {seconds:.0f} s", notes.dim)
    notes.line(f"try it: {f'open {page} in a browser' if alone else f'webgrad serve-static {page.parent}'}")
    return 0


def _exported(options: argparse.Namespace, parser: Parser, report: Callable[[str], None]) -> tuple[Path, str]:
    """The page of a model, and its kind."""
    paints, asks = is_diffusion(options.model), is_onnx(options.model)
    if options.context is not None and (paints or asks):
        kind = "a diffusion model" if paints else "an ONNX model"
        parser.error(f"--context is for models that write, and {options.model} is {kind}")
    if not paints and (options.count or options.size or options.guidance is not None):
        wanted = "--count, --size and --guidance are for diffusion models"
        parser.error(f"{wanted}, and {options.model} is none")
    if asks:
        return export_onnx(options, _title(options, ""), report)
    if options.labels is not None or options.input:
        parser.error(f"--labels and --input are for ONNX models, and {options.model} is none")
    if paints:
        return export_painting(options, _title(options, ""), report)
    model = protocols.load(options.model, options.device)
    writes = hasattr(model, "generate")
    more = {"single_file": options.single_file, "overwrite": options.force, "report": report}
    if writes:
        name = _title(options, "")
        page = export_language_model(model, options.out, context=options.context, name=name, **more)
        return page, "chat"
    if options.context is not None:
        parser.error(f"--context is for models that write, and {options.model} embeds texts")
    return export_embedding_model(model, options.out, name=_title(options, "Search with "), **more), "search"


def _title(options: argparse.Namespace, before: str) -> str:
    """What the page is called; where nobody says so, by the model's name."""
    if options.name:
        return clean(options.name)
    entry = wg.models.catalogue().get(options.model)
    return before + (entry.title if entry is not None else clean(Path(options.model).stem or options.model))


def _files(page: Path, alone: bool) -> dict[str, int]:
    """The page and its large files, with their bytes."""
    names = [page.name]
    if not alone:
        plan = json.loads((page.parent / "plan.json").read_text(encoding="utf-8"))
        names += ["plan.json", "tokenizer.json", *(each["file"] for each in plan["weights"])]
    places = {name: page.parent / name for name in names}
    return {name: place.stat().st_size for name, place in places.items() if place.exists()}


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _parser() -> Parser:
    parser = Parser(
        prog="webgrad export",
        description="Write a page that runs a model in browsers: a chat with a model that writes, a "
        "search through texts with a model that embeds, a form for an ONNX model, or a picture where it has "
        "labels, and pictures painted by a diffusion model.",
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
    labels = "an ONNX model's classes, a line each (default: what it says of itself)"
    parser.add_argument("--labels", type=Path, metavar="FILE", help=labels)
    add_inputs(parser)
    add_painting(parser)
    parser.add_argument(
        "--device",
        default="cpu",
        help="where the model is held meanwhile; nothing is computed (default: cpu)",
    )
    add_json(parser)
    return parser
