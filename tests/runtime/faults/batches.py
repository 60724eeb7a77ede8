"""Sequences of misuse in processes of their own, so that an abort, a segfault or a hang is seen and counted.

In: how many sequences, how many per process, the seed. Out: a `Report`. A process that dies is blamed on the
sequence it announced last, and the rest of its share runs in a new one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.limits import HANG

__all__ = ["Report", "run_batches"]

ROOT = Path(__file__).parents[3]


@dataclass(slots=True)
class Report:
    """What became of the sequences."""

    sequences: int = 0
    calls: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)  # a wrong error, or a wrong result afterwards
    deaths: list[str] = field(default_factory=list)  # aborts and segfaults
    hangs: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.failures or self.deaths or self.hangs)

    def describe(self) -> str:
        """All that went wrong, with the commands that show it again."""
        return "\n\n".join([*self.deaths, *self.hangs, *self.failures])


def run_batches(total: int, seed: int, per_process: int = 100, first: int = 0) -> Report:
    """Run sequences `first` to `first + total`, so many per process."""
    report = Report()
    number, end = first, first + total
    while number < end:
        number = _run(report, seed, number, min(per_process, end - number))
    return report


def _run(report: Report, seed: int, first: int, count: int) -> int:
    """One process; gives the number of the first sequence that did not run."""
    command = [sys.executable, "-m", "tests.runtime.faults.sequences"]
    command += ["--seed", str(seed), "--first", str(first), "--count", str(count)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"}
    try:
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=False
        )
        output, status = done.stdout, done.returncode
        complaint = done.stderr
    except subprocess.TimeoutExpired as error:
        output, status, complaint = _text(error.stdout), None, _text(error.stderr)
    lines = output.splitlines()
    announced = [int(line.split()[1]) for line in lines if line.startswith("sequence ")]
    last = announced[-1] if announced else first
    again = " ".join(command)
    if lines and lines[-1].startswith("{") and status in (0, 1):
        summary = json.loads(lines[-1])
        report.calls += summary["calls"]
        report.errors.update(summary["errors"])
        report.failures += [f"{each}\nagain: {again}" for each in summary["failures"]]
        report.sequences += count
        return first + count
    blamed = f"in sequence {last} of seed {seed}; again: {again}\n{complaint[-3000:]}"
    if status is None:
        report.hangs.append(f"no end after {HANG:.0f} s {blamed}")
    else:
        report.deaths.append(f"ended with {status} {blamed}")
    report.sequences += last + 1 - first
    return last + 1


def _text(output: bytes | str | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
