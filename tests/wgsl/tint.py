"""Asking Tint, the compiler of Chrome, what it thinks of a text; needs node and scripts/tint/node_modules."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

__all__ = ["NATIVE_ONLY", "ask", "needs_tint"]

FOLDER = Path(__file__).parents[2] / "scripts" / "tint"
NATIVE_ONLY = frozenset({"int64", "f64", "f32-atomics"})  # WGSL of browsers has no such types


def unavailable() -> str:
    """Why Tint cannot be asked; empty if it can."""
    if shutil.which("node") is None:
        return "TINT WAS NOT ASKED: node is not installed"
    if not (FOLDER / "node_modules" / "webgpu").is_dir():
        return "TINT WAS NOT ASKED: run `npm ci --prefix scripts/tint` first"
    return ""


needs_tint = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "Tint is there")


def ask(texts: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Tint's errors for each label."""
    lines = "".join(json.dumps({"label": label, "text": text}) + "\n" for label, text in texts.items())
    done = subprocess.run(
        ["node", str(FOLDER / "check.mjs")],
        input=lines,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["label"] for answer in answers] == list(texts)
    return {answer["label"]: answer["errors"] for answer in answers}
