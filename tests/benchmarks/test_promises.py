"""The promises that are counted, not timed: each benchmark script says itself whether it is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.gpu


def kept(script: str, *arguments: str) -> None:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    done = subprocess.run(command, cwd=BENCHMARKS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MISS" not in done.stdout


def test_feed_forward_layers_create_nothing_from_the_second_run_on() -> None:
    kept("feed_forward.py", "64")


def test_a_long_stream_creates_few_objects() -> None:
    kept("diffusion_stream.py", "4")


def test_many_dispatches_leave_nothing_behind() -> None:
    kept("soak.py", "160000")


def test_training_over_and_over_leaves_nothing_behind() -> None:
    kept("long_loops.py", "training", "cpu", "0")
