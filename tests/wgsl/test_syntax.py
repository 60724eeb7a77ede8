"""A module's declarations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgrad.errors import CompileError
from webgrad.wgsl.source import Source
from webgrad.wgsl.syntax import Module, parse_module

TEXT = """\
enable f16;
diagnostic(off, derivative_uniformity);
struct Pair { @align(16) a: vec4<f32>, b: array<u32, 4>, };
alias Row = vec4<f32>;
const N = 4u;
override M: u32 = 2 * 3;
const_assert N < 8u;
@group(0) @binding(1) var<storage, read_write> y: array<Row>;
var<workgroup> tile: array<array<f32, 8>, 8>;
fn helper(a: f32, b: ptr<function, Row>) -> f32 { return a; }
;
@compute @workgroup_size(8, N)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { if (id.x < 3) { y[0] = Row(); } }
"""


def parse(text: str) -> Module:
    return parse_module(Source(text))


def test_every_declaration_is_found() -> None:
    module = parse(TEXT)
    assert [(one.kind, one.name) for one in module.declarations] == [
        ("directive", ""),
        ("directive", ""),
        ("struct", "Pair"),
        ("alias", "Row"),
        ("const", "N"),
        ("override", "M"),
        ("const_assert", ""),
        ("var", "y"),
        ("var", "tile"),
        ("fn", "helper"),
        ("fn", "main"),
    ]
    assert [one.name for one in module.entries()] == ["main"]


def test_the_parts_of_declarations() -> None:
    module = parse(TEXT)
    pair, variable, helper, main = (module.names[name] for name in ("Pair", "y", "helper", "main"))
    assert [(one.name, "".join(module.words(one.type))) for one in pair.members] == [
        ("a", "vec4<f32>"),
        ("b", "array<u32,4>"),
    ]
    assert pair.members[0].attributes[0].name == "align"
    assert variable.spaces == ("storage", "read_write")
    assert "".join(module.words(variable.type)) == "array<Row>"
    assert "".join(module.words(module.names["M"].value)) == "2*3"
    assert [one.name for one in helper.members] == ["a", "b"]
    assert "".join(module.words(helper.type)) == "f32"
    assert "".join(module.words(helper.value)) == "{returna;}"
    assert [one.name for one in main.attributes] == ["compute", "workgroup_size"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fn f() {}\nfn f() {}", "text:2: `f` is declared twice\n    fn f() {}"),
        ("x = 3;", "text:1: a declaration (fn, struct, var, const, override, alias, const_assert or a dir"),
        ("const A = 3", "text:1: `;` is expected at the end of const `A`, not the end of the text"),
        ("struct { a: f32 }", "text:1: the name of a struct is expected, not `{`"),
        ("struct S { a, b: f32 }", "text:1: `:` is expected after `a` in struct `S`: every one needs a type"),
        ("struct S { a: }", "text:1: `a` in struct `S` has no type"),
        ("fn f();", "text:1: `{` is expected before the body of `f`, not `;`"),
        ("fn f() {\n(}\n", "text:2: `}` closes nothing"),
        ("fn f() {\n\n", "text:1: `{` is never closed"),
        ("var<storage x: f32;", "text:1: `<` after var is never closed with `>`"),
        ("fn f(a) {}", "text:1: `:` is expected after `a` in the parameters of `f`"),
        ("@compute", "text:1: a declaration"),
        ("alias A f32;", "text:1: `=` is expected after `alias A`, not `f32`"),
        ("fn a() {}\n`", "text:2: '`' is not a WGSL character"),
    ],
)
def test_mistakes_name_the_line(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


def test_errors_name_the_origin() -> None:
    with pytest.raises(CompileError, match=r"^map\.pwgsl:7: `f` is declared twice"):
        parse_module(Source("fn f() {}\nfn f() {}\n", (("types.pwgsl", 3), ("map.pwgsl", 7))))


PIECES = [
    "fn",
    "var",
    "struct",
    "const",
    "alias",
    "@",
    "compute",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ":",
    ";",
    "=",
    ",",
]


@pytest.mark.property
@given(st.lists(st.sampled_from([*PIECES, "a", "f32", "1", "->", "let", "for", "."]), max_size=40))
def test_any_tokens_give_a_module_or_a_compile_error(pieces: list[str]) -> None:
    message = "text:1: "
    try:
        parse(" ".join(pieces))
    except CompileError as error:
        message = str(error)
    assert message.startswith("text:1: ")
