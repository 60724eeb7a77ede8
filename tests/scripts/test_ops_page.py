"""docs/ops.md holds every op and every function, in today's words."""

from __future__ import annotations

import re

import pytest

import webgrad
from scripts.ops_page import BOUNDS, CELLS, MODULES, PAGE, SENTENCES, functions_of, page, says, sentence
from webgrad.ops.table import TABLE

ROWS = {op.name: op for op in TABLE.values() if op.kind not in ("leaf", "scalar")}


@pytest.mark.golden
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m scripts.ops_page"


def test_every_primitive_has_a_row_that_says_what_it_does() -> None:
    text = page()
    assert [name for name in ROWS if f"\n| `{name}` | {ROWS[name].kind} |" not in text] == []
    assert [name for name, op in ROWS.items() if not says(op).endswith(".")] == []


def test_every_public_function_is_there() -> None:
    text = page()
    listed = {name for homes, _ in MODULES for name, _ in functions_of(homes)}
    public = {
        name
        for name in webgrad.__all__
        if getattr(getattr(webgrad, name), "__module__", "").startswith("webgrad.functions")
    }
    assert sorted(public - listed) == []
    assert [name for name in listed if f"\n| [`{name}`](reference/" not in text] == []


def test_every_function_has_a_sentence() -> None:
    functions = [(name, function) for homes, _ in MODULES for name, function in functions_of(homes)]
    assert len(functions) > 150
    assert [name for name, function in functions if not sentence(function).endswith((".", "…"))] == []


def test_what_is_written_by_hand_is_about_ops_that_exist() -> None:
    assert sorted({*SENTENCES, *(name for name, _ in CELLS)} - ROWS.keys()) == []


def test_what_gpus_lack_is_said() -> None:
    primitives = page().partition("## Functions")[0].splitlines()
    rows = {line.split("`")[1]: line for line in primitives if line.startswith("| `")}
    assert rows.keys() == ROWS.keys()
    assert "| floats | all |" in rows["exp"]
    assert "| floats | not float64 |" in rows["attention"]
    assert "| all | all | bool |" in rows["equal"]
    assert "| integers, unsigned, floats | all |" in rows["sum"]


def test_every_row_says_how_exact_it_is_and_what_its_gradient_is() -> None:
    rows = [line for line in page().partition("## Functions")[0].splitlines() if line.startswith("| `")]
    cells = [re.split(r"(?<!\\)\|", line) for line in rows]
    assert {len(each) for each in cells} == {10}
    assert [each[1] for each in cells if not all(each[at].strip() for at in (3, 4, 6, 7, 8))] == []
    rounded = {op.name for op in ROWS.values() if op.kind in ("contract", "attend", "fft")}
    assert sorted(rounded - BOUNDS.keys()) == []
    assert sorted(BOUNDS.keys() - ROWS.keys()) == []


def test_a_bar_in_a_sentence_does_not_end_the_cell() -> None:
    def function() -> None:
        """a | b,
        of bools.

        More.
        """

    assert sentence(function) == "a \\| b, of bools."
