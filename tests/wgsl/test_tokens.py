"""WGSL tokens, bracket pairs and template lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgrad.wgsl.tokens import TokenError, closing, template_lists, tokenize


def texts(source: str) -> list[str]:
    return [token.text for token in tokenize(source)]


NUMBERS = """
0 1u 42i 1.5 .5 1. 1e10 1.5e-3f 2h 3f 0x1F 0xFFu 0x1.8p3 0x.8p-1f 7li 7lu 1.0lf 0x10lu
"""


@pytest.mark.parametrize("number", NUMBERS.split())
def test_numbers_are_one_token(number: str) -> None:
    (token,) = tokenize(number)
    assert (token.kind, token.text) == ("number", number)


def test_operators_are_split_as_wgsl_does() -> None:
    assert " ".join(texts("a<<=b&&c->d++ --e!=f^=g")) == "a <<= b && c -> d ++ -- e != f ^= g"
    assert texts("a>>b>=c>>=d") == ["a", ">", ">", "b", ">", "=", "c", ">", ">", "=", "d"]


def test_comments_are_skipped_and_nest() -> None:
    assert texts("a // b\nc /* d /* e */ f */ g") == ["a", "c", "g"]


def test_places_point_into_the_text() -> None:
    source = "fn  main /* x */ ( ) {\n}"
    assert all(source[token.start : token.end] == token.text for token in tokenize(source))


def test_names_may_be_any_letters() -> None:
    assert [token.kind for token in tokenize("Größe _x x1 变量")] == ["word"] * 4


@pytest.mark.parametrize(
    ("source", "message", "offset"),
    [
        ("a $ b", r"'\$' is not a WGSL character", 2),
        ("a /* b", "never closed", 2),
        ("\0", "not a WGSL char", 0),
    ],
)
def test_bad_text_gives_the_offset(source: str, message: str, offset: int) -> None:
    with pytest.raises(TokenError, match=message) as caught:
        tokenize(source)
    assert caught.value.offset == offset


def test_brackets_pair() -> None:
    assert closing(tokenize("f(a[1]) { }")) == {3: 5, 1: 6, 7: 8}


@pytest.mark.parametrize(
    ("source", "message"), [("(]", "closes nothing"), (")", "closes nothing"), ("{ (", "never closed")]
)
def test_unbalanced_brackets_are_errors(source: str, message: str) -> None:
    with pytest.raises(TokenError, match=message):
        closing(tokenize(source))


@pytest.mark.parametrize(
    ("source", "lists"),
    [
        ("array<vec4<f32>, 4>", ["<f32>", "<vec4<f32>, 4>"]),
        ("a < b", []),
        ("if (i < n && j > m) {}", []),
        ("f(a < b, c > d)", ["< b, c >"]),  # so says the specification
        ("vec2<u32>(x >> 1u) + y[i < 3]", ["<u32>"]),
        ("bitcast<vec4<f32>>(v) <= w", ["<f32>", "<vec4<f32>>"]),
        ("let x: array<f32, (1 > 0)>= y;", ["<f32, (1 > 0)>"]),
        ("a << 3 > b", []),
    ],
)
def test_template_lists_are_told_from_comparisons(source: str, lists: list[str]) -> None:
    tokens = tokenize(source)
    found = [source[tokens[start].start : tokens[end].end] for start, end in template_lists(tokens).items()]
    assert found == lists


@pytest.mark.property
@given(st.text(alphabet='ab1.<>()[]{};:,=+-*/&| \n"', max_size=80))
def test_any_text_gives_tokens_or_a_token_error(source: str) -> None:
    offset = 0
    try:
        tokens = tokenize(source)
        template_lists(tokens)
        assert all(source[token.start : token.end] == token.text for token in tokens)
        closing(tokens)
    except TokenError as error:
        offset = error.offset
    assert 0 <= offset <= len(source)
