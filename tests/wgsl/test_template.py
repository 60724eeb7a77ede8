"""Templates by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from webgrad.errors import CompileError, TemplateError
from webgrad.wgsl import load_template, program_from_source, template

KERNEL = """\
#include "parts/types.pwgsl"
@group(0) @binding(0) var<storage, read_write> y: array<T>;
@compute @workgroup_size(WIDTH)
fn first() { y[0] = T(1); }
@compute @workgroup_size(1)
fn second() { y[0] = zero(); }
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of templates in the place of webgrad/kernels."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "one.pwgsl").write_text(KERNEL)
    (tmp_path / "parts" / "types.pwgsl").write_text(
        '#include "zero.pwgsl"\n#ifndef WIDTH\n#define WIDTH 8\n#endif\n'
    )
    (tmp_path / "parts" / "zero.pwgsl").write_text("fn zero() -> T { return T(0); }\n")
    monkeypatch.setattr(template, "KERNELS", tmp_path)
    template.clear_templates()
    yield tmp_path
    template.clear_templates()


@pytest.mark.usefixtures("kernels")
def test_a_template_becomes_a_program() -> None:
    program = load_template("one.pwgsl", "first", T="f32")
    assert program.label == "one.pwgsl first [T=f32]"
    assert program.defines == (("T", "f32"),)
    assert program.workgroup_size == (8, 1, 1)
    assert program.bindings[0].type == "array<f32>"
    assert "zero" not in program.text


@pytest.mark.usefixtures("kernels")
def test_includes_are_found_beside_the_including_file() -> None:
    program = load_template("one.pwgsl", "second", T="u32")
    assert program.text.startswith("fn zero() -> u32 { return u32(0); }\n")
    assert program.origins[0] == ("parts/zero.pwgsl", 1)


@pytest.mark.usefixtures("kernels")
def test_the_same_request_gives_the_same_program() -> None:
    first = load_template("one.pwgsl", "first", T="f32", WIDTH=4)
    assert load_template("one.pwgsl", "first", WIDTH="4", T="f32") is first
    assert load_template("one.pwgsl", "first", T="f32", WIDTH=8) is not first


def test_a_changed_file_is_read_again_after_clearing(kernels: Path) -> None:
    assert load_template("one.pwgsl", "first", T="f32").workgroup_size == (8, 1, 1)
    (kernels / "one.pwgsl").write_text(KERNEL.replace("WIDTH", "16"))
    template.clear_templates()
    assert load_template("one.pwgsl", "first", T="f32").workgroup_size == (16, 1, 1)


@pytest.mark.usefixtures("kernels")
def test_unknown_names_are_errors_with_near_ones() -> None:
    with pytest.raises(TemplateError, match=r"no template 'on.pwgsl' in webgrad/kernels; near it: one.pwgsl"):
        load_template("on.pwgsl", "first")
    with pytest.raises(TemplateError, match=r"no template 'zzzzzz'.*; there are: one.pwgsl"):
        load_template("zzzzzz", "first")
    with pytest.raises(TemplateError, match=r"one.pwgsl: define `WIDHT` is not mentioned.*near it: WIDTH"):
        load_template("one.pwgsl", "first", T="f32", WIDHT=4)
    with pytest.raises(CompileError, match="no @compute entry point `frist`; there is first, second"):
        load_template("one.pwgsl", "frist", T="f32")


@pytest.mark.parametrize("name", ["../one.pwgsl", "/etc/passwd", "parts/../../x", "..\\x", "a\0b", "", "."])
@pytest.mark.usefixtures("kernels")
def test_only_files_of_the_folder_can_be_read(name: str) -> None:
    with pytest.raises(TemplateError):
        load_template(name, "first")
    with pytest.raises(TemplateError):
        program_from_source(f'#include "{name}"\n', label="mine")


@pytest.mark.usefixtures("kernels")
def test_a_users_source_may_use_the_preprocessor_and_include() -> None:
    program = program_from_source(KERNEL, entry="first", defines={"T": "i32", "WIDTH": 2})
    assert program.label == "kernel"
    assert program.workgroup_size == (2, 1, 1)
    assert program.origins[0] == ("kernel", 2)


def test_a_users_mistake_names_the_label_and_line() -> None:
    with pytest.raises(TemplateError, match=r"^swish\.wgsl:2: #iff is not a directive"):
        program_from_source("fn f() {}\n#iff\n", label="swish.wgsl")
