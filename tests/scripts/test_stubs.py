"""The stubs of what is made of tables are those that `python -m scripts.stubs` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.stubs import stubs


@pytest.mark.parametrize("path", stubs(), ids=lambda path: path.name)
def test_stubs_are_what_the_script_writes(path: Path) -> None:
    assert path.read_text("utf-8") == stubs()[path], "run python -m scripts.stubs"
