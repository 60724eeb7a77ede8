"""Write the tables of operators in docs/onnx.md from webgrad's own: `python -m scripts.onnx_page`.

In: the table of `webgrad.onnx.operators`, and the files of tests beside it. Out: the page, with everything
between its two marks replaced. A test fails where the page is not what this would write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby

from scripts.figures import put_between
from scripts.system import ROOT
from webgrad.onnx.operators import Operator, rows

__all__ = ["PAGE", "entered_by_webgrad", "main", "with_tables"]

PAGE = ROOT / "docs" / "onnx.md"
TESTS = ROOT / "tests" / "onnx" / "operators"
BEGIN = "<!-- operators: made by `python -m scripts.onnx_page` -->"
END = "<!-- end of operators -->"
OURS = "webgrad.onnx.operators."


def tables() -> str:
    """A table for each domain."""
    several = groupby(entered_by_webgrad(), lambda row: row.domain)
    return "\n\n".join("\n".join(_table(domain, list(found))) for domain, found in several)


def entered_by_webgrad() -> list[Operator]:
    """The operators that are webgrad's own: no user's, and none of an example in a docstring."""
    ours = [row for row in rows() if row.function.__module__.startswith("webgrad.")]
    return [row for row in ours if not row.domain.startswith("my.")]


def _table(domain: str, several: list[Operator]) -> Iterator[str]:
    names = {row.name for row in several}
    yield f"### {domain or 'ai.onnx'}: {len(names)} operators"
    yield ""
    yield "| operator | since version | tests |"
    yield "|---|---|---|"
    for name, found in groupby(several, lambda row: row.name):
        versions = list(found)
        since = ", ".join(str(each.since) for each in versions)
        tests = sorted({_tests_of(each) for each in versions})
        yield f"| {name} | {since} | {', '.join(tests)} |"


def _tests_of(row: Operator) -> str:
    """The file of tests beside an operator's module, where there is one: the standard's cases are for all."""
    module = row.function.__module__
    name = module.removeprefix(OURS) if module.startswith(OURS) else "elementwise"
    file = TESTS / f"test_{name}.py"
    return f"[{name}](../tests/onnx/operators/{file.name})" if file.exists() else "the standard's"


def with_tables(page: str) -> str:
    """The page with today's tables in it."""
    return put_between(PAGE.name, page, (BEGIN, END), tables())


def main() -> int:
    """The command line."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
