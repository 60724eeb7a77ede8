"""Texts that know where their lines came from."""

from __future__ import annotations

from webgrad.wgsl.source import Source


def test_offsets_find_their_line() -> None:
    source = Source("a\nbc\n\nd")
    assert [source.line_of(offset) for offset in (0, 1, 2, 4, 5, 6)] == [0, 0, 1, 1, 2, 3]


def test_errors_show_the_origin_and_the_line() -> None:
    source = Source("a\n  b c\n", (("one.pwgsl", 4), ("two.pwgsl", 9)))
    assert str(source.error(2, "wrong")) == "two.pwgsl:9: wrong\n    b c"
    assert str(source.error(99, "wrong")) == "two.pwgsl:9: wrong\n    b c"
    assert str(Source("").error(0, "empty")) == "text:1: empty\n    "


def test_long_lines_are_cut() -> None:
    assert len(str(Source("a" * 500).error(0, "wrong"))) < 200
