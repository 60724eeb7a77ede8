"""What every word means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgrad.errors import CompileError
from webgrad.wgsl.scopes import Local, Resolution, reachable, resolve
from webgrad.wgsl.source import Source
from webgrad.wgsl.syntax import Module, parse_module


def resolved(text: str) -> tuple[Module, Resolution]:
    module = parse_module(Source(text))
    return module, resolve(module)


def uses(text: str) -> dict[str, list[int]]:
    """For each local `name@column of its declaration`, the columns of its uses."""
    module, resolution = resolved(text)
    tokens = module.source.tokens

    def columns(local: Local) -> list[int]:
        return [tokens[index].start for index in local.uses]

    return {f"{local.name}@{tokens[local.index].start}": columns(local) for local in resolution.locals}


def test_a_local_hides_a_global_from_the_end_of_its_declaration() -> None:
    text = "const x = 1; fn f() { let x = x + 1; let y = x; }"
    assert uses(text) == {"x@26": [45], "y@41": []}
    _, resolution = resolved(text)
    assert len(resolution.globals["x"]) == 2  # its declaration and the x in `x + 1`


def test_an_inner_block_hides_an_outer_local_only_inside() -> None:
    assert uses("fn f(a: i32) { { let a = a; _ = a; } _ = a; }") == {"a@5": [25, 41], "a@21": [32]}


def test_a_for_variable_ends_with_its_loop() -> None:
    text = "const i = 7; fn f() { for (var i = 0; i < 3; i++) { let i = i; } _ = i; }"
    assert uses(text) == {"i@31": [38, 45, 60], "i@56": []}
    _, resolution = resolved(text)
    assert len(resolution.globals["i"]) == 2


def test_nested_loops_without_blocks_between() -> None:
    text = (
        "fn f() { for (var i = 0; ; ) { for (var j = i; ; ) { _ = j; } _ = i; } "
        "if (true) { } let i = 1; _ = i; }"
    )
    assert uses(text) == {"i@18": [44, 66], "j@40": [57], "i@89": [100]}


def test_members_and_attributes_are_not_references() -> None:
    module, resolution = resolved(
        "const x = 1; const size = 4; struct S { x: f32, @size(size) y: f32 }"
        "fn f(s: S, @builtin(position) p: f32) { _ = s.x + s.y; }"
    )
    assert resolution.references[module.names["f"].start] == {"S"}
    assert resolution.references[module.names["S"].start] == {"size"}
    assert len(resolution.members["x"]) == 2
    assert "position" in resolution.externals[module.names["f"].start]


def test_visible_counts_never_collide() -> None:
    _, resolution = resolved(
        "fn f(a: i32) { let b = a; { let c = b; } { let d = b; let e = d; } let g = b; }"
    )
    assert [(local.name, local.visible) for local in resolution.locals] == [
        ("a", 0),
        ("b", 1),
        ("c", 2),
        ("d", 2),
        ("e", 3),
        ("g", 2),
    ]


def test_reachable_goes_through_functions_types_and_constants() -> None:
    module, resolution = resolved(
        "const N = 2; const M = 3; struct S { a: array<f32, N> } alias T = S; var<private> v: T;"
        "fn g() { _ = v.a[0]; } fn f() { g(); } fn other() { _ = M; }"
    )
    assert reachable(module, resolution, {"f"}) == {"f", "g", "v", "T", "S", "N"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fn f() { let a = 1; let a = 2; }", "`a` is declared twice in one block"),
        ("fn f(a: i32, a: i32) { }", "`a` is declared twice"),
        ("fn f() { let = 3; }", "a name is expected after `let`"),
        ("fn f() { var<function a = 3; }", "a name is expected after `var`"),
        ("fn f() { let", "never closed"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        resolved(text)


@pytest.mark.property
@given(
    st.lists(
        st.sampled_from(
            ["let", "var", "a", "b", "=", ";", "{", "}", "for", "(", ")", ".", "@", "<", ">", "1"]
        )
    )
)
def test_any_body_resolves_or_is_a_compile_error(pieces: list[str]) -> None:
    message = "text:1: "
    try:
        resolved(f"fn f() {{ {' '.join(pieces)} }}")
    except CompileError as error:
        message = str(error)
    assert message.startswith("text:1: ")
