"""`make fault`, a little of it; losses, memory and misuse are in tests/runtime/faults."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from scripts.fault_cases import CACHES, SIGNALS, WORKS, caches, interrupts_apart
from scripts.system import ROOT
from tests.limits import HANG

pytestmark = [pytest.mark.fault, pytest.mark.gpu]


@pytest.mark.skipif(os.name == "nt", reason="Windows has few signals")
@pytest.mark.parametrize("work", WORKS)
def test_signals_at_random_moments(work: str) -> None:
    # Apart: Hypothesis counts collections of garbage by a callback, and what is raised in there is lost.
    outcomes = interrupts_apart(work, 12, 1)
    assert {each.partition(" ")[0] for each in outcomes} <= {*SIGNALS}, outcomes
    assert sum(outcomes.values()) == 12


@pytest.mark.skipif(os.name == "nt", reason="Windows has few signals")
def test_a_process_ends_after_many_signals() -> None:
    outcomes = interrupts_apart("tensors, GPU", 100, 1)
    assert outcomes.keys() == {f"{name} raised, right afterwards" for name in SIGNALS}, outcomes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_command_forks_at_random_moments() -> None:
    command = [sys.executable, "-m", "scripts.fault", "--only", "forks", "--forks", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 refused by ForkError" in done.stdout
    assert "2 right" in done.stdout


@pytest.mark.parametrize("kind", CACHES)
def test_damaged_caches(kind: str) -> None:
    outcomes = caches(kind, 3 if kind == "measured kernels" else 20, 1)
    assert not [each for each in outcomes if each.startswith("WRONG")], outcomes
