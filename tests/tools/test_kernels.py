"""The kernels of a run: every variant with its launches, and those that need not have been compiled."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import webgrad as wg
from tests.runtime.helpers import bench
from webgrad.observing import observe
from webgrad.tools.kernels import MANY, Variant, Watch, findings, shipped
from webgrad.wgsl import program_from_source

TEXT = """struct Params { p0: u32, p1: u32 }
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<u32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = id.x + p.p0;
    if (at < p.p1) { b2[at] = b0[b1[at]] * 3f; }
}
"""


def variant(text: str = TEXT, launches: int = 5, name: str = "map_take", **changes: object) -> Variant:
    made = Variant("webgpu:0", name, (), (), False, "plain", launches, (), text, "main", 0.1, "")
    return replace(made, **changes)  # type: ignore[arg-type]


def kinds(*variants: Variant) -> list[str]:
    return [each.kind for each in findings(variants)]


def test_texts_that_do_different_things_are_not_needless() -> None:
    assert kinds(variant(), variant(TEXT.replace("b0[b1[at]] *", "b0[b1[at]] +"))) == []
    assert kinds(variant(), variant(TEXT.replace("array<u32>", "array<i32>"))) == []
    assert kinds(variant(), variant(TEXT.replace("size(64)", "size(32)"))) == []


def test_what_was_never_launched() -> None:
    (found,) = findings([variant(), variant(TEXT.replace("*", "-"), 0, role="in place")])
    assert found.kind == "never launched"
    assert "in place" in found.what


def test_texts_that_differ_in_names_only() -> None:
    (found,) = findings([variant(), variant(re.sub(r"\bat\b", "place", TEXT))])
    assert found.kind == "names"
    assert any(line.startswith("-") and "at" in line for line in found.difference)


def test_texts_that_differ_in_the_order_of_bindings_only() -> None:
    other = TEXT.replace("b0: array<f32>", "b0: array<u32>").replace("b1: array<u32>", "b1: array<f32>")
    other = other.replace("b0[b1[at]]", "b1[b0[at]]")
    (found,) = findings([variant(), variant(other)])
    assert found.kind == "order"


def test_texts_that_differ_in_which_numbers_were_equal() -> None:
    (found,) = findings([variant(), variant(TEXT.replace("p.p1", "p.p0").replace(", p1: u32", ""))])
    assert found.kind == "shared numbers"
    assert any("if (at < p.p0)" in line for line in found.difference)


def test_numbers_that_could_be_parameters_but_not_those_that_cannot() -> None:
    (found,) = findings([variant(), variant(TEXT.replace("3f", "4f"))])
    assert found.kind == "numbers"
    assert len(found.variants) == 2
    memory = "const most = 8u;\nvar<workgroup> kept: array<f32, 8>;\n"
    used = TEXT.replace("* 3f", "* kept[most]")
    assert kinds(variant(memory + used), variant((memory + used).replace("8", "16"))) == []


def test_the_same_with_and_without_checks() -> None:
    assert kinds(variant(), variant(checked=True)) == ["checks"]


def test_many_variants_with_few_launches() -> None:
    many = [variant(TEXT.replace("*", "- 1f * f32(at) " + "+ 1f " * at + "*"), 1) for at in range(MANY)]
    assert kinds(*many) == ["many"]
    assert kinds(*many[1:]) == []
    assert kinds(*(replace(each, launches=100) for each in many)) == []


@pytest.mark.gpu
def test_a_run_is_counted_by_text() -> None:
    device = bench().device
    x = wg.asarray(np.ones((7, 23), np.float32), device=device)
    wg.eval(wg.exp(x) + 1)
    watch = Watch()
    with observe(watch):
        wg.eval(wg.exp(x) + 1)  # compiled before, launched now
        for _ in range(3):
            wg.eval(wg.softmax(x, axis=-1))
    found = {each.ops[-1]: each for each in watch.variants() if each.device == device.name}
    assert found["add"].launches == 1
    assert found["divide"].launches == 3
    assert found["divide"].seconds > 0
    assert found["divide"].line.startswith(__file__)
    assert "@compute" in found["divide"].text


@pytest.mark.gpu
def test_what_a_kernel_reads_is_numbered_by_use() -> None:
    """The graph meets a value behind a reshape later than one without: the text is the same."""
    device = bench().device
    watch = Watch()
    with observe(watch):
        weights = wg.asarray(np.ones((12, 12), np.float32), device=device)
        for shape in ((12, 12), (144,)):
            x = wg.asarray(np.ones(shape, np.float32), device=device)
            wg.eval(x.reshape(12, 12) @ weights)
    texts = [each.text for each in watch.variants() if "contract" in each.name]
    assert len(texts) == len(set(texts)) == 1


@pytest.mark.gpu
def test_a_text_is_compiled_once_whatever_it_is_called() -> None:
    device = bench().device
    before = device.counters.pipelines_compiled
    pipelines = [device.pipeline(program_from_source(TEXT, label=name)) for name in ("one", "two")]
    compiler = device.queue.context.compiler
    assert len({compiler.get(each).handle for each in pipelines}) == 1
    assert [compiler.get(each).pipeline.program.label for each in pipelines] == ["one", "two"]
    assert device.counters.pipelines_compiled == before + 1
    assert len(compiler.compiled()) == 1


@pytest.mark.gpu
def test_an_error_of_the_compiler_names_the_kernel_that_was_asked_for() -> None:
    device = bench().device
    wrong = TEXT.replace("* 3f", "* 3u")
    for name in ("one", "two"):
        with pytest.raises(wg.CompileError, match=f"refused {name}"):
            device.queue.compile(device.pipeline(program_from_source(wrong, label=name)))


def test_what_ships() -> None:
    rows = {each.name: each for each in shipped()}
    assert rows["scatters.pwgsl"].variants > 50
    assert "scatter_copy" in rows["scatters.pwgsl"].entries
    assert "HOW" in rows["scatters.pwgsl"].defines
    assert rows["matmul.pwgsl"].variants == 0  # it is filled by the code generator only
    assert rows["matmul.pwgsl"].entries == ("matmul_thread", "matmul_lanes", "matmul_tile")
    assert "combine.pwgsl" not in rows
