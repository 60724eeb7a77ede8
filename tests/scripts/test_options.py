"""docs/configuration.md holds every option, as webgrad.config has it."""

from __future__ import annotations

import pytest

from scripts.options import PAGE, with_table
from webgrad.config import CONFIG_VARIABLE, OPTIONS


@pytest.mark.golden
def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run: python -m scripts.options"


def test_every_option_is_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [CONFIG_VARIABLE, *(name for option in OPTIONS for name in (option.name, option.variable))]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_a_page_without_the_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"configuration\.md must hold the lines"):
        with_table("# Nothing")
