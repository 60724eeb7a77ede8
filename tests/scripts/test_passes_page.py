"""webgrad/schedule/README.md holds every pass, in the order in which they run."""

from __future__ import annotations

import pytest

from scripts.passes_page import PAGE, with_tables


@pytest.mark.golden
def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page), "run: python -m scripts.passes_page"


def test_a_page_without_the_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"README\.md must hold the lines"):
        with_tables("# Nothing")
