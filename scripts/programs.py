"""Public PyTorch programs with torch and with webgrad.torch: `python -m scripts.programs [names] [options]`.

In: tests/programs, which lists programs, their files' hashes, and how they are entered. Out: a line for each:
how far outputs and losses of its steps are from torch's, from the same weights; 0 if every one that has no
exception agrees. Each runs in two processes, one with torch and one without; nothing else differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scripts.environments import interpreter
from scripts.suite import cores
from scripts.system import ROOT, say
from scripts.torch_tests import EXPECT, FOLDER, ensure
from tests.programs import exceptions, sources

__all__ = ["BOUND", "Outcome", "compare", "main", "run"]

BOUND = 1e-4  # of outputs and losses, relative to the largest where that is above 1
LONGEST = 300  # seconds that a process may take
LINES = 3  # of an error that are shown


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program."""

    name: str
    error: float = float("inf")  # the largest difference
    trouble: str = ""  # why there is none
    first: float = 0.0  # seconds to the end of the first step

    @property
    def agrees(self) -> bool:
        """Whether it ran and its numbers are torch's."""
        return self.error <= BOUND


def names_of(wanted: Sequence[str]) -> list[str]:
    """The programs whose names contain one of these words; all of them without words."""
    import webgrad.torch

    webgrad.torch.install()  # adapters are written for torch, which is not here
    from tests.programs.table import PROGRAMS

    return [name for name in PROGRAMS if not wanted or any(each in name for each in wanted)]


def run(name: str, mirrors: Path | None, kept: Path) -> Outcome:
    """A program with torch, unless its record is kept, and with webgrad."""
    from tests.programs.table import PROGRAMS

    try:
        folder = sources.folder_of(sources.read_list()[PROGRAMS[name].repository], mirrors)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return Outcome(name, trouble=f"its files are not there: {error}")
    theirs, ours = kept / f"{name}-torch.npz", kept / f"{name}-webgrad.npz"
    if not theirs.is_file() and (trouble := _worker(interpreter(FOLDER), "torch", name, folder, theirs)):
        return Outcome(name, trouble=f"with torch: {trouble}")
    if trouble := _worker(Path(sys.executable), "webgrad", name, folder, ours, theirs):
        return Outcome(name, trouble=trouble)
    with np.load(theirs) as expected, np.load(ours) as found:
        return compare(name, dict(expected), dict(found))


def compare(name: str, expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> Outcome:
    """How far one record is from the other."""
    worst = 0.0
    for key, value in expected.items():
        if not key.startswith(("output.", "loss.")):
            continue
        if key not in found or found[key].shape != value.shape:
            return Outcome(name, trouble=f"{key} is {_shape(found, key)}, with torch {_shape(expected, key)}")
        largest = max(1.0, float(np.max(np.abs(value), initial=0.0)))
        apart = np.max(np.abs(found[key].astype(complex) - value), initial=0.0)
        worst = max(worst, float(apart) / largest) if apart == apart else float("nan")
        if worst != worst:
            return Outcome(name, trouble=f"{key} has NaN on one side")
    return Outcome(
        name, worst, "" if worst <= BOUND else f"differs by {worst:.1e}", float(found["seconds"][:2].sum())
    )


def _shape(record: dict[str, np.ndarray], key: str) -> str:
    return f"{record[key].shape} of {record[key].dtype}" if key in record else "missing"


def _worker(python: Path, *arguments: object) -> str:
    """Run a worker; the end of its error, or nothing."""
    command = [str(python), "-m", "tests.programs.worker", *map(str, arguments)]
    environment = {"WEBGRAD_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **os.environ}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"took longer than {LONGEST} s"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    return "\n".join(lines[-LINES:]) or f"ended with {done.returncode}"


def main(arguments: Sequence[str]) -> int:
    """Run the programs, and say what came of them."""
    parser = argparse.ArgumentParser(prog="scripts.programs", description="public PyTorch programs, here")
    parser.add_argument("names", nargs="*", help="only programs whose names contain one of these")
    parser.add_argument("--mirrors", type=Path, help="a folder of git directories, owner+name/repo")
    parser.add_argument("--keep", type=Path, help="keep records here, and use torch's that are here")
    parser.add_argument("--jobs", type=int, default=cores(), help="programs at a time")
    parser.add_argument("--pin", action="store_true", help="write missing hashes into the list, and end")
    given = parser.parse_args(arguments)
    if given.pin:
        sources.pin(given.mirrors)
        return 0
    if code := ensure(FOLDER, (EXPECT,)):
        return code
    names = names_of(given.names)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        kept = given.keep or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        outcomes = []
        for outcome in pool.map(lambda name: run(name, given.mirrors, kept), names):
            outcomes.append(outcome)
            _show(outcome)
    return _summary(outcomes)


def _show(outcome: Outcome) -> None:
    told = f"{outcome.error:8.1e}   first step {outcome.first:5.2f} s" if outcome.agrees else outcome.trouble
    print(f"{'ok  ' if outcome.agrees else 'FAIL'} {outcome.name:32} {told}", flush=True)


def _summary(outcomes: Sequence[Outcome]) -> int:
    known = exceptions.REASONS
    failed = [each.name for each in outcomes if not each.agrees and each.name not in known]
    needless = [each.name for each in outcomes if each.agrees and each.name in known]
    say(f"{sum(each.agrees for each in outcomes)} of {len(outcomes)} programs give torch's numbers")
    for each in needless:
        say(f"{each} agrees: tests/programs/exceptions.py need not name it")
    if failed:
        say(f"not: {' '.join(failed)}")
    return 1 if failed or needless else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
