"""The page of an export: which files it has, from the folder pages/ beside this module.

In: the kind of page, and its facts (`page.json`). Out: files by their names, the page itself as index.html.
What each export writes itself (plan.json, model.js, runner.js, tokenizer.json) is not among them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from webgrad.errors import ArgumentError

from .single_file import IMPORT

__all__ = ["GENERATOR", "KINDS", "page_files"]

PAGES = Path(__file__).parent / "pages"
FOLDERS = (PAGES, PAGES.parent)  # where modules are found
# What the facts of each kind of page must have; the modules in pages/ say what each is, and what else may be.
KINDS: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "chat": ("context", "chunks", "stopIds", "functions", "tokenizer", "chat"),
    "search": ("functions", "inputs", "longest", "tokenizer"),
    "paint": ("layouts", "numbers", "schedules", "steps", "draws"),
    "classifier": ("function", "input", "output", "height", "width", "channels"),
}
TITLE = re.compile(r'(<title>|<h1 id="title">)webgrad<')
COMMON = ("page.css", "page_start.js")
GENERATOR = '<meta name="generator" content="webgrad">'  # by which an export knows a page as its own


def page_files(kind: str, facts: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a page of a kind, titled as its facts say.

    >>> from webgrad.web.page import page_files
    >>> files = page_files("plain", {"title": "Salt & pepper"})
    >>> b"<h1 id=\\"title\\">Salt &amp; pepper</h1>" in files["index.html"], "page_plain.js" in files
    (True, True)
    """
    if kind not in KINDS:
        raise ArgumentError(f"there is no page of the kind {kind!r}; there are {', '.join(KINDS)}")
    if missing := [name for name in KINDS[kind] if name not in facts]:
        raise ArgumentError(f"the facts of a {kind} page lack {', '.join(missing)}")
    title = html.escape(str(facts.get("title") or "webgrad"))
    titled = TITLE.sub(lambda found: f"{found[1]}{title}<", _framed(kind))
    files = {"index.html": titled.encode(), "page.json": _json(facts)}
    for name in (*COMMON, f"page_{kind}.js"):
        _add_with_imports(name, files)
    return files


def _framed(kind: str) -> str:
    """The frame of all pages with a kind's own in it: controls in its header, if any, and its body."""
    frame, inside = ((PAGES / f"{each}.html").read_text(encoding="utf-8") for each in ("frame", kind))
    controls, _, body = inside.rpartition("<!-- body -->\n")
    return frame.replace("KIND", kind).replace("CONTROLS", controls).replace("BODY", body)


def _json(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False).encode()


def _add_with_imports(name: str, files: dict[str, bytes]) -> None:
    """Add a file and those that it imports, as far as they are not written by each export."""
    path = next((each for folder in FOLDERS if (each := folder / name).is_file()), None)
    if name in files or path is None:
        return
    files[name] = path.read_bytes()
    for _, imported in IMPORT.findall(files[name].decode()):
        _add_with_imports(imported, files)
