"""The project's pages as tests see them: which there are, and the blocks of code in them.

In: README.md, CONTRIBUTING.md, everything in docs/ and the READMEs of the package's folders. Out: `Block`s:
page, line, language, text, and the reason where a comment above says that a block is not run:
`<!-- not run: needs a network -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "webgrad").rglob("README.md"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
FENCE = re.compile(r"^( *)```(\S*)\s*$")
REASON = re.compile(r"^\s*<!-- not run: (.*\S) -->$")
INDENTED = re.compile(r"^ {4,}(\S.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code."""

    page: str  # from the repository's folder
    line: int  # of its first line of code
    language: str
    text: str
    not_run: str = ""  # the reason

    @property
    def name(self) -> str:
        """What a test calls it."""
        return f"{self.page}:{self.line}"


def name_of(path: Path) -> str:
    """A page's path from the repository's folder."""
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(page: str) -> str:
    """A page's text."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    return list(_blocks(page, text_of(page)))


def _blocks(page: str, text: str) -> Iterator[Block]:
    opened: tuple[int, str, str] | None = None  # line, indentation, language
    reason = ""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened = (at + 1, fence[1], fence[2])
        elif opened is not None and line.strip() == "```":
            begin, indentation, language = opened
            code = "".join(f"{each.removeprefix(indentation)}\n" for each in lines[begin:at])
            yield Block(page, begin + 1, language, code, reason)
            opened, reason = None, ""
        elif opened is None:
            reason = found[1] if (found := REASON.match(line)) else ("" if line.strip() else reason)
    assert opened is None, f"{page}: the block at {opened} is not closed"


def without_fences(page: str) -> str:
    """A page's text with blank lines in place of its fenced blocks."""
    inside = False
    kept = []
    for line in text_of(page).splitlines():
        fence = line.lstrip().startswith("```")
        kept.append("" if inside or fence else line)
        inside = inside != fence
    return "\n".join(kept)


def indented_lines(page: str) -> list[str]:
    """Lines of code that are marked by their indentation."""
    return [found[1] for line in without_fences(page).splitlines() if (found := INDENTED.match(line))]


def inline_code(page: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", without_fences(page))


ALL_BLOCKS = [block for path in PAGES for block in blocks_of(name_of(path))]
