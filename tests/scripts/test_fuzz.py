"""`make fuzz`, a little of it: what a worker does is counted, and what must not happen is found and named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import fuzzing
from scripts.figures import Budget, Progress
from scripts.fuzz_files import damaged, seeds
from scripts.fuzz_kernels import OWN, changed
from scripts.fuzzing import ENDLESS, Case, Part, run
from scripts.system import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")


def troubled(folder: Path) -> Case:
    """Case 3 dies, 5 raises, 7 takes all the time there is."""

    def case(seed: int) -> str:
        if seed == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 5:
            raise ValueError("not this one")
        while seed == 7:
            pass
        return "fine"

    return case


def test_what_dies_raises_or_does_not_end_is_found_and_the_others_go_on() -> None:
    part = Part("troubled", "", 10, 1.0, troubled, portion=10, seconds=0.2)
    found = run(part, 0, 10, 1, Budget(1), Progress())
    failed = dict(found.failures)
    assert sorted(failed) == [3, 5, 7]
    assert "ended with -9" in failed[3]
    assert failed[5] == "ValueError: not this one"
    assert "processor time" in failed[7]
    assert found.done == 10
    assert found.outcomes["fine"] == 4  # after the death; those before it went with their worker
    assert found.outcomes["outcome lost with its worker"] == 3


def sleepy(folder: Path) -> Case:
    def case(seed: int) -> str:
        if seed == 1:
            (folder / ENDLESS).touch()
        time.sleep(60 if seed in (1, 2) else 0)
        return "fine"

    return case


def test_what_hangs_is_ended_and_blamed_unless_it_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "PATIENCE", (0.5, 0.2))
    part = Part("sleepy", "", 4, 1.0, sleepy, seconds=0.01)
    found = run(part, 0, 4, 1, Budget(1), Progress())
    assert [seed for seed, _ in found.failures] == [2]
    assert (found.outcomes["no end"], found.outcomes["HUNG"]) == (1, 1)


def test_a_part_that_cannot_begin_says_so() -> None:
    def broken(folder: Path) -> Case:
        raise OSError("no such thing")

    with pytest.raises(RuntimeError, match="broken cannot begin: OSError: no such thing"):
        run(Part("broken", "", 4, 1.0, broken), 0, 4, 1, Budget(1), Progress())


def test_time_that_is_over_ends_a_part() -> None:
    def slow(folder: Path) -> Case:
        def case(seed: int) -> str:
            time.sleep(0.02)
            return "fine"

        return case

    part = Part("slow", "", 1000, 1.0, slow)
    found = run(part, 0, 1000, 2, Budget(0.5 / 60), Progress())
    assert 0 < found.done < 500


def test_a_seed_gives_the_same_case_again(tmp_path: Path) -> None:
    sound, texts = seeds(tmp_path), [(text, dict[str, str]()) for text in OWN]
    assert [damaged(seed, sound) for seed in range(50)] == [damaged(seed, sound) for seed in range(50)]
    assert [changed(seed, texts) for seed in range(20)] == [changed(seed, texts) for seed in range(20)]


@pytest.mark.gpu
def test_the_command_tries_a_few_of_each() -> None:
    names = ("settings", "templates", "tokenizers", "packages", "kernels", "programs", "files")
    command = [sys.executable, "-m", "scripts.fuzz", "--jobs", "1", "--count", "60", "--only", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CompileError" in done.stdout
    assert "compiled, launched" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()[-len(names) :]]
    assert all(row[-1] == "0" and row.count("60") == 2 for row in rows), done.stdout
