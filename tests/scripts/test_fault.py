"""`make fault`, a little of it; losses, memory and misuse are in tests/runtime/faults."""

from __future__ import annotations

import os

import pytest

from scripts.fault_cases import CACHES, USES, WORKS, caches, forks, interrupts

pytestmark = [pytest.mark.fault, pytest.mark.gpu]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no timers that send signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", WORKS)
def test_ctrl_c_at_random_moments(work: str) -> None:
    outcomes = interrupts(work, 12, 1)
    assert not [each for each in outcomes if each.startswith("WRONG")], outcomes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(("use", "outcome"), zip(USES, ("refused by ForkError", "right"), strict=True))
def test_forks_at_random_moments(use: str, outcome: str) -> None:
    assert forks(use, 4, 1) == {outcome: 4}


@pytest.mark.parametrize("kind", CACHES)
def test_damaged_caches(kind: str) -> None:
    outcomes = caches(kind, 12, 1)
    assert not [each for each in outcomes if each.startswith("WRONG")], outcomes
