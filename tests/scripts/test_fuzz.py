"""`make fuzz`, a little of it: what a worker does is counted, and what must not happen is found and named."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts import fuzzing
from scripts.figures import Budget, Progress
from scripts.fuzz_files import damaged, seeds
from scripts.fuzz_kernels import OWN, changed
from scripts.fuzzing import ENDLESS, Case, Part, _Worker, run
from scripts.system import ROOT
from tests.limits import HANG

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
        if seed in (1, 2):
            (folder / "asleep").touch()
            time.sleep(1000)
        return "fine"

    return case


def test_what_hangs_is_ended_and_blamed_unless_it_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # No clock is asked: on a busy machine a worker may well be silent before its first case.
    monkeypatch.setattr(_Worker, "hangs", lambda self: Path(self.folder, "asleep").exists())
    part = Part("sleepy", "", 4, 1.0, sleepy)
    found = run(part, 0, 4, 1, Budget(60), Progress())
    assert [seed for seed, _ in found.failures] == [2]
    assert (found.outcomes["no end"], found.outcomes["HUNG"]) == (1, 1)


def test_a_worker_hangs_that_has_been_at_one_case_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("scripts.fuzzing.time.monotonic", lambda: now[0])
    worker: Any = SimpleNamespace(
        at=7, seen=-1, since=0.0, part=Part("slow", "", 1, 1.0, sleepy, seconds=2.0), endless=lambda: False
    )
    usual = max(fuzzing.PATIENCE)
    now[0] = 100.0
    assert not _Worker.hangs(worker)  # it has gone on to case 7
    now[0] += usual + 9
    assert not _Worker.hangs(worker)
    worker.endless = lambda: True
    assert _Worker.hangs(worker)
    worker.endless = lambda: False
    now[0] += 2
    assert _Worker.hangs(worker)
    worker.at = 8
    assert not _Worker.hangs(worker)


def test_a_part_that_cannot_begin_says_so() -> None:
    def broken(folder: Path) -> Case:
        raise OSError("no such thing")

    with pytest.raises(RuntimeError, match="broken cannot begin: OSError: no such thing"):
        run(Part("broken", "", 4, 1.0, broken), 0, 4, 1, Budget(1), Progress())


class UntilTried(Budget):
    """Time that is over as soon as a case was tried."""

    def __init__(self, file: Path) -> None:
        super().__init__(1)
        self.file = file

    @property
    def over(self) -> bool:
        return self.file.exists()


def test_time_that_is_over_ends_a_part(tmp_path: Path) -> None:
    tried = tmp_path / "tried"

    def slow(folder: Path) -> Case:
        def case(seed: int) -> str:
            tried.touch()
            time.sleep(0.02)
            return "fine"

        return case

    part = Part("slow", "", 1_000_000, 1.0, slow, portion=1_000_000)
    found = run(part, 0, 1_000_000, 2, UntilTried(tried), Progress())
    assert 0 < found.done < 1_000_000


def test_a_seed_gives_the_same_case_again(tmp_path: Path) -> None:
    sound, texts = seeds(tmp_path), [(text, dict[str, str]()) for text in OWN]
    assert [damaged(seed, sound) for seed in range(50)] == [damaged(seed, sound) for seed in range(50)]
    assert [changed(seed, texts) for seed in range(20)] == [changed(seed, texts) for seed in range(20)]


@pytest.mark.gpu
def test_the_command_tries_a_few_of_each() -> None:
    names = ("settings", "templates", "tokenizers", "packages", "kernels", "programs", "files")
    command = [sys.executable, "-m", "scripts.fuzz", "--jobs", "1", "--count", "60", "--only", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CompileError" in done.stdout
    assert "compiled, launched" in done.stdout
    rows = [re.split("  +", line) for line in done.stdout.splitlines()[-len(names) :]]
    figures = [(tried, of, failures) for _, tried, of, *_, failures in rows]
    assert figures == [("60", "60", "0")] * len(names), done.stdout
