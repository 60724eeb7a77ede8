"""How the software adapter is run: code that was compiled for one width is not found by another."""

from __future__ import annotations

import pytest

from scripts.adapter import LANES, adapter_environment
from scripts.suite import lanes_of


def test_every_width_has_a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LP_NATIVE_VECTOR_WIDTH")
    usual, four, eight = (adapter_environment(lanes) for lanes in (None, LANES, 8))
    assert usual == four
    assert eight["LP_NATIVE_VECTOR_WIDTH"] == "256"
    assert eight["MESA_SHADER_CACHE_DIR"] != four["MESA_SHADER_CACHE_DIR"]
    monkeypatch.setenv("LP_NATIVE_VECTOR_WIDTH", "256")
    assert adapter_environment() == eight, "what the user has set stays"


def test_some_groups_have_other_subgroups() -> None:
    assert lanes_of(["pytest", "tests/lower"]) == 8
    assert lanes_of(["pytest", "tests/nn"]) is None
