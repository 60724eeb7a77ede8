"""What the site's pages need beyond docs/: called by mkdocs while it builds (see `hooks` in mkdocs.yml).

In: pages as they are in the repository. Out: pages whose links work in the site. CONTRIBUTING.md and
CHANGELOG.md become pages, and a link to a file that is no page names the file instead. mkdocs loads this file
by its path, without the project: nothing but the standard library and mkdocs may be imported.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

__all__ = ["for_the_site", "on_files", "on_page_markdown"]

# page of the site → the file of the repository it is made of
MORE_PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def for_the_site(text: str, page: str) -> str:
    """A page's text with links as the site has them; `page` is its path in the repository."""
    pages = {path: name for name, path in MORE_PAGES.items()} | {"README.md": "index.md"}
    home = posixpath.dirname(page)

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        path = posixpath.normpath(posixpath.join(home, target))
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
        files.append(File.generated(config, name, content=for_the_site(text, path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend the links of a page of docs/."""
    return (
        markdown if page.file.src_uri in MORE_PAGES else for_the_site(markdown, f"docs/{page.file.src_uri}")
    )
