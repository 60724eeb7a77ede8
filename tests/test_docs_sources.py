"""The pages' sources: lines are wrapped, paths exist, the glossary is in order, guides are short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import PAGES, ROOT, inline_code, name_of, text_of, without_fences

WIDTH = 110
MADE = ("docs/reference/", "docs/ops.md")  # by scripts, of lines that docstrings have
WRITTEN = [
    *(name for name in map(name_of, PAGES) if not name.startswith(MADE)),
    "benchmarks/README.md",
    "benchmarks/browser/README.md",
    "examples/browser/README.md",
]
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.(?:py|pwgsl|wgsl|js)|(?:[\w.-]+/)+")
# Where a path may begin: a page may name modules as the package does, or as their own folder does
FOLDERS = ("webgrad", "scripts", "tests", "benchmarks", "examples")
STARTS = ("", "docs", *FOLDERS)
# Folders and files that programs make, and files that examples only name
ELSEWHERE = {
    *("array_api_tests/test_fft.py", "build/conformance/", "buffers/", "files/", "kernels/000.wgsl"),
    *("model.js", "results/parts/", "script.py", "site/", "sweep.py", "leak.py", "train.py"),
}
WHOLE = re.compile(r"`[^`]*`|\S+")  # a line that is one command or one link
GUIDE_WORDS = 2000
README_WORDS = 1000  # a page, tables included, without what scripts write
TABLE = re.compile(r"<!-- \w+: made by .*?<!-- end of", re.DOTALL)
GLOSSARY = re.compile(r"^\| ([^|]*?) \|", re.MULTILINE)


def too_long(page: str) -> list[str]:
    """Lines that could have been wrapped: not of tables, code or links."""
    return [
        f"{page}:{number}"
        for number, line in enumerate(without_fences(page).splitlines(), start=1)
        if len(line) > WIDTH and not line.startswith(("|", "    ", "<!--")) and not WHOLE.fullmatch(line)
    ]


@pytest.mark.parametrize("page", [*WRITTEN, "CHANGELOG.md"])
def test_lines_are_wrapped(page: str) -> None:
    assert too_long(page) == [], f"wrap these lines at {WIDTH} columns"


def exists(path: str, page: str) -> bool:
    """Whether a path that a page names is there."""
    starts = [ROOT / start for start in STARTS] + [(ROOT / page).parent]
    if path.count("/") == 0:  # the name of a file alone
        return any(True for folder in FOLDERS for _ in (ROOT / folder).rglob(path))
    return any((start / path).exists() for start in starts)


@pytest.mark.parametrize("page", WRITTEN)
def test_paths_that_a_page_names_exist(page: str) -> None:
    named = {code for code in inline_code(page) if PATH.fullmatch(code)} - ELSEWHERE
    assert sorted(path for path in named if not exists(path, page)) == []


def test_a_path_that_is_gone_is_found() -> None:
    assert exists("graph/node.py", "docs/architecture.md")
    assert exists("webgrad/graph/", "docs/architecture.md")
    assert not exists("graph/gone.py", "docs/architecture.md")
    assert not exists("gone.py", "docs/architecture.md")


def test_every_word_stands_once_in_the_glossary_and_in_order() -> None:
    terms = [
        term.strip("`").lower()
        for cell in GLOSSARY.findall(text_of("docs/glossary.md"))
        if cell not in ("word", "---") and not cell.startswith("-")
        for term in re.split(r", ", cell)[:1]
    ]
    assert len(terms) > 60
    assert terms == sorted(terms)
    assert len(set(terms)) == len(terms)


def test_the_guide_is_read_in_ten_minutes() -> None:
    assert len(text_of("docs/architecture.md").split()) <= GUIDE_WORDS


@pytest.mark.parametrize("path", sorted((ROOT / "webgrad").rglob("README.md")), ids=name_of)
def test_a_folders_readme_is_a_page(path: Path) -> None:
    if path.parent.name != "kernels":  # the preprocessor's manual too
        written = TABLE.sub("", path.read_text(encoding="utf-8"))
        assert len(written.split()) <= README_WORDS
