"""The block structure of a template."""

from __future__ import annotations

import pytest

from webgrad.errors import TemplateError
from webgrad.wgsl.directives import Conditional, Directive, Line, Loop, parse_tree


def test_the_tree_has_one_node_for_each_block() -> None:
    tree = parse_tree(
        "a\n#if X\nb\n#elif Y\n#else\nc\n#endif\n#for i in 0..2\nd\n#endfor\n# define N 1\n", "f"
    )
    line, condition, loop, define = tree
    assert isinstance(line, Line)
    assert isinstance(condition, Conditional)
    assert isinstance(loop, Loop)
    assert isinstance(define, Directive)
    assert [head.name for head, _ in condition.branches] == ["if", "elif", "else"]
    assert loop.head.rest == "i in 0..2"
    assert (define.name, define.rest, define.place.line) == ("define", "N 1", 11)


def test_comments_go_and_lines_stay_in_place() -> None:
    tree = parse_tree("a // b\n/* c /* d */\n // */ e */ f\ng /* http://x */ h\n#undef X // why\n", "f")
    assert [(node.place.line, node.text.split()) for node in tree if isinstance(node, Line)] == [
        (1, ["a"]),
        (3, ["e", "*/", "f"]),
        (4, ["g", "h"]),
    ]
    assert isinstance(tree[-1], Directive)
    assert tree[-1].rest == "X"


def test_directives_in_comments_are_not_directives() -> None:
    assert parse_tree("/*\n#if\n*/\n// #else\n", "f") == ()


def test_a_backslash_continues_a_directive() -> None:
    (node,) = parse_tree("#define F(x) a; \\\n  b; \\ \n  c\n", "f")
    assert isinstance(node, Directive)
    assert node.rest.split("\n") == ["F(x) a;", "  b;", "  c"]


def test_every_line_break_of_wgsl_counts() -> None:
    assert [node.text for node in parse_tree("a\r\nb\rc\vd\x85e\u2028f", "f") if isinstance(node, Line)] == [
        *"abcdef"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n#if A\nb", "f:2: #if is never closed with #endif\n    #if A"),
        ("#for i in 0..2\nb", "f:1: #for is never closed with #endfor"),
        ("#if A\n#else\n", "f:2: #else is never closed with #endif"),
        ("#endif", "f:1: #endif without an open #if"),
        ("#endfor", "f:1: #endfor without an open #for"),
        ("#if A\n#endfor\n#endif", "f:2: #endfor without an open #for (inside the #if of line 1)"),
        ("#if A\n#else\n#elif B\n#endif", "f:3: #elif after #else"),
        ("#if A\n#else\n#else\n#endif", "f:3: #else after #else"),
        ("a\n  #pragma once", "f:2: #pragma is not a directive; there are #define, "),
        ("#", "f:1: # is not a directive"),
        ("a\nb /* c\nd", "f:2: the block comment opened here is never closed with */\n    b /* c"),
        ("#if 1\n" * 40 + "#endif\n" * 40, "f:33: #if nested more than 32 deep"),
    ],
)
def test_mistakes_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_tree(text, "f")
    assert str(caught.value).startswith(message)
