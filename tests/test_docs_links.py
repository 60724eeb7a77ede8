"""Links of the texts lead somewhere, every page is in the site's navigation, and the site can be built."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from tests.documents import PAGES, ROOT, name_of, without_fences

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
MADE = {"contributing.md", "changelog.md"}  # by scripts/docs_hooks.py
NAVIGATION = re.compile(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", re.MULTILINE)
ALL = [*(name_of(path) for path in PAGES), "CHANGELOG.md"]


def slug(heading: str) -> str:
    """A heading's anchor, as the site makes it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


@functools.cache
def anchors(page: str) -> set[str]:
    """The anchors of a page; of headings that are there twice the second has _1."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.*\S)\s*$", without_fences(page), re.MULTILINE):
        plain = heading.replace("\\", "")
        number, name = 0, slug(plain)
        while name in found:
            number += 1
            name = f"{slug(plain)}_{number}"
        found.add(name)
    return found


def broken(page: str) -> list[str]:
    """The links of a page that lead nowhere."""
    wrong = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", without_fences(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = os.path.normpath((ROOT / page).parent / path) if path else str(ROOT / page)
        there = Path(other).exists()
        if there and anchor and other.endswith(".md"):
            there = anchor in anchors(name_of(Path(other)))
        if not there:
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("page", ALL)
def test_links_lead_somewhere(page: str) -> None:
    assert broken(page) == []


def test_every_page_is_in_the_navigation_once() -> None:
    listed = NAVIGATION.findall((ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2])
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(pages | MADE), "add the page to `nav` in mkdocs.yml"


@pytest.mark.parametrize("page", ALL)
def test_lists_stand_apart_so_that_the_site_shows_them_as_lists(page: str) -> None:
    lines = without_fences(page).splitlines()
    glued = [
        f"{page}:{at + 2}"
        for at, (before, line) in enumerate(itertools.pairwise(lines))
        if re.match(r"([-*] |1\. )", line) and before.strip() and not re.match(r"\s|[-*] |\d+\. ", before)
    ]
    assert glued == [], "put an empty line before the list"


@pytest.mark.parametrize("page", ALL)
def test_every_page_has_one_title(page: str) -> None:
    assert len(re.findall(r"^# ", without_fences(page), re.MULTILINE)) == 1


def test_nothing_is_fetched_from_outside() -> None:
    files = [ROOT / "mkdocs.yml", *(ROOT / "docs" / "assets").iterdir()]
    for path in files:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"https?://|@import|//[a-z]+\.[a-z]+/", text) == [], path
    assert re.findall(r"<(?:script|link|img|iframe)\b", "".join(without_fences(page) for page in ALL)) == []


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None,
    reason="mkdocs-material is not installed: pip install .[docs]",
)
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "contributing.html", "reference/tensor.html"} <= pages
    for path in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)\b[^>]*(?:src|href)="(https?:[^"]*)"', path.read_text("utf-8")
        )
        assert loaded == [], path.name
