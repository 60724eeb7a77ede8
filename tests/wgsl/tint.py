"""Asking Tint, the compiler of Chrome, what it thinks of a text; needs node and scripts/web/node_modules."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from scripts.browser import find
from scripts.npm import FOLDER, lacking
from tests.limits import HANG

__all__ = ["NATIVE_ONLY", "ask", "needs_tint"]

NATIVE_ONLY = frozenset({"int64", "f64", "f32-atomics"})  # WGSL of browsers has no such types
UNAVAILABLE = lacking("webgpu")
needs_tint = pytest.mark.skipif(bool(UNAVAILABLE), reason=f"TINT WAS NOT ASKED: {UNAVAILABLE}")


def ask(texts: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Tint's errors for each label."""
    lines = "".join(json.dumps({"label": label, "text": text}) + "\n" for label, text in texts.items())
    done = subprocess.run(
        [str(find("node")), str(FOLDER / "tint.mjs")],
        input=lines,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["label"] for answer in answers] == list(texts)
    return {answer["label"]: answer["errors"] for answer in answers}
