"""Programs: entry points, bindings, params, features, canonical text and users' mistakes."""

from __future__ import annotations

import pytest

from webgrad.errors import CompileError, ShaderError
from webgrad.wgsl import Binding, Field, Program, program_from_source

KERNEL = """\
struct Params { n: u32, scale: vec3<f32>, shift: i32 }
@group(0) @binding(9) var<uniform> p: Params;
alias Row = vec4<f32>;
@group(1) @binding(0) var<storage, read_write> y: array<Row>;
@group(0) @binding(7)
var<storage> x: array<Row>;
@group(0) @binding(8) var<storage, read_write> log: array<atomic<u32>>;
const WIDTH = 8u;
override HEIGHT: u32 = WIDTH / 4;
fn scaled(v: Row) -> Row { return v * p.scale.x; }
fn note() { atomicAdd(&log[0], 1u); }

@compute @workgroup_size(WIDTH, HEIGHT)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.n) { y[id.x] = scaled(x[id.x]); }
}

@compute @workgroup_size(1)
fn counted() { note(); }
"""


def kernel(text: str, entry: str | None = None) -> Program:
    return program_from_source(text, entry=entry, label="mine")


def body(declarations: str, statement: str = "") -> str:
    return f"{declarations}\n@compute @workgroup_size(64)\nfn main() {{ {statement} }}\n"


def test_bindings_are_in_order_and_renumbered() -> None:
    program = kernel(KERNEL, "main")
    assert program.bindings == (
        Binding("x", "read", "array<vec4<f32>>", 16, 16),
        Binding("y", "read_write", "array<vec4<f32>>", 16, 16),
    )
    assert "@group(0) @binding(0) var<storage> x: array<Row>;" in program.text
    assert "@group(0) @binding(1) var<storage, read_write> y: array<Row>;" in program.text
    assert "@group(1) @binding(0) var<uniform> p: Params;" in program.text


def test_params_have_wgsl_offsets() -> None:
    program = kernel(KERNEL, "main")
    assert program.params == (
        Field("n", "u32", 0, 4),
        Field("scale", "vec3<f32>", 16, 12),
        Field("shift", "i32", 28, 4),
    )
    assert program.params_size == 32


def test_only_what_the_entry_reaches_is_left() -> None:
    program = kernel(KERNEL, "counted")
    assert [binding.name for binding in program.bindings] == ["log"]
    assert program.bindings[0].type == "array<atomic<u32>>"
    assert (program.params, program.params_size) == ((), 0)
    assert program.text.split("\n") == [
        "@group(0) @binding(0) var<storage, read_write> log: array<atomic<u32>>;",
        "fn note() { atomicAdd(&log[0], 1u); }",
        "@compute @workgroup_size(1)",
        "fn counted() { note(); }",
        "",
    ]
    assert [line for _, line in program.origins] == [7, 11, 18, 19]


def test_every_line_has_its_origin() -> None:
    program = kernel(KERNEL, "main")
    lines = program.text.split("\n")[:-1]
    assert len(lines) == len(program.origins)
    written = KERNEL.split("\n")
    for line, (file, number) in zip(lines, program.origins, strict=True):
        assert file == "mine"
        assert line.split("var<")[-1] == written[number - 1].split("var<")[-1]


def test_workgroup_sizes_may_be_constants_and_overrides() -> None:
    assert kernel(KERNEL, "main").workgroup_size == (8, 2, 1)
    assert kernel(KERNEL, "counted").workgroup_size == (1, 1, 1)


def test_a_local_that_hides_a_binding_does_not_use_it() -> None:
    program = kernel(body("@group(0) @binding(0) var<storage> x: array<f32>;", "let x = 1; _ = x;"))
    assert program.bindings == ()


def test_a_scalar_may_be_the_params() -> None:
    program = kernel(body("var<immediate> count: u32;", "_ = count;"))
    assert program.params == (Field("count", "u32", 0, 4),)
    assert program.params_size == 4
    assert "@group(1) @binding(0) var<uniform> count: u32;" in program.text


def test_fixed_types_give_their_size() -> None:
    text = body(
        "struct State { count: u32, items: array<vec2<f32>> }"
        "@group(0) @binding(0) var<storage> a: array<f32, 6>;"
        "@group(0) @binding(1) var<storage> b: State;",
        "_ = a[0]; _ = b.count;",
    )
    assert kernel(text).bindings == (
        Binding("a", "read", "array<f32, 6>", 0, 24),
        Binding("b", "read", "State", 0, 16),
    )


