"""Shorter texts with the same meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wgsl.naga import compiles, run
from webgrad.wgsl import program_from_source
from webgrad.wgsl.minify import minify

GOLDEN = Path(__file__).parent / "golden"


def whole(statements: str, declarations: str = "") -> str:
    return f"{declarations}\n@compute @workgroup_size(1)\nfn main() {{ {statements} }}\n"


def main_body(statements: str, declarations: str = "") -> str:
    """The minified body of main."""
    text = minify(whole(statements, declarations), "main")
    return text.split("fn main(){", 1)[1].removesuffix("}\n")


@pytest.mark.golden
def test_the_example_is_minified_as_kept() -> None:
    source = (GOLDEN / "example.pwgsl").read_text()
    program = program_from_source(source, label="example.pwgsl", entry="scale_rows", defines={"LANES": 4})
    assert program.text == (GOLDEN / "example.wgsl").read_text()
    assert minify(program.text, program.entry) == (GOLDEN / "example.min.wgsl").read_text()


def test_comments_space_and_last_commas_go() -> None:
    assert main_body("_ = 1 + /* two */ 2; // three\n _ = vec2f(1, 2,);") == "_=1+2;_=vec2f(1,2);"


@pytest.mark.parametrize(
    "statement",
    [
        "_=1- -1;",
        "_=1-(-1);",
        "_=a& &b;",
        "_=1/ *p;",
        "_=3>>1u;",
        "_=3>=1;",
        "_=!!true;",
        "_=x<y;",
        "_=- -1;",
    ],
)
def test_signs_that_would_join_keep_their_space(statement: str) -> None:
    assert main_body(statement) == statement


def test_a_closing_template_list_is_not_made_an_operator() -> None:
    assert main_body("var v: array<f32, 2> = array<f32, 2>(); v[0] = 1;") == (
        "var a:array<f32,2> =array<f32,2>();a[0]=1;"
    )


def test_what_is_not_reached_goes() -> None:
    text = whole(
        "_ = used();",
        "const A = 1; const B = A; alias T = f32; struct S { t: T } var<private> v: S; override O = 2;\n"
        "fn used() -> i32 { return 3; } fn unused() -> i32 { return B + O; }",
    )
    assert minify(text, "main").startswith("fn a()->i32{return 3;}\n@compute")


def test_unused_simple_locals_go_with_what_they_used() -> None:
    assert main_body("let a = 1; let b = a + 1; var c = vec2f(f32(b)); const d = 2;", "const E = 1;") == ""
    assert main_body("let a = E; let b = a;", "const E = 1;") == ""


@pytest.mark.parametrize(
    "statements",
    [
        "let a = touch();",
        "let a = atomicAdd(&counter, 1u);",
        "let a = workgroupUniformLoad(&shared_value);",
        "for (var i = 0; true; ) { break; }",
    ],
)
def test_locals_with_an_effect_stay(statements: str) -> None:
    declarations = "fn touch() -> u32 { return 1u; }"
    assert re.search(r"(let|var) \w+=", main_body(statements, declarations))


def test_resource_variables_stay_even_unused() -> None:
    text = whole("", "@group(0) @binding(0) var<storage, read_write> y: array<f32>;")
    assert "@group(0)@binding(0)var<storage,read_write>a:array<f32>;" in minify(text, "main")


def test_shadowing_names_stay_apart() -> None:
    body = main_body("let x = x + 1; { let x = x; y = x; } y = x;", "const x = 1; var<private> y = 0;")
    match = re.fullmatch(r"let (\w)=(\w)\+1;\{let (\w)=(\w);(\w)=(\w);\}(\w)=(\w);", body)
    assert match is not None
    outer, constant, inner, inner_from, target, target_from, target_again, last = match.groups()
    assert (inner_from, target_from, target_again, last) == (outer, inner, target, outer)
    assert len({outer, constant, inner, target}) == 4


def test_members_are_renamed_but_not_swizzles_or_results() -> None:
    text = whole(
        "var s: S; s.first = s.x; s.exp = frexp(s.first).exp; _ = vec4f().xyz; _ = s.second;",
        "struct S { first: f32, x: f32, exp: f32, second: f32 }",
    )
    result = minify(text, "main")
    assert re.match(r"struct \w\{(\w+):f32,x:f32,exp:f32,(\w+):f32\}", result)
    assert ".exp" in result
    assert ".xyz" in result
    assert "first" not in result


def test_names_avoid_words_that_mean_something() -> None:
    lets = "".join(f"var v{i} = {i}; v{i} = 0;" for i in range(3000))
    names = re.findall(r"var (\w+)=", main_body(lets))
    assert len(set(names)) == 3000
    assert not {"as", "do", "fn", "if", "of", "let", "var", "abs", "max", "f32"} & set(names)


def test_used_builtins_are_never_hidden() -> None:
    body = main_body("var first = a(1); first = a(2);", "")  # `a` is nobody's: it must stay free
    assert body == "var b=a(1);b=a(2);"


def test_the_entry_point_keeps_its_name() -> None:
    text = "@compute @workgroup_size(1) fn a() { var value = 1; value = 2; helper(); } fn helper() {}"
    assert minify(text, "a").startswith("@compute@workgroup_size(1)fn a(){var b=1;")


# --- generated programs

NAMES = ["a", "b", "value", "x", "i"]


@st.composite
def expressions(draw: st.DrawFn, scope: list[str], depth: int = 0) -> str:
    leaves = ["1", "2", "G", "p.n", "p.x", *scope]
    if depth > 2 or draw(st.booleans()):
        return draw(st.sampled_from(leaves))
    left, right = (draw(expressions(scope, depth + 1)) for _ in range(2))
    form = draw(st.sampled_from(["({} + {})", "({} * {})", "helper({}, {})", "max({}, {})", "({} - -{})"]))
    return form.format(left, right)


@st.composite
def blocks(draw: st.DrawFn, scope: list[str], depth: int = 0) -> str:
    lines: list[str] = []
    declared: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        visible = sorted({*scope, *declared})
        kind = draw(st.sampled_from(["let", "store", "block", "for", "if"]))
        if kind == "let":
            name = draw(st.sampled_from(NAMES))
            if name in declared or (depth == 0 and name in ("p", "y")):
                continue
            lines.append(f"let {name} = {draw(expressions(visible))};")
            declared.append(name)
        elif kind == "store":
            lines.append(f"y[0] += {draw(expressions(visible))};")
        elif depth < 2:
            head = {"block": "", "if": "if (y[0] > 3)", "for": "for (var i = 0; i < 2; i++)"}[kind]
            inner = sorted({*visible, "i"}) if kind == "for" else visible
            lines.append(f"{head} {{ {draw(blocks(inner, depth + 1))} }}")
    return "\n".join(lines)


@st.composite
def programs(draw: st.DrawFn) -> str:
    return f"""
struct Params {{ n: i32, x: i32 }}
var<uniform> p: Params;
@group(0) @binding(0) var<storage, read_write> y: array<i32>;
const G = 5;
fn helper(a: i32, value: i32) -> i32 {{ let x = a - value; return x + G; }}
fn unused() -> i32 {{ return helper(1, G); }}
@compute @workgroup_size(1)
fn main() {{
{draw(blocks([]))}
y[1] = p.n;
}}
"""


@pytest.mark.property
@given(programs())
def test_minifying_twice_changes_nothing(text: str) -> None:
    program = program_from_source(text)
    once = minify(program.text, "main")
    assert minify(once, "main") == once
    assert len(once) <= len(program.text)


@pytest.mark.gpu
@pytest.mark.property
@settings(max_examples=25)
@given(programs())
def test_minified_programs_compile_and_compute_the_same(text: str) -> None:
    program = program_from_source(text)
    once = minify(program.text, "main")
    compiles(program.text)
    compiles(once)
    params = (3).to_bytes(4, "little") + (4).to_bytes(4, "little")
    assert run(once, "main", params) == run(program.text, "main", params)
