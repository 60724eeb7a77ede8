"""What kind files are of, by their contents alone: Magika, a network of 3 MB that knows 214 kinds.

    python examples/file_kinds.py README.md examples/*.py somewhere/unnamed

A kind that is told with little confidence is told as what is certain: text, or unknown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from arguments import run

import webgrad as wg

BATCH = 16  # files at once; a last batch is filled up, so that there is one shape


def features(path: Path, settings: dict[str, Any]) -> list[int]:
    """The first and the last bytes of a file without the white space around it, filled up to a length."""
    with path.open("rb") as file:
        begin = file.read(settings["block_size"])
        file.seek(max(0, path.stat().st_size - settings["block_size"]))
        end = file.read(settings["block_size"])
    first = list(begin.lstrip()[: settings["beg_size"]])
    last = list(end.rstrip()[-settings["end_size"] :])
    padding = settings["padding_token"]
    first += [padding] * (settings["beg_size"] - len(first))
    return first + [padding] * (settings["end_size"] - len(last)) + last


def is_too_short(row: Sequence[int], settings: dict[str, Any]) -> bool:
    """Whether a file has too few bytes for the network."""
    return row[settings["min_file_size_for_dl"] - 1] == settings["padding_token"]


def is_text(path: Path) -> bool:
    """Whether a file's beginning is text; a letter may be cut at the end."""
    data = path.open("rb").read(4096)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(data) - 4 and error.end == len(data)
    return True


def kind_of(path: Path, scores: Any, settings: dict[str, Any]) -> tuple[str, float]:
    """The likeliest kind and its score; without enough of that, what is certain."""
    best = int(scores.argmax())
    kind, score = settings["target_labels_space"][best], float(scores[best])
    if score < settings["thresholds"].get(kind, settings["medium_confidence_threshold"]):
        return ("txt" if is_text(path) else "unknown"), score
    return settings["overwrite_map"].get(kind, kind), score


def kinds_of(paths: Sequence[Path], device: str | None = None) -> list[tuple[str, float]]:
    """The kinds of files, each with a score from 0 to 1."""
    model = wg.onnx.load("magika", device=device)
    settings = json.loads((wg.models.locate("magika").parent / "config.min.json").read_text("utf-8"))
    rows = np.asarray([features(path, settings) for path in paths], np.int32)
    scores = []
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        filled = np.concatenate([batch, np.repeat(batch[-1:], BATCH - len(batch), axis=0)])
        scores.append(model(filled)["target_label"].numpy()[: len(batch)])
    found = []
    for path, row, each in zip(paths, rows, np.concatenate(scores), strict=True):
        if path.stat().st_size == 0:
            found.append(("empty", 1.0))
        elif is_too_short(row, settings):
            found.append(("txt" if is_text(path) else "unknown", 1.0))
        else:
            found.append(kind_of(path, each, settings))
    return found


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(description="Say what kind files are of, by their contents.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--device", help="cpu, webgpu, webgpu:N … (default: the best)")
    options = parser.parse_args()
    for path in options.files:
        if not path.is_file():
            parser.error(f"there is no file {path}")
    width = max(len(str(path)) for path in options.files)
    for path, (kind, score) in zip(options.files, kinds_of(options.files, options.device), strict=True):
        print(f"{path!s:{width}}  {kind:12} {score:6.1%}")


if __name__ == "__main__":
    run(main)