@pytest.mark.parametrize(
    ("declarations", "statement", "features"),
    [
        ("", "_ = 1.0f;", set()),
        ("", "_ = f16(1);", {"f16"}),
        ("enable f16;", "_ = 1.5h;", {"f16"}),
        ("enable f16; enable subgroups;", "_ = 1;", set()),
        ("", "_ = vec4h();", {"f16"}),
        ("", "_ = subgroupAdd(1u);", {"subgroups"}),
        ("", "_ = quadSwapX(1u);", {"subgroups"}),
        ("", "_ = vec2<u64>();", {"int64"}),
        ("", "_ = 0xffli;", {"int64"}),
        ("", "_ = 1.0lf;", {"f64"}),
        ("alias F = f64;", "_ = F();", {"f64"}),
        ("fn half() -> f16 { return 1h; }", "_ = 1;", set()),
        ("fn subgroupMine() {}", "subgroupMine();", set()),
        ("@group(0) @binding(0) var<storage, read_write> s: atomic<f32>;", "_ = &s;", {"f32-atomics"}),
        (
            "alias F = f32; @group(0) @binding(0) var<storage, read_write> s: array<atomic<F>>;",
            "_ = &s;",
            {"f32-atomics"},
        ),
        ("var<workgroup> s: atomic<f32>;", "_ = &s;", {"f32-atomics"}),
        ("", "_ = 0x1fu;", set()),
    ],
)
def test_features_come_from_what_is_used(declarations: str, statement: str, features: set[str]) -> None:
    assert kernel(body(declarations, statement)).requires == features


def test_subgroup_values_are_a_feature() -> None:
    text = "@compute @workgroup_size(8) fn main(@builtin(subgroup_invocation_id) lane: u32) {}"
    assert kernel(text).requires == {"subgroups"}


def test_array_length_is_noticed() -> None:
    declaration = "@group(0) @binding(0) var<storage> x: array<f32>;"
    assert kernel(body(declaration, "_ = arrayLength(&x);")).uses_array_length
    assert not kernel(body(declaration, "_ = x[0];")).uses_array_length


def test_directives_stay_but_enables_go() -> None:
    program = kernel(body("enable f16;\ndiagnostic(off, derivative_uniformity);", "_ = 1h;"))
    assert program.text.startswith("diagnostic(off, derivative_uniformity);\n@compute")


USED = "@group(0) @binding(0) var<storage> a: array<f32>;\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fn main() {}", "mine: there is no entry point; write `@compute @workgroup_size(64) fn main(…)`"),
        (KERNEL, "mine: there are several entry points (main, counted); say which with entry=…"),
        ("@compute fn main() {}", "mine:1: entry point `main` needs @workgroup_size(64), say"),
        (
            "@compute @workgroup_size(0) fn main() {}",
            "mine:1: @workgroup_size takes one to three numbers from 1 up",
        ),
        (
            "@compute @workgroup_size(N) fn main() {}",
            "mine:1: the integer constant cannot be worked out: `N` is",
        ),
        (
            body("\nvar t: texture_2d<f32>;", "_ = t;"),
            "mine:2: `texture_2d`: textures and samplers are not for",
        ),
        (body("var s: sampler;", "_ = s;"), "mine:1: `sampler`: textures and samplers are not for kernels"),
        (body("var x: f32;", "_ = x;"), "mine:1: var `x` needs an address space"),
        (
            body("var<uniform> p: u32;\nvar<uniform> q: u32;", "_ = p + q;"),
            "mine:2: `p` and `q` are both params variables; a kernel has one: put all fields in one struct",
        ),
        (
            body(USED + "@group(0) @binding(0) var<storage> b: array<f32>;", "_ = a[0] + b[0];"),
            "mine:2: @group(0) @binding(0) is used twice, by `a` and `b`; give each its own number",
        ),
        (body("var<storage> b: array<f32>;", "_ = b[0];"), "mine:1: var<storage> `b` needs its place"),
        (body("@group(0) @binding(0) var<storage> b;", "_ = b;"), "mine:1: var<storage> `b` has no type"),
        (
            body("@group(0) @binding(0) var<storage, write> b: array<f32>;", "_ = b[0];"),
            "mine:1: `write` is not an",
        ),
        (
            body("struct P {\n  n: u32,\n  h: array<u32, 4>,\n}\nvar<uniform> p: P;", "_ = p.n;"),
            "mine:3: params field `h` is array<u32, 4>; allowed are i32, u32, f32 and vec2",
        ),
        (body("var<uniform> p: mat2x2<f32>;", "_ = p;"), "mine:1: params field `p` is mat2x2<f32>"),
    ],
)
def test_mistakes_say_where_and_what_to_do(text: str, message: str) -> None:
    with pytest.raises(ShaderError) as caught:
        kernel(text)
    assert str(caught.value).startswith(message)


def test_what_we_need_not_know_is_left_to_the_compiler() -> None:
    text = body("override n: u32;\nvar<workgroup> w: array<f32, n>;", "_ = w[0];")
    assert kernel(text).workgroup_size == (64, 1, 1)


def test_an_unknown_entry_is_an_error_that_lists_them() -> None:
    with pytest.raises(CompileError, match="no @compute entry point `man`; there is main, counted"):
        kernel(KERNEL, "man")
