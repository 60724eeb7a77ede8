"""Final texts for naga and Tint."""

from __future__ import annotations

from webgrad.wgsl import program_from_source
from webgrad.wgsl.renderer import render

TEXT = """\
struct Params { n: u32 }
var<uniform> p: Params;
@group(0) @binding(0) var<storage, read_write> y: array<f16>;
@compute @workgroup_size(8)
fn main(@builtin(subgroup_invocation_id) lane: u32) {
    if (lane < p.n) { y[lane] = f16(subgroupAdd(lane)); }
}
"""
PROGRAM = program_from_source(TEXT)


def test_tint_wants_every_feature_enabled_and_naga_only_f16() -> None:
    assert render(PROGRAM, dialect="tint", parameters="group", minify=False).startswith(
        "enable f16;enable subgroups;struct Params"
    )
    assert render(PROGRAM, dialect="naga", parameters="group", minify=False).startswith(
        "enable f16;struct Params"
    )


def test_params_are_a_uniform_immediates_or_the_last_binding() -> None:
    uniform = render(PROGRAM, dialect="naga", parameters="group", minify=False)
    immediate = render(PROGRAM, dialect="naga", parameters="immediates", minify=False)
    assert "\n@group(1) @binding(0) var<uniform> p: Params;\n" in uniform
    assert "\nvar<immediate> p: Params;\n" in immediate
    last = render(PROGRAM, dialect="tint", parameters="last", minify=False)
    assert f"\n@group(0) @binding({len(PROGRAM.bindings)}) var<uniform> p: Params;\n" in last


def test_lines_are_those_of_the_program() -> None:
    text = render(PROGRAM, dialect="tint", parameters="immediates", minify=False)
    assert len(text.split("\n")) == len(PROGRAM.text.split("\n"))
    assert text.split("\n")[3:] == PROGRAM.text.split("\n")[3:]


def test_minified_text_keeps_the_header() -> None:
    text = render(PROGRAM, dialect="tint", parameters="immediates", minify=True)
    assert text.startswith("enable f16;enable subgroups;struct ")
    assert "var<immediate>" in text
    assert len(text) < len(PROGRAM.text)


def test_texts_without_features_have_no_header() -> None:
    program = program_from_source("@compute @workgroup_size(1) fn main() {}")
    for dialect in ("naga", "tint"):
        assert render(program, dialect=dialect) == "@compute @workgroup_size(1) fn main() {}\n"
