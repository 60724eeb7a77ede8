"""The preprocessor: what comes out, from where, and that every input ends quickly."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.limits import processor_time
from webgrad.errors import TemplateError
from webgrad.wgsl.preprocess import DefineValue, Expanded, normalise_defines, preprocess

FILES = {
    "types.pwgsl": "#ifndef T\n#define T f32\n#endif\nalias Value = T;\n",
    "round.pwgsl": '#include "trip.pwgsl"\n',
    "trip.pwgsl": 'a\n#include "round.pwgsl"\n',
}


def load(name: str, including: str) -> tuple[str, str]:
    if name not in FILES:
        raise TemplateError(f"there is no template {name!r}; near it: types.pwgsl")
    return name, FILES[name]


def run(text: str, **defines: DefineValue) -> Expanded:
    return preprocess(text, file="main.pwgsl", defines=defines, loader=load)


def lines(text: str, **defines: DefineValue) -> list[str]:
    return [line.strip() for line in run(text, **defines).lines]


def test_plain_wgsl_passes_through_with_its_line_numbers() -> None:
    expanded = run("fn a() {}\n\n// comment\nfn b() {}\n")
    assert expanded.text == "fn a() {}\nfn b() {}\n"
    assert expanded.origins == (("main.pwgsl", 1), ("main.pwgsl", 4))


def test_defines_of_the_caller_and_of_the_file() -> None:
    assert lines("#define N 4\nT a[N];", T="f32") == ["f32 a[4];"]
    assert lines("#define N 4\n#undef N\nN") == ["N"]
    assert lines("FLAG SIZE SCALE", FLAG=True, SIZE=8, SCALE=0.5) == ["1 8 0.5"]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("N > 3", "yes"),
        ("N > 4", "no"),
        ("T == f32", "yes"),
        ("T == f16", "no"),
        ("defined(N) && N % 2 == 0", "yes"),
    ],
)
def test_conditions(condition: str, kept: str) -> None:
    assert lines(f"#if {condition}\nyes\n#else\nno\n#endif", N=4, T="f32") == [kept]


def test_elif_takes_the_first_that_holds() -> None:
    text = "#if N == 1\none\n#elif N == 2\ntwo\n#elif N < 9\nfew\n#else\nmany\n#endif"
    assert [lines(text, N=n) for n in (1, 2, 3, 9)] == [["one"], ["two"], ["few"], ["many"]]


def test_skipped_branches_are_not_run() -> None:
    assert lines('#if 0\n#error no\n#include "nothing"\n#define X 1\n#endif\nX') == ["X"]
    assert lines("#ifdef N\n#if N > 3\nbig\n#endif\n#endif\nend") == ["end"]


def test_loops_unroll_and_paste() -> None:
    text = "#for i in 0..N / 2\nlet acc##i = x[i];\n#endfor"
    assert lines(text, N=6) == ["let acc0 = x[0];", "let acc1 = x[1];", "let acc2 = x[2];"]
    nested = "#for i in 1..3\n#for j in 0..i\nm##i##_##j\n#endfor\n#endfor"
    assert lines(nested) == ["m1_0", "m2_0", "m2_1"]
    assert lines("#for i in 3..3\nx\n#endfor\ni") == ["i"]


def test_loop_lines_keep_their_origin() -> None:
    expanded = run("a\n#for i in 0..2\nb i\nc\n#endfor")
    assert [line for _, line in expanded.origins] == [1, 3, 4, 3, 4]


def test_conditions_and_macros_see_the_loop_variable() -> None:
    assert lines("#define ACC(n) acc##n\n#for i in 0..3\n#if i != 1\nACC(i)\n#endif\n#endfor") == [
        "acc0",
        "acc2",
    ]


def test_includes_share_macros_and_name_their_file() -> None:
    expanded = run('#define T u32\n#include "types.pwgsl"\nT b;')
    assert expanded.lines == ("alias Value = u32;", "u32 b;")
    assert expanded.origins == (("types.pwgsl", 4), ("main.pwgsl", 3))


def test_a_call_may_run_over_lines() -> None:
    expanded = run("#define ADD(a, b) (a + b)\nlet x = ADD(1,\n    2);\nlet y = 3;")
    assert expanded.lines == ("let x = (1 + 2);", "let y = 3;")
    assert expanded.origins == (("main.pwgsl", 2), ("main.pwgsl", 4))


def test_nothing_is_expanded_in_comments() -> None:
    assert lines("#define F(x) x\na // F(\n/* F( */ b") == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n#error T is N", "main.pwgsl:2: T is 3\n    #error T is N"),
        ("#if\n#endif", "main.pwgsl:1: a condition is missing"),
        (
            "#if A > 1\n#endif",
            "main.pwgsl:1: `A` is not defined; test it with defined(A), or give it a value",
        ),
        ("x\n#if 0\n#elif 1 +\n#endif", "main.pwgsl:3: the expression is incomplete\n    #elif 1 +"),
        ("#ifdef A B\n#endif", "main.pwgsl:1: #ifdef needs one name"),
        ("#undef", "main.pwgsl:1: #undef needs one name"),
        (
            "#define N 4",
            "main.pwgsl:1: `N` is already defined as `3`; wrap it in #ifndef N, or #undef it first",
        ),
        ("#define F(a) a\n\nF(1, 2)", "main.pwgsl:3: macro `F(a)` takes 1 argument, 2 given\n    F(1, 2)"),
        ("#define F(a) a\nF(1\n#undef N", "main.pwgsl:2: the argument list of macro `F` is not closed"),
        ("#for i\n#endfor", "main.pwgsl:1: #for is written `#for i in 0..N`"),
        ("#for N in 0..2\n#endfor", "main.pwgsl:1: the loop variable `N` is already defined"),
        ("#for i in 0..K\n#endfor", "main.pwgsl:1: `K` is not defined"),
        ("#include types", 'main.pwgsl:1: #include is written `#include "file.pwgsl"`'),
        ('b\n#include "type.pwgsl"', "main.pwgsl:2: there is no template 'type.pwgsl'; near it: types.pwgsl"),
        (
            '#include "round.pwgsl"',
            "trip.pwgsl:2: #include goes in a circle: main.pwgsl -> round.pwgsl -> trip.pwgsl -> round.pwgsl",
        ),
    ],
)
def test_mistakes_name_file_line_and_text(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        run(text, N=3)
    assert str(caught.value).startswith(message)


def test_bad_defines_are_errors() -> None:
    with pytest.raises(TemplateError, match="define 'a b' is not a name"):
        normalise_defines({"a b": 1})
    with pytest.raises(TemplateError, match="define defined='1': `defined` cannot be a macro"):
        run("x", defined=1)


@pytest.mark.parametrize(
    "text",
    [
        "#for i in 0..1000000000\n#endfor",
        "#for i in 0..1000000000\nx\n#endfor",
        "#for i in 0..40000\n" * 6 + "#endfor\n" * 6,
        "".join(f"#define A{i} A{i + 1} A{i + 1}\n" for i in range(80)) + "A0",
        "".join(f"#define A{i}(x) A{i + 1}(x x)\n" for i in range(80)) + "A0(y)",
        "#define F(x) x\n" + "F(\n" * 5000,
        "x" * 2_000_000,
        "#for i in" + " " * 200_000 + "\n#endfor",
        "#if " + "(" * 100_000 + "\n#endif",
    ],
)
def test_hostile_texts_end_quickly(text: str) -> None:
    with processor_time(10), pytest.raises(TemplateError):
        run(text)


PIECES = st.sampled_from(
    [
        *[
            "#define ",
            "#undef ",
            "#if ",
            "#ifdef ",
            "#elif ",
            "#else\n",
            "#endif\n",
            "#for i in ",
            "#endfor\n",
        ],
        *[
            "A",
            "B(",
            "B(x, y) ",
            "i",
            "0..3",
            "##",
            "defined(",
            ")",
            ",",
            "1",
            " + ",
            "/*",
            "*/",
            "//",
            "\\\n",
        ],
        *['#include "types.pwgsl"\n', "\n", "\n", " ", "T", "\0", "é", "{", "}"],
    ]
)


@pytest.mark.property
@settings(max_examples=300)
@given(st.lists(PIECES, max_size=80).map("".join) | st.text(max_size=200))
def test_any_text_gives_lines_or_a_template_error(text: str) -> None:
    with processor_time(10):
        try:
            result: Expanded | str = run(text, T="f32")
        except TemplateError as error:
            result = str(error)
    if isinstance(result, str):
        assert ".pwgsl:" in result
    else:
        assert len(result.lines) == len(result.origins)
        assert all(line.strip() and "\n" not in line for line in result.lines)


@pytest.mark.property
@given(st.lists(st.from_regex(r"[a-z]{1,3}( [a-z0-9+]{1,3}){0,4}", fullmatch=True), max_size=10))
def test_text_without_macros_is_unchanged(texts: list[str]) -> None:
    assert list(run("\n".join(texts)).lines) == texts
