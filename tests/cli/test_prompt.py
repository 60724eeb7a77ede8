"""Reading turns: blocks, lines that go on, leaving, and a history that is nobody else's business."""

from __future__ import annotations

import io
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from webgrad.cli.prompt import LineReader, lines_of, text_of


def reader(*lines: str | BaseException) -> LineReader:
    waiting: Iterator[str | BaseException] = iter(lines)

    def ask(prompt: str) -> str:
        found = next(waiting, EOFError())
        if isinstance(found, BaseException):
            raise found
        return found

    return LineReader(None, ask=ask)


@pytest.mark.parametrize(
    ("lines", "turn"),
    [
        (["hello"], "hello"),
        (["one\\", "two\\", "three"], "one\ntwo\nthree"),
        (['"""one', "", 'three"""'], "one\n\nthree"),
        (['"""one line"""'], "one line"),
        (['"""', "  x = 1", '"""'], "  x = 1"),
        (["\udcff"], "?"),
        ([], None),
    ],
)
def test_turns(lines: list[str], turn: str | None) -> None:
    assert reader(*lines).turn(">>> ", "... ") == turn


def test_ctrl_c_drops_the_line_and_twice_it_leaves() -> None:
    pressed = reader(KeyboardInterrupt(), "words", KeyboardInterrupt(), KeyboardInterrupt(), "never read")
    assert [pressed.turn(">>> ", "... ") for _ in range(4)] == ["", "words", "", None]


def test_ctrl_c_drops_a_block() -> None:
    again = reader('"""one', KeyboardInterrupt(), "two\\", KeyboardInterrupt(), "three")
    assert [again.turn(">>> ", "... ") for _ in range(4)] == ["", "", "three", None]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no readline, and modes mean little")
def test_the_history_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    LineReader(folder, ask=lambda prompt: "secret").turn(">>> ", "... ")
    assert stat.S_IMODE((folder / "chat-history").stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="folders are made read-only differently there")
def test_a_history_that_cannot_be_kept_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    asked = LineReader(tmp_path / "file" / "cache", ask=lambda prompt: "hello")
    assert asked.turn(">>> ", "... ") == "hello"


def test_lines_and_texts_of_a_pipe() -> None:
    def pipe() -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(b"one\r\n \n  two \xff\n"), encoding="utf-8")

    assert list(lines_of(pipe())) == ["one", "two \N{REPLACEMENT CHARACTER}"]
    assert text_of(pipe()) == "one\n \n  two \N{REPLACEMENT CHARACTER}"
