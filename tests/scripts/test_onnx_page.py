"""docs/onnx.md holds every operator, as webgrad.onnx has it."""

from __future__ import annotations

import pytest

from scripts.onnx_page import PAGE, entered_by_webgrad, with_tables


@pytest.mark.golden
def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page), "run: python -m scripts.onnx_page"


def test_every_operator_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    ours = {each.name for each in entered_by_webgrad()}
    assert [name for name in sorted(ours) if f"| {name} |" not in page] == []
