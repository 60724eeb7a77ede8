"""Writing to a terminal: words stay whole, controls are left out, colours only where they are wanted."""

from __future__ import annotations

import io

import pytest

from webgrad.cli.terminal import Output, Wrapping, columns


class Screen(io.StringIO):
    """A terminal that keeps what it gets."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def wrapped(pieces: list[str], width: int) -> str:
    parts: list[str] = []
    wrapping = Wrapping(parts.append, lambda: width)
    for piece in pieces:
        wrapping.push(piece)
    wrapping.finish()
    return "".join(parts)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["one two three"], "one two\nthree"),
        (["one t", "wo th", "ree"], "one two\nthree"),
        ([" one"], " one"),
        (["one\n\ntwo"], "one\n\ntwo"),
        (["12345678 9"], "12345678\n9"),
        (["1234567890123 45 6"], "1234567890123 45\n6"),
        (["日本語日本語"], "日本語日\n本語"),
        (["    code is not broken"], "    code is not broken"),
        (["```\nx = a + b + c\n```\none two three"], "```\nx = a + b + c\n```\none two\nthree"),
    ],
)
def test_words_stay_whole(pieces: list[str], text: str) -> None:
    assert wrapped(pieces, 8) == text


def test_any_split_into_pieces_gives_the_same_lines() -> None:
    text = "Some words, and a longerwordthanthat.\n\n  indented code line\nlast 日本 one é 🎉 end"
    for width in (1, 5, 10, 40):
        whole = wrapped([text], width)
        assert wrapped(list(text), width) == whole
        assert "".join(whole.split()) == "".join(text.split())


def test_columns() -> None:
    assert [columns(each) for each in ("abc", "日本", "é", "e\N{COMBINING ACUTE ACCENT}", "\u200d")] == [
        3,
        4,
        1,
        1,
        0,
    ]


def test_a_terminal_gets_no_controls(clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setenv("NO_COLOR", "1")
    screen = Screen()
    output = Output(screen)
    output.piece("\x1b[2Jred\x07 \x9b1mtab\there\r\n")
    output.end()
    output.line("\x1b]0;title\x07", output.dim)
    assert screen.getvalue() == "[2Jred 1mtab\there\n\n]0;title\n"


def test_a_pipe_gets_the_text_as_it_is() -> None:
    stream = io.StringIO()
    output = Output(stream)
    output.piece("\x1b[2Jone two")
    output.end()
    assert stream.getvalue() == "\x1b[2Jone two\n"


@pytest.mark.parametrize(
    ("variables", "has_colours"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours(variables: dict[str, str], has_colours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (Output(Screen()).dim("x") == "\x1b[2mx\x1b[0m") == has_colours
    assert Output(io.StringIO()).bold("x") == "x"
