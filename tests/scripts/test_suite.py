"""The suite in several processes: every folder is in one group, and what fails is told."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from scripts.suite import GROUPS, WHOLE, arguments_of, cores, run_groups
from scripts.system import ROOT


def test_every_group_is_of_what_is_there_and_nothing_is_named_twice() -> None:
    named = [each for group in GROUPS for each in group]
    assert len(named) == len(set(named))
    assert [each for each in named if not (ROOT / "tests" / each).exists()] == []
    rest, *groups = arguments_of((("a", "b"), ("c",)))
    assert rest == ["pytest", "--ignore=tests/a", "--ignore=tests/b", "--ignore=tests/c"]
    assert groups == [["pytest", "tests/a", "tests/b"], ["pytest", "tests/c"]]
    assert arguments_of([["a"]], WHOLE)[1] == ["pytest", "tests/a", *WHOLE]


def test_the_whole_suite_is_what_pytest_runs_by_itself_and_the_tests_marked_long() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    option, marks = WHOLE
    assert settings["tool"]["pytest"]["ini_options"]["addopts"][-2:] == [option, f"not long and {marks}"]


def start(group: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """The group is a program of Python, and what it gets."""
    command = [sys.executable, "-c", *group]
    return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)


def test_all_of_them_run_and_the_first_code_that_is_not_zero_counts(
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = "import sys; print('said by', sys.argv[1]); sys.exit(int(sys.argv[2]))"
    assert run_groups([(said, "one", "0"), (said, "two", "0")], start, jobs=2) == 0
    assert run_groups([(said, "one", "0"), (said, "two", "3"), (said, "three", "4")], start, jobs=1) == 3
    printed = capfd.readouterr().out
    assert printed.count("said by one") == 2
    assert printed.count("said by three") == 1
    assert "ended with 3" in printed
    assert "ended with 4" in printed
    assert cores() >= 1


# Makes a file of its own name, and ends when the other one's is there: by itself it would never end.
TOGETHER = """
import sys, time
from pathlib import Path
mine, other = map(Path, sys.argv[1:3])
mine.touch()
while not other.exists():
    time.sleep(0.01)
"""


def test_as_many_run_at_once_as_are_allowed(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    assert run_groups([(TOGETHER, one, other), (TOGETHER, other, one)], start, jobs=2) == 0


def test_an_interrupt_ends_what_runs() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupted(group: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        if started:
            raise KeyboardInterrupt
        started.append(start(group, output))
        return started[0]

    sleeping = "import time; time.sleep(1000)"
    with pytest.raises(KeyboardInterrupt):
        run_groups([(sleeping,), (sleeping,)], interrupted, jobs=2)
    assert started[0].returncode not in (None, 0)
