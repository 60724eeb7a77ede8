"""`webgrad embed MODEL TEXT …`: texts as vectors that are near each other where their meanings are.

In: texts, from the command line or the lines of a pipe. Out: for people their first numbers and how like each
other they are; for programs all numbers, as JSON or in a file.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import webgrad as wg

from ..arrays import Array, np
from .options import Parser, add_device, add_json, clean, count
from .prompt import lines_of
from .protocols import embedding_model
from .terminal import Output, columns, is_terminal

__all__ = ["main"]

SHOWN = 12  # texts whose likeness is shown
NUMBERS = 4  # of each vector
SUFFIXES = (".npy", ".safetensors")


def main(arguments: Sequence[str]) -> int:
    """Embed the texts and show, print or keep their vectors."""
    parser = Parser(
        prog="webgrad embed",
        description="Turn texts into vectors: the nearer two of them, the more alike what the texts say.",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="a name of the catalogue (minilm), a source, or a path"
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="without any, each line of a pipe is a text")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help=f"write them to a {' or '.join(SUFFIXES)} file"
    )
    parser.add_argument(
        "--batch-size", type=count, default=32, metavar="N", help="texts at once (default: 32)"
    )
    add_device(parser)
    add_json(parser, "print one JSON object with texts and vectors")
    options = parser.parse_args(arguments)
    if options.out is not None and options.out.suffix not in SUFFIXES:
        parser.error(f"--out {options.out} must end with {' or '.join(SUFFIXES)}")
    if not options.texts and is_terminal(sys.stdin):
        parser.error("there are no texts: give some, or lines by a pipe")
    texts = [clean(each) for each in options.texts] or list(lines_of(sys.stdin))
    if not texts:
        parser.error("there are no texts: the pipe had no lines with words")
    if options.out is not None:
        wg.io.check_writable(options.out, SUFFIXES)  # before all the work
    model = embedding_model(options.model, options.device)
    start = time.perf_counter()
    vectors = model.embed(texts, batch_size=options.batch_size).numpy()
    seconds = time.perf_counter() - start
    if options.out is not None:
        wg.io.save(options.out, {"embeddings": wg.asarray(vectors, device="cpu")})
    if options.json:
        print(json.dumps({"texts": texts, "vectors": vectors.tolist()}))
        return 0
    output, notes = Output(sys.stdout), Output(sys.stderr)
    if options.out is None:
        _show(output, texts, vectors)
    kept = f" in {options.out}" if options.out is not None else ""
    speed = f"{len(texts) / seconds:.3g} texts/s on {model.device.name}"
    notes.line(f"{len(texts)} × {vectors.shape[1]} numbers{kept} · {speed}", notes.dim)
    return 0


def _show(output: Output, texts: Sequence[str], vectors: Array) -> None:
    """A line for each text, and for a few texts the cosines between all of them."""
    width = max(20, shutil.get_terminal_size((100, 24)).columns)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1)
    is_small = 1 < len(texts) <= SHOWN
    for number, (text, vector, direction) in enumerate(zip(texts, vectors, directions, strict=True), start=1):
        mark = f"{number:>{len(str(len(texts)))}}  "
        cosines = directions @ direction
        shown = [f"{each:6.3f}" for each in (cosines if is_small else vector[:NUMBERS])]
        figures = "  " + " ".join(shown) + ("" if is_small else " …")
        output.line(mark + _fitted(text, width - len(mark) - len(figures)) + figures)
    if is_small:
        output.line("columns: cosine to text " + ", ".join(map(str, range(1, len(texts) + 1))), output.dim)


def _fitted(text: str, room: int) -> str:
    """A text in just so many columns, but at least ten."""
    room = max(room, 10)
    text = " ".join(text.split())
    if columns(text) > room:
        while columns(text) >= room:
            text = text[:-1]
        text += "…"
    return text + " " * (room - columns(text))
