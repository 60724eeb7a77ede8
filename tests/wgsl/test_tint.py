"""Tint, the compiler of Chrome, takes every shipped kernel; needs node and scripts/tint/node_modules."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from webgrad.wgsl import render
from webgrad.wgsl.variants import all_variants

FOLDER = Path(__file__).parents[2] / "scripts" / "tint"
NATIVE_ONLY = frozenset({"int64", "f64", "f32-atomics"})  # WGSL of browsers has no such types
BROKEN = "@compute @workgroup_size(1)\nfn main() { let x: i32 = 1.5; }\n"
BARRIER = (
    "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
    "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {\n"
    "    if (y[i] > 0u) { workgroupBarrier(); }\n"
    "}\n"
)


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


@needs_tint
def test_tint_finds_mistakes() -> None:
    errors = ask({"broken": BROKEN, "barrier": BARRIER, "good": BROKEN.replace("1.5", "1")})
    assert errors["broken"][0]["line"] == 2
    assert "cannot convert" in errors["broken"][0]["message"]
    assert "uniform control flow" in errors["barrier"][0]["message"]
    assert errors["good"] == []


@needs_tint
@pytest.mark.parametrize("minify", [False, True], ids=["plain", "minified"])
def test_tint_takes_every_variant(minify: bool) -> None:
    texts: dict[str, str] = {}
    for program in all_variants():
        if not program.requires & NATIVE_ONLY:
            texts[program.label] = render(program, dialect="tint", immediates=False, minify=minify)
    assert texts, "no template declares a variant"
    failures = {label: errors for label, errors in ask(texts).items() if errors}
    shown = [f"{label}: {errors[0]}" for label, errors in list(failures.items())[:10]]
    assert not failures, f"{len(failures)} of {len(texts)} variants refused:\n" + "\n".join(shown)
