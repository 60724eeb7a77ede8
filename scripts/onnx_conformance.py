"""The ONNX standard's backend tests, and opencv_extra's models, on our devices: `make conformance-onnx`.

In: the package onnx, 1.18 and 1.23.2, each in an environment of its own, which writes its cases as folders;
the list conformance/onnx.txt. Out: for each suite and device how many agree, and an exit code that is 0
where all that is not listed does, and enough does. What is listed and agrees is told of.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts import environments
from scripts.conformance_lists import ONNX, Expectation, ListError, for_device, read_list, stale
from scripts.onnx_cases import cases_of, run_case
from scripts.onnx_models import FOLDER, PACKAGES
from scripts.system import ROOT, say

__all__ = ["Counts", "Suite", "main"]

LIST = ROOT / "conformance" / "onnx.txt"
DEVICES = ("cpu", "webgpu:0")
_PAUSE = 30.0  # seconds between lines about how far it is
_PACKAGED = "import onnx.backend.test as test; print(test.__path__[0])"


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that are counted together; `least` of them must agree on the device."""

    name: str
    version: str  # of the package onnx; "" for folders that the user names
    least: Mapping[str, int]
    makes_cases: bool = False  # newer packages have files of some cases only, and code that makes the others


SUITES = (
    Suite("onnx 1.18", "1.18.0", {"cpu": 1520, "webgpu": 1500}),
    Suite("onnx 1.23.2", "1.23.2", {"cpu": 1850, "webgpu": 1850}, makes_cases=True),
)
OPENCV = Suite("opencv_extra", "", {"cpu": 303, "webgpu": 303})


@dataclass(slots=True)
class Counts:
    """What became of a suite on a device."""

    suite: Suite
    device: str
    expected: frozenset[str]  # of the list: not to agree
    agreed: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)  # do not agree, as is expected
    wrong: dict[str, str] = field(default_factory=dict)  # do not agree, and what they say
    seconds: float = 0.0

    @property
    def least(self) -> int:
        """How many must agree."""
        return self.suite.least["cpu" if self.device == "cpu" else "webgpu"]

    @property
    def total(self) -> int:
        """How many were run."""
        return len(self.agreed) + len(self.listed) + len(self.wrong)


def main(arguments: Sequence[str]) -> int:
    """Run the suites on the devices, one after the other, and report."""
    options = _parser().parse_args(arguments)
    try:
        listed = read_list(LIST, ONNX)
        places = [(suite, _folders(suite)) for suite in SUITES if options.suite in suite.name]
    except (ListError, RuntimeError) as error:
        say(str(error))
        return 2
    if options.opencv and options.suite in OPENCV.name:
        places.append((OPENCV, [options.opencv.expanduser()]))
    runs = [
        _run(suite, folders, device, options.only, frozenset(for_device(listed, device)))
        for suite, folders in places
        for device in options.device or DEVICES
    ]
    return _report(runs, listed if not options.only and not options.suite and options.opencv else [])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts.onnx_conformance", description=__doc__)
    parser.add_argument("--device", action="append", help="cpu, webgpu:N …; both unless one is named")
    parser.add_argument("--suite", default="", help="only suites with this in their name")
    parser.add_argument("--only", default="", help="only cases whose names hold this regular expression")
    extra = "testdata/dnn/onnx of a checkout of opencv/opencv_extra; or OPENCV=…"
    given = os.environ.get("OPENCV")
    parser.add_argument("--opencv", type=Path, default=given and Path(given), help=extra)
    return parser


# The cases


def _folders(suite: Suite) -> list[Path]:
    """Where a suite's cases are: in its package, and where that has written the others."""
    folder = ROOT / f".venv-onnx-{suite.version}"
    wanted = PACKAGES if folder == FOLDER else (f"onnx=={suite.version}", "pillow")
    if environments.ensure(folder, f"onnx {suite.version}", wanted, lambda pip: pip(*wanted)):
        raise RuntimeError(f"making {folder} failed")
    python = str(environments.interpreter(folder))
    packaged = subprocess.run([python, "-c", _PACKAGED], capture_output=True, text=True, check=True)
    found = [Path(packaged.stdout.strip(), "data")]
    if suite.makes_cases:
        made = ROOT / "build" / "onnx" / suite.version
        say(f"writing the cases of onnx {suite.version}")
        subprocess.run([python, str(ROOT / "scripts" / "onnx_data.py"), str(made)], check=True)
        found.append(made)
    return found


def _run(suite: Suite, folders: Sequence[Path], device: str, only: str, expected: frozenset[str]) -> Counts:
    """Run a suite's cases on a device."""
    counts = Counts(suite, device, expected)
    start = told = time.monotonic()
    for case in cases_of(folders, only):
        outcome, message = run_case(case, device)
        if outcome == "ok":
            counts.agreed.append(case.name)
        elif case.name in expected:
            counts.listed.append(case.name)
        else:
            counts.wrong[case.name] = f"{outcome}: {message}"
        if time.monotonic() - told > _PAUSE:
            told = time.monotonic()
            say(f"{suite.name} on {device}: {counts.total:,} cases, {len(counts.wrong)} wrong")
    counts.seconds = time.monotonic() - start
    return counts


# What is told


def _report(runs: Sequence[Counts], listed: Sequence[Expectation]) -> int:
    wrong = 0
    for counts in runs:
        for problem in _problems(counts):
            print(problem)
            wrong = 1
    for device, name in _needless(runs):
        print(f"{device}: agrees, though listed: {name}")
    every = [name for counts in runs for name in (*counts.agreed, *counts.listed, *counts.wrong)]
    for name in stale((each.test for each in listed), every):
        print(f"listed in conformance/{LIST.name}, but in no suite: {name}")
        wrong = 1
    heads = ("agree", "listed", "wrong", "of", "at least", "seconds")
    print(f"\n{'suite':<14}{'device':<10}" + "".join(f"{each:>9}" for each in heads))
    for counts in runs:
        several = (counts.agreed, counts.listed, counts.wrong)
        numbers = (*map(len, several), counts.total, counts.least, round(counts.seconds))
        print(f"{counts.suite.name:<14}{counts.device:<10}" + "".join(f"{each:>9,}" for each in numbers))
    return wrong


def _problems(counts: Counts) -> Iterator[str]:
    """What is wrong with a run; fewer than must agree is, where all were run."""
    where = f"{counts.suite.name} on {counts.device}"
    yield from (f"{where}: {name}: {what}" for name, what in counts.wrong.items())
    if len(counts.agreed) < counts.least <= counts.total:
        yield f"{where}: {len(counts.agreed):,} agree, and {counts.least:,} must"


def _needless(runs: Sequence[Counts]) -> list[tuple[str, str]]:
    """What is listed for a device and agrees there, in every suite that has a case of this name."""
    agreed = {(run.device, name) for run in runs for name in run.expected.intersection(run.agreed)}
    return sorted(agreed - {(run.device, name) for run in runs for name in run.listed})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
