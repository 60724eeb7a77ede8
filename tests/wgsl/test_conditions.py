"""Integer expressions: values, names without values, and every way to be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgrad.wgsl.conditions import ExpressionError, Symbol, Value, evaluate, split_words


def value(text: str, **names: int) -> int:
    def value_of(name: str) -> Value:
        return names.get(name, Symbol(name))

    return evaluate(split_words(text), value_of)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("100 / 10 / 2", 5),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("1 << 4 | 3", 19),
        ("0xff & 15u", 15),
        ("256 >> 2 >> 1", 32),
        ("1 < 2 == 1", 1),
        ("2 >= 3", 0),
        ("!0 + !5", 1),
        ("~0 & 7", 7),
        ("- - 3", 3),
        ("1 || 0 && 0", 1),
        ("5 ^ 1", 4),
        ("f32 == f32", 1),
        ("f32 == f16 || i8 != i8", 0),
        ("N * 2 > 6", 1),
    ],
)
def test_values_follow_c(text: str, expected: int) -> None:
    assert value(text, N=4) == expected


def test_the_undecided_half_is_not_evaluated() -> None:
    assert value("0 && 1 / 0") == 0
    assert value("1 || UNKNOWN > 3") == 1
    assert value("0 && (UNKNOWN + 1 || -UNKNOWN)") == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UNKNOWN", "`UNKNOWN` is not defined; test it with defined"),
        ("UNKNOWN == 1", "`UNKNOWN` is not defined"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1 << 64", "shift by 64"),
        ("1 << -1", "shift by -1"),
        ("(1 + 2", r"a `\)` is missing"),
        ("1 2", "`2` is not expected"),
        ("1 +", "incomplete"),
        ("", "incomplete"),
        ("* 3", r"`\*` is not expected"),
        ("$", r"`\$` is not expected"),
        ("0x", "not an integer|not expected"),
        ("1 << 63 << 63 << 63", "too large"),
        ("9" * 100, "too large"),
        ("(" * 200 + "1" + ")" * 200, "nested more than"),
        ("!" * 5000 + "1", "nested more than"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        value(text)


@pytest.mark.property
@given(st.lists(st.sampled_from([*"0123456789()+-*/%!~<>=&|^ ", "N", "defined", "<<", "&&"]), max_size=60))
def test_any_text_has_a_value_or_an_error(parts: list[str]) -> None:
    try:
        result: int | str = value("".join(parts), N=3)
    except ExpressionError as error:
        result = str(error)
    assert result != ""
