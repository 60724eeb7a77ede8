"""docs/one-matmul.md is what the compiler really does."""

from __future__ import annotations

import re

import pytest

from scripts.one_matmul import PAGE, example, page


@pytest.mark.golden
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m scripts.one_matmul"


def test_the_page_depends_on_nothing_that_ran_before() -> None:
    first = page()
    example().numpy()
    assert page() == first


def test_the_example_computes_what_the_page_says() -> None:
    assert example(rows=3, value=2.0).tolist() == [[2.0 * 2.0 * 256 + 2.0] * 128] * 3
    assert example(rows=1, value=-1.0).tolist() == [[255.0] * 128]


def test_every_stage_has_its_part() -> None:
    titles = [line[3:] for line in page().splitlines() if line.startswith("## ")]
    assert titles == [
        "The user's code",
        "The graph",
        "The schedule",
        "The kernel, before the passes",
        "The kernel, after the passes",
        "The WGSL",
        "The launch",
        "The same again",
    ]


def test_it_is_one_kernel_without_the_values_in_between() -> None:
    text = page()
    assert text.count("group 0") == 1
    assert "group 1" not in text
    assert re.search(r"plans made by two calls +1, then 0\n", text)
    assert re.search(r"key of other values is equal +yes\n", text)
