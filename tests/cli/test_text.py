"""Laying out text for terminals."""

from __future__ import annotations

import pytest

from webgrad.cli.text import NO_BREAK, Line, encodable, layout, size


def test_labels_make_a_column_and_texts_wrap_beside_it() -> None:
    lines = [Line("Title"), Line("one", "a " * 30), Line("three", "b"), Line("Next"), Line("", "c")]
    assert list(layout(lines, 62)) == [
        "Title",
        "  one    " + " ".join("a" * 27),
        "         a a a",
        "  three  b",
        "",
        "Next",
        "         c",
    ]


def test_in_a_narrow_terminal_texts_go_under_their_labels() -> None:
    assert list(layout([Line("label", "some words here")], 20)) == ["  label", "    some words here"]


def test_a_word_too_wide_stays_whole() -> None:
    assert list(layout([Line("path", "/a/very/long/path/indeed")], 10)) == [
        "  path",
        "    /a/very/long/path/indeed",
    ]


def test_no_break_spaces_hold_and_are_printed_plain() -> None:
    lines = list(layout([Line("", f"aaaa bbbb{NO_BREAK}cccc")], 16))
    assert lines == ["    aaaa", "    bbbb cccc"]


def test_signs_become_plain_where_they_must() -> None:
    assert encodable("✓ – · é", "utf-8") == "✓ – · é"
    assert encodable("✓ – · é", "ascii") == "+ - | ?"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (256, "256 B"),
        (16384, "16 KiB"),
        (134217728, "128 MiB"),
        (2147483647, "2 GiB"),
        (2**60, "1.049e+06 TiB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count).replace(NO_BREAK, " ") == text
