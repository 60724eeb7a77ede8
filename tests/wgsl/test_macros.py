"""Macro definition and expansion."""

from __future__ import annotations

import pytest

from webgrad.wgsl.macros import Budget, Macro, MacroError, UnclosedCall, expand, parse_definition


def run(text: str, *definitions: str) -> str:
    macros = {macro.name: macro for macro in map(parse_definition, definitions)}
    return expand(text, macros, Budget(100_000, 100_000))


def test_object_macros_replace_whole_tokens() -> None:
    assert run("T x = Tx.T + aT;", "T f32") == "f32 x = Tx.f32 + aT;"
    assert run("[A]", "A") == "[]"


def test_function_macros_substitute_whole_tokens() -> None:
    assert run("ADD(a, max(b, c))", "ADD(x, y) (x + y + xy)") == "(a + max(b, c) + xy)"
    assert run("F()", "F() 1") == "1"
    assert run("F ( 1 )", "F(x) <x>") == "<1>"
    assert run("F", "F(x) <x>") == "F"  # without arguments it is only a name


def test_macros_nest() -> None:
    assert run("TWICE(TWICE(a))", "TWICE(x) (x + x)") == "((a + a) + (a + a))"
    assert run("A", "A B", "B C + C", "C 1") == "1 + 1"
    assert run("OP(x)", "OP relu", "relu(v) max(v, 0)") == "max(x, 0)"


def test_a_macro_is_not_expanded_in_itself() -> None:
    assert run("A", "A A + 1") == "A + 1"
    assert run("A", "A B", "B A") == "A"
    assert run("F(F(1))", "F(x) F(x)") == "F(F(1))"


def test_paste_joins_expanded_neighbours() -> None:
    assert run("acc##i", "i 3") == "acc3"
    assert run("acc ## i ## _ ## j", "i 3", "j 4") == "acc3_4"
    assert run("ACC(i)", "ACC(n) acc##n", "i 7") == "acc7"
    assert run("load_##T(x)", "T f32", "load_f32(a) a.f") == "x.f"  # the joined name is expanded again
    assert run("P(a, )", "P(x, y) [x##y]") == "[a]"
    assert run("P(, )", "P(x, y) [x##y]") == "[]"


def test_multi_line_bodies_keep_their_lines() -> None:
    assert run("F(1)", "F(x) a = x;\n    b = x;") == "a = 1;\n    b = 1;"


@pytest.mark.parametrize(
    ("text", "definitions", "message"),
    [
        ("F(1)", ["F(a, b) a"], r"`F\(a, b\)` takes 2 arguments, 1 given"),
        ("F(1, 2)", ["F(a) a"], "takes 1 argument, 2 given"),
        ("F(1)", ["F() a"], "takes 0 arguments, 1 given"),
        ("## a", [], "needs something on both sides"),
        ("a ##", [], "needs something on both sides"),
        ("a ## ## b", [], "needs something on both sides"),
    ],
)
def test_bad_calls_are_errors(text: str, definitions: list[str], message: str) -> None:
    with pytest.raises(MacroError, match=message):
        run(text, *definitions)


def test_an_open_call_is_told_apart() -> None:
    with pytest.raises(UnclosedCall, match="argument list of macro `F` is not closed"):
        run("F(1, (2)", "F(a, b) a")


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("", "needs a name"),
        ("3x 4", "needs a name"),
        ("A+1", "a space or a list of parameters"),
        ("F(a, a) a", "names a parameter twice"),
        ("F(a, 1) a", "`1` is not a parameter name"),
        ("F(a,) a", "is not a parameter name"),
        ("defined 1", "cannot be a macro"),
        ("A ## b", "on both sides"),
    ],
)
def test_bad_definitions_are_errors(definition: str, message: str) -> None:
    with pytest.raises(MacroError, match=message):
        parse_definition(definition)


def test_a_definition_is_data() -> None:
    assert parse_definition("F(a, b) a+b") == Macro("F", ("a", "+", "b"), ("a", "b"))
    assert parse_definition("N 4").parameters is None
    assert parse_definition("N (4)").parameters is None  # a space before the bracket: a value


def test_multiplying_macros_run_out_of_budget() -> None:
    bombs = [f"A{i} A{i + 1} A{i + 1}" for i in range(60)]
    with pytest.raises(MacroError, match="too many steps"):
        run("A0", *bombs)
    with pytest.raises(MacroError, match="longer than 100 characters"):
        expand("A " * 60, {"A": Macro("A", ("word",))}, Budget(100_000, 100))
    with pytest.raises(MacroError, match="nested more than"):
        run("F(" * 100 + "1" + ")" * 100, "F(x) x")
