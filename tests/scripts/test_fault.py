"""`make fault`, a little of it; losses, memory and misuse are in tests/runtime/faults."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from scripts.fault_cases import CACHES, WORKS, caches, interrupts
from scripts.system import ROOT
from tests.limits import HANG

pytestmark = [pytest.mark.fault, pytest.mark.gpu]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no timers that send signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", WORKS)
def test_ctrl_c_at_random_moments(work: str) -> None:
    outcomes = interrupts(work, 5, 1)
    assert not [each for each in outcomes if each.startswith("WRONG")], outcomes


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
