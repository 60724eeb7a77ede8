"""Tint, the compiler of Chrome, takes every shipped kernel.

Here rather than with the tests of wgsl: the variants that naga's tests expand are found again.
"""

from __future__ import annotations

import pytest

from tests.wgsl.tint import NATIVE_ONLY, ask, needs_tint
from webgrad.wgsl.renderer import render
from webgrad.wgsl.variants import all_variants

BROKEN = "@compute @workgroup_size(1)\nfn main() { let x: i32 = 1.5; }\n"
BARRIER = (
    "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
    "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {\n"
    "    if (y[i] > 0u) { workgroupBarrier(); }\n"
    "}\n"
)


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
            texts[program.label] = render(program, dialect="tint", parameters="group", minify=minify)
    assert texts, "no template declares a variant"
    failures = {label: errors for label, errors in ask(texts).items() if errors}
    shown = [f"{label}: {errors[0]}" for label, errors in list(failures.items())[:10]]
    assert not failures, f"{len(failures)} of {len(texts)} variants refused:\n" + "\n".join(shown)
