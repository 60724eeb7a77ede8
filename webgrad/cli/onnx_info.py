"""`webgrad info model.onnx`: what an ONNX model takes and gives, who made it, and what it is made of.

In: a model. Out: text or JSON. Nothing is computed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import webgrad as wg

from .onnx_models import load
from .terminal import clean_line
from .text import Line, encodable, layout, size

__all__ = ["info_onnx"]

SHOWN = 200  # letters of a model's own facts


def info_onnx(name: str, *, as_json: bool) -> int:
    """Print what is in a model's file."""
    facts = facts_of(load(name, "cpu"))
    if as_json:
        print(json.dumps(facts, indent=2))
        return 0
    text = "\n".join(layout(_lines(facts), shutil.get_terminal_size((100, 24)).columns))
    print(encodable(text, sys.stdout.encoding or "ascii"))
    return 0


def facts_of(model: wg.onnx.Model) -> dict[str, Any]:
    """What a model's file says, in plain JSON types."""
    summary = model.summary()
    return {
        "file": model.source,
        "bytes": Path(model.source).stat().st_size,
        "producer": summary.producer,
        "opsets": {domain or "ai.onnx": version for domain, version in summary.opsets.items()},
        "inputs": [str(each) for each in model.inputs],
        "outputs": [str(each) for each in model.outputs],
        "parameters": summary.parameters,
        "nodes": sum(summary.operators.values()),
        "operators": dict(summary.operators),
        "metadata": dict(model.contents.metadata),
    }


def _lines(facts: dict[str, Any]) -> Iterator[Line]:
    yield Line(f"{Path(facts['file']).name}")
    yield Line("file", f"{facts['file']}, {size(facts['bytes'])}")
    yield Line("made by", clean_line(facts["producer"]) or "not said")
    opsets = (f"{domain} {version}" for domain, version in facts["opsets"].items())
    yield Line("operator sets", clean_line(", ".join(opsets)))
    yield Line("parameters", f"{facts['parameters']:,}")
    for kind in ("inputs", "outputs"):
        yield Line(kind)
        yield from (Line("", clean_line(each)) for each in facts[kind])
    yield Line(f"{facts['nodes']:,} nodes")
    yield Line("", ", ".join(f"{count} {name}" for name, count in facts["operators"].items()))
    if facts["metadata"]:
        yield Line("What it says of itself")
    for name, text in facts["metadata"].items():
        shown = clean_line(text)
        yield Line(clean_line(name), shown[:SHOWN] + ("…" if len(shown) > SHOWN else ""))
