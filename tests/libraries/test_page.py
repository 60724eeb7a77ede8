"""The page about these libraries shows what its code prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import webgrad as wg
from tests.libraries.comparing import library

PAGE = Path(__file__).parents[2] / "docs" / "array-api-libraries.md"


def test_the_code_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("einops", "scipy", "sklearn"):
        library(name)
    code, shown = re.search(
        r"```python\n(.*?)```\n\n    (.*?)\n", PAGE.read_text("utf-8"), re.DOTALL
    ).groups()  # type: ignore[union-attr]
    wg.set_default_device("cpu")
    try:
        exec(compile(code, str(PAGE), "exec"), {})
    finally:
        wg.set_default_device(None)
    assert capsys.readouterr().out.strip() == shown
