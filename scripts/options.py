"""Write the table of options in docs/configuration.md from webgrad's own: `python -m scripts.options`.

In: `webgrad.config.OPTIONS`. Out: the page, with everything between its two marks replaced. A test fails
where the page is not what this would write.
"""

from __future__ import annotations

import sys

from scripts.figures import put_between
from scripts.system import ROOT
from webgrad.config import OPTIONS

__all__ = ["PAGE", "main", "with_table"]

PAGE = ROOT / "docs" / "configuration.md"
BEGIN = "<!-- options: made by `python -m scripts.options` -->"
END = "<!-- end of options -->"


def table() -> str:
    """The options as a Markdown table."""
    rows = ["| in webgrad.toml | variable | value | default | |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        cells = (f"`{option.name}`", f"`{option.variable}`", option.allowed, option.default, option.sentence)
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with today's table in it."""
    return put_between(PAGE.name, page, (BEGIN, END), table())


def main() -> int:
    """The command line."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
