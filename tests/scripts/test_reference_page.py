"""docs/reference holds every public name, in today's words."""

from __future__ import annotations

import re
from typing import Any

import pytest

import webgrad as wg
from scripts.reference_entries import entry, members, prose, signature
from scripts.reference_page import FOLDER, PAGES, anchors, pages, public_names, told_elsewhere


@pytest.mark.golden
def test_the_pages_are_up_to_date() -> None:
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert sorted(there) == sorted(wanted), "run: python -m scripts.reference_page"
    assert [name for name in wanted if there[name] != wanted[name]] == [], (
        "run: python -m scripts.reference_page"
    )


def test_every_public_name_has_an_entry_or_a_row() -> None:
    text = "\n".join(pages().values())
    missing = [
        name
        for name, thing in public_names().items()
        if f"\n{name}" not in text and f"| `{name}` | [`" not in text and told_elsewhere(name, thing) is None
    ]
    assert missing == []
    assert len(public_names()) > 700


def test_every_address_is_a_heading() -> None:
    written = pages()
    headings = {
        name: [
            re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in _headings(text)
        ]
        for name, text in written.items()
    }
    for address in anchors().values():
        page, _, slug = address.partition("#")
        assert re.sub(r"_\d+$", "", slug) in headings[page] or slug in headings[page], address


def _headings(text: str) -> list[str]:
    return re.findall(r"^#+ .*$", text, re.MULTILINE)


def test_a_page_is_not_too_long_to_open() -> None:
    assert max(len(text) for text in pages().values()) < 200_000
    assert len({page.name for page in PAGES}) == len(PAGES)


def test_signatures_are_as_they_are_written() -> None:
    def function(x: Any, /, axis: int | None = None, *rest: int, key: str = "a", **more: Any) -> str:
        return ""

    assert signature("a_long_name", function).replace("'", '"') == (
        "a_long_name(\n    x: Any,\n    /,\n    axis: int | None = None,\n"
        '    *rest: int,\n    key: str = "a",\n'
        "    **more: Any,\n) -> str"
    )
    assert signature("f", function, types=False) == "f(x, /, axis=None, *rest, key='a', **more)"
    assert signature("wg.exp", wg.exp) == "wg.exp(x: Tensor) -> Tensor"


def test_words_of_a_docstring_have_no_special_meaning() -> None:
    assert prose("a * b[i] < `c[i] * d`") == "a \\* b\\[i\\] &lt; `c[i] * d`"


def test_examples_of_one_docstring_are_one_block() -> None:
    def function() -> None:
        """What it does.

        >>> 1
        1

        >>> 2
        2

        And a word at the end.
        """

    assert entry("f", function)[1:] == [
        "What it does.",
        "```pycon\n>>> 1\n1\n\n>>> 2\n2\n```",
        "And a word at the end.",
    ]


def test_methods_that_are_fetched_when_first_used_are_there() -> None:
    names = [name for name, _ in members(wg.Tensor)]
    assert {"sum", "backward", "shape", "float", "relu"} <= set(names)
    assert not {"node", "_node"} & set(names)
