"""A plugin of pytest that notes what became of every test, and the counts of such notes.

In: the reports of a run, and the path in CONFORMANCE_REPORT. Out: a file with a line of JSON for each test,
as it ends: so a run that is cut off has its notes too; then `Counts` of them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

__all__ = ["OUTCOMES", "Counts", "counts_of"]

OUTCOMES = ("passed", "failed", "skipped", "xfailed", "xpassed")
_RANK = ("failed", "xfailed", "xpassed", "skipped", "passed")  # of a test's three phases the first counts


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of a run: tests by outcome, and how many there were to run."""

    collected: int
    tests: dict[str, list[str]] = field(default_factory=dict)  # by outcome

    def number(self, outcome: str) -> int:
        """How many tests came out so."""
        return len(self.tests.get(outcome, ()))

    @property
    def ended(self) -> int:
        """How many tests came to an end."""
        return sum(map(self.number, OUTCOMES))

    @property
    def share(self) -> float:
        """Which share of the tests that ran passed; those expected to fail did not."""
        ran = self.ended - self.number("skipped")
        return (self.number("passed") + self.number("xpassed")) / ran if ran else 0.0


def outcome_of(report: Any) -> str:
    """What a report of one phase of a test says."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed" if report.passed else "failed"
    return str(report.outcome)


class Notes:
    """The hooks: a test's phases become one line when it has ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.phases: list[str] = []

    def write(self, record: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.write({"collected": len(session.items)})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.phases.append(outcome_of(report))
        if report.when == "teardown":
            self.write({"test": report.nodeid, "outcome": min(self.phases, key=_RANK.index)})
            self.phases = []


def pytest_configure(config: pytest.Config) -> None:
    """Begin an empty file."""
    path = Path(os.environ["CONFORMANCE_REPORT"])
    path.write_text("", encoding="utf-8")
    config.pluginmanager.register(Notes(path))


def counts_of(path: Path) -> Counts:
    """The counts of a run's notes, finished or not."""
    collected, tests = 0, dict[str, list[str]]()
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    for line in lines:
        if not line.endswith("\n"):
            continue  # which is being written
        record = json.loads(line)
        if "collected" in record:
            collected = record["collected"]
        else:
            tests.setdefault(record["outcome"], []).append(record["test"])
    return Counts(collected, tests)
