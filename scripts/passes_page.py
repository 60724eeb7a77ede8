"""Write the tables of passes in webgrad/schedule/README.md from the lists: `python -m scripts.passes_page`.

In: the lists of passes over graphs and over kernels. Out: the page, with everything between its two marks
replaced. A test fails where the page is not what this would write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from scripts.figures import put_between
from scripts.system import ROOT
from webgrad.lower.passes import PASSES
from webgrad.schedule.cpu_passes import CPU_PASSES
from webgrad.schedule.passes import GPU_PASSES, Passes

__all__ = ["PAGE", "main", "with_tables"]

PAGE = ROOT / "webgrad" / "schedule" / "README.md"
BEGIN = "<!-- passes: made by `python -m scripts.passes_page` -->"
END = "<!-- end of passes -->"


def _table(title: str, rows: Iterable[tuple[Callable[..., Any], str]]) -> str:
    lines = [f"## {title}", "", "| pass | in | |", "|---|---|---|"]
    for function, sentence in rows:
        where = function.__module__.removeprefix("webgrad.").replace(".", "/")
        lines.append(f"| `{function.__name__}` | `{where}.py` | {sentence} |")
    return "\n".join(lines)


def _of_graphs(backend: Passes) -> list[tuple[Callable[..., Any], str]]:
    return [(each.change, each.sentence) for each in backend.passes]


def _of_kernels() -> list[tuple[Callable[..., Any], str]]:
    return [(each, (each.__doc__ or "").partition("\n")[0].rstrip(".")) for each in PASSES]


def tables() -> str:
    """The passes of both backends, in the order in which they run."""
    return "\n\n".join(
        [
            _table("Passes over a graph for GPUs", _of_graphs(GPU_PASSES)),
            _table("Passes over a graph for the cpu", _of_graphs(CPU_PASSES)),
            _table("Passes over a kernel for GPUs, after lowering", _of_kernels()),
        ]
    )


def with_tables(page: str) -> str:
    """The page with today's tables in it."""
    return put_between(PAGE.name, page, (BEGIN, END), tables())


def main() -> int:
    """The command line."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
