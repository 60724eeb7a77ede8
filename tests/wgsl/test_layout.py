"""Sizes and offsets as in the WGSL specification."""

from __future__ import annotations

import pytest

from webgrad.errors import CompileError
from webgrad.wgsl.layout import Layout, Layouts
from webgrad.wgsl.source import Source
from webgrad.wgsl.syntax import parse_module


def layout(type_text: str, before: str = "") -> Layout:
    module = parse_module(Source(f"{before}\nvar<private> v: {type_text};"))
    return Layouts(module).type(module.names["v"].type)


@pytest.mark.parametrize(
    ("type_text", "align", "size"),
    [
        ("i32", 4, 4),
        ("f16", 2, 2),
        ("u64", 8, 8),
        ("atomic<u32>", 4, 4),
        ("vec2<f32>", 8, 8),
        ("vec3<f32>", 16, 12),
        ("vec4<f32>", 16, 16),
        ("vec2<f16>", 4, 4),
        ("vec3<f16>", 8, 6),
        ("vec4h", 8, 8),
        ("vec2<u64>", 16, 16),
        ("mat2x2<f32>", 8, 16),
        ("mat3x2<f32>", 8, 24),
        ("mat2x3<f32>", 16, 32),
        ("mat4x4f", 16, 64),
        ("mat2x3<f16>", 8, 16),
        ("array<f32, 5>", 4, 20),
        ("array<vec3<f32>, 2>", 16, 32),
        ("array<array<vec2f, 3>, 2>", 8, 48),
        ("array<f32, 2 * (N + 1)>", 4, 40),
        ("array<f32, u32(M)>", 4, 12),
    ],
)
def test_alignment_and_size(type_text: str, align: int, size: int) -> None:
    found = layout(type_text, "const N = 4; override M: u32 = N - 1;")
    assert (found.align, found.size) == (align, size)


def test_aliases_and_short_names_give_one_spelling() -> None:
    assert layout("array<Row>", "alias Row = vec4f;") == layout("array<vec4<f32>>")
    assert layout("array<vec4u>").spelling == "array<vec4<u32>>"
    assert layout("array<Row>", "alias Row = vec4f;").stride == 16


def test_a_struct_lays_out_its_members() -> None:
    found = layout(
        "S", "struct S { a: u32, b: vec3<f32>, c: f32, @align(32) d: u32, @size(12) e: f32, f: f16 }"
    )
    assert [(one.name, one.offset) for one in found.members] == [
        ("a", 0),
        ("b", 16),
        ("c", 28),
        ("d", 32),
        ("e", 36),
        ("f", 48),
    ]
    assert (found.align, found.size) == (32, 64)


def test_the_specifications_own_example() -> None:
    found = layout(
        "B",
        "struct A { u: f32, v: f32, w: vec2<f32>, x: f32 }"
        "struct B { a: vec2<f32>, b: vec3<f32>, c: f32, d: f32, e: A, f: vec3<f32>, g: array<A, 3>, h: i32 }",
    )
    assert [one.offset for one in found.members] == [0, 16, 28, 32, 40, 64, 80, 152]
    assert (found.align, found.size) == (16, 160)


def test_a_struct_may_end_in_a_runtime_array() -> None:
    found = layout("S", "struct S { count: u32, items: array<vec2<f32>> }")
    assert (found.members[1].offset, found.size) == (8, 16)
    assert found.members[1].layout.runtime


@pytest.mark.parametrize(
    ("type_text", "message"),
    [
        ("vec4<float>", "`float` is not a type of this text"),
        ("vec5<f32>", "`vec5` is not a type of this text; near it: vec"),
        ("vec4", "`vec4` needs one component type"),
        ("vec4f<f32>", "`vec4f` needs one component type"),
        ("texture_2d<f32>", "textures and samplers are not for kernels; use storage buffers"),
        ("array<f32, 0>", "an array of 0 elements"),
        ("array<f32, K>", "`K` is not a const or override of this text"),
        ("array<f32, L>", "override `L` has no default value"),
        ("array<f32, 1.5>", "cannot be worked out"),
        ("array<f32, Q>", "defined by itself"),
        ("R", "defined by itself"),
        ("W", r"@align\(3\) must be a positive power of two"),
        ("f32 f32", "`f32` does not belong in a type"),
    ],
)
def test_mistakes(type_text: str, message: str) -> None:
    before = "override L: u32; const Q = Q + 1; struct R { r: R } struct W { @align(3) w: f32 }"
    with pytest.raises(CompileError, match=message):
        layout(type_text, before)
