"""The programs of examples/browser, here: what they print is what the page's test looks for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "examples" / "browser" / "programs"
WORDS = {
    "regression": "y = 3.0 x + 0.5",
    "graph": "mean",
    "gradients": "the top is at x = 1.31384, where f is 0.81383",
    "pictures": "% of 64 new pictures are right",
}


def test_every_program_is_listed_on_the_page() -> None:
    page = (PROGRAMS.parent / "page.js").read_text(encoding="utf-8")
    assert {each.stem for each in PROGRAMS.glob("*.py")} == set(WORDS)
    assert all(f"  {name}: " in page for name in WORDS)


@pytest.mark.parametrize("name", list(WORDS))
def test_programs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(PROGRAMS / f"{name}.py"))
    assert WORDS[name] in capsys.readouterr().out
