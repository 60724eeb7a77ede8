"""What the site's pages need beyond docs/: called by mkdocs while it builds (see `hooks` in mkdocs.yml).

In: pages as they are in the repository. Out: pages whose links work in the site. CONTRIBUTING.md and
CHANGELOG.md become pages, and a link to a file that is no page names the file instead. mkdocs loads this file
by its path, without the project: nothing but the standard library and mkdocs may be imported.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["for_the_site", "on_files", "on_page_markdown", "titles_of"]

# page of the site → the file of the repository it is made of
MORE_PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def for_the_site(text: str, page: str, titles: Mapping[str, str] | None = None) -> str:
    """A page's text with links as the site has them; `page` is its path in the repository.

    A link whose words are the name of a file gets the title of that page instead, where `titles` has it.
    """
    pages = {path: name for name, path in MORE_PAGES.items()} | {"README.md": "index.md"}
    home = posixpath.dirname(page)

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        path = posixpath.normpath(posixpath.join(home, target))
        if words in (target, posixpath.basename(path)):
            words = (titles or {}).get(path, words)
        if path in pages:
            return (
                f"[{words}]({posixpath.relpath(posixpath.join('docs', pages[path]), _folder(page))}{anchor})"
            )
        if path.startswith("docs/"):
            return f"[{words}]({posixpath.relpath(path, _folder(page))}{anchor})"
        name = f"`{path}`"
        return name if words.strip("`") in (path, posixpath.basename(path), target) else f"{words} ({name})"

    return LINK.sub(link, text)


def _folder(page: str) -> str:
    """Where the page of the site stands, as if it were in docs/."""
    return posixpath.dirname(page) if page.startswith("docs/") else "docs"


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made of files outside of docs/."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    for name, path in MORE_PAGES.items():
        text = (root / path).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=for_the_site(text, path, titles_of(root))))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend the links of a page of docs/."""
    if page.file.src_uri in MORE_PAGES:
        return markdown
    root = Path(config.config_file_path).parent
    return for_the_site(markdown, f"docs/{page.file.src_uri}", titles_of(root))


@functools.cache
def titles_of(root: Path) -> dict[str, str]:
    """The titles of the pages, by their paths in the repository."""
    found = {}
    for path in (root / "docs").rglob("*.md"):
        title = re.search(r"^# (.*\S)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if title:
            found[path.relative_to(root).as_posix()] = title[1]
    return found
