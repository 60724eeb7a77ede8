"""The array API's own suite on our devices: `python -m scripts.conformance --suite FOLDER [for pytest …]`.

In: a checkout of data-apis/array-api-tests with data-apis/array-api in its array-api/ folder, and the lists
in conformance/. Out: how many tests passed, failed, were skipped or failed as expected, for each device, and
an exit code that is 0 where nothing failed but what is listed. The checkout is not written to.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import environments
from scripts.conformance_lists import ListError, for_device, read_list, stale
from scripts.conformance_report import OUTCOMES, Counts, counts_of
from scripts.system import ROOT, say

__all__ = ["SuiteError", "check_suite", "main"]

VERSION = "2025.12"
FOLDER = ROOT / ".venv-conformance"
LISTS = ROOT / "conformance"
RESULTS = ROOT / "build" / "conformance"
BOTH = ("cpu", "webgpu")
_PAUSE = 30.0  # seconds between lines about how far it is
_GET = "git clone --recurse-submodules https://github.com/data-apis/array-api-tests"
_MISSING_TYPES = """
import webgrad as wg
from webgrad.functions.array.types import STANDARD
there = wg.__array_namespace_info__().dtypes()
print(",".join(each.name for each in STANDARD if each.name not in there))
"""


class SuiteError(Exception):
    """The suite cannot be run; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Run:
    """A device's run of the suite: its process, its notes, and what pytest wrote."""

    device: str
    process: subprocess.Popen[bytes]
    notes: Path
    output: Path
    started: float


# What is needed


def check_suite(given: str | None) -> Path:
    """The suite's folder, where all that it takes is there."""
    if not given:
        raise SuiteError(f"say where the suite is: make conformance SUITE=<checkout>. To get it: {_GET}")
    suite = Path(given).expanduser().resolve()
    if not (suite / "array_api_tests").is_dir() or not (suite / "conftest.py").is_file():
        raise SuiteError(f"{suite} is no checkout of data-apis/array-api-tests. To get it: {_GET}")
    stubs = suite / "array-api" / "src" / "array_api_stubs" / f"_{VERSION.replace('.', '_')}"
    if not stubs.is_dir():
        raise SuiteError(
            f"{suite} lacks the standard {VERSION} itself, data-apis/array-api, in its array-api/ folder: "
            "run `git submodule update --init` in it, or put a checkout there"
        )
    return suite


def ensure() -> Path:
    """The Python of an environment with what the suite needs, made once."""
    if code := environments.ensure(
        FOLDER, "what the suite needs", (), lambda pip: pip("-e", ".[conformance]")
    ):
        raise SuiteError(f"making {FOLDER} failed with code {code}")
    return environments.interpreter(FOLDER)


def missing_types(python: Path, device: str) -> str:
    """The standard's types that a device lacks, as the suite takes them; the device itself is asked."""
    asked = subprocess.run(
        [str(python), "-c", _MISSING_TYPES],
        cwd=ROOT,
        env=environment({"WEBGRAD_DEVICE": device}),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        last = asked.stderr.strip().splitlines() or ["no reason was given"]
        raise SuiteError(f"the device {device} cannot be used: {last[-1]}")
    return asked.stdout.strip()


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This environment, with webgrad and the plugin to be found, and more."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more}


# Running


def start(python: Path, suite: Path, device: str, arguments: Sequence[str], folder: Path) -> Run:
    """Begin a device's run."""
    name = device.replace(":", "-")
    files = {each: folder / f"{name}-{each}.txt" for each in ("skips", "xfails")}
    for each, path in files.items():
        tests = for_device(read_list(LISTS / f"{each}.txt"), device)
        path.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
    RESULTS.mkdir(parents=True, exist_ok=True)
    notes, output = RESULTS / f"{name}.jsonl", RESULTS / f"{name}.txt"
    notes.unlink(missing_ok=True)
    command = [
        *(str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "scripts.conformance_report"),
        *("--disable-deadline", f"--skips-file={files['skips']}", f"--xfails-file={files['xfails']}"),
        *arguments,
    ]
    variables = {
        "ARRAY_API_TESTS_MODULE": "webgrad",
        "ARRAY_API_TESTS_VERSION": VERSION,
        "ARRAY_API_TESTS_SKIP_DTYPES": missing_types(python, device),
        "CONFORMANCE_REPORT": str(notes),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / name),
        "WEBGRAD_DEVICE": device,
    }
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=suite, env=environment(variables), stdout=file, stderr=subprocess.STDOUT
        )
    return Run(device, process, notes, output, time.monotonic())


def wait(run: Run) -> float:
    """Wait for a run's end, saying now and then how far it is; its seconds."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(_PAUSE)
            return time.monotonic() - run.started
        counts = counts_of(run.notes)
        say(f"{run.device}: {counts.ended:,} of {counts.collected:,} tests, {counts.number('failed')} failed")


def row(device: str, counts: Counts, seconds: float) -> str:
    """A line of the table."""
    numbers = "".join(f"{counts.number(each):>9,}" for each in OUTCOMES)
    return f"{device:<10}{numbers}{counts.share:>9.2%}{seconds:>8.0f} s"


def problems(run: Run, counts: Counts, whole: bool) -> Iterator[str]:
    """What is wrong with a run, beginning with what failed."""
    for test in counts.tests.get("failed", ()):
        yield f"failed: {test}"
    if counts.ended < counts.collected or not counts.collected or run.process.returncode not in (0, 1):
        yield f"ended early, with code {run.process.returncode}: see {run.output}"
    if whole:
        every = [test for each in counts.tests.values() for test in each]
        for name in ("skips.txt", "xfails.txt"):
            for test in stale(for_device(read_list(LISTS / name), run.device), every):
                yield f"listed in conformance/{name}, but not in the suite: {test}"


def report(runs: Sequence[tuple[Run, float]], whole: bool) -> int:
    """Print the counts, what failed, and what could leave the lists; 0 where nothing is wrong."""
    found = [(run, counts_of(run.notes), seconds) for run, seconds in runs]
    wrong = 0
    for run, counts, _ in found:
        for problem in problems(run, counts, whole):
            print(f"{run.device}: {problem}")
            wrong = 1
        for test in counts.tests.get("xpassed", ()):
            print(f"{run.device}: passed, though expected to fail: {test}")
    print(f"\n{'device':<10}{''.join(f'{each:>9}' for each in (*OUTCOMES, 'of run'))}{'time':>10}")
    for run, counts, seconds in found:
        print(row(run.device, counts, seconds))
    print(f"what pytest wrote is in {RESULTS}", flush=True)
    return wrong


def options(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """What is asked for, and what is pytest's."""
    parser = argparse.ArgumentParser(prog="scripts.conformance", description=__doc__, allow_abbrev=False)
    parser.add_argument("--suite", default=os.environ.get("SUITE"), help="the checkout; or SUITE=…")
    parser.add_argument("--device", action="append", help="cpu, webgpu, webgpu:N …; both unless one is named")
    parser.add_argument(
        "--max-examples", type=int, default=20, help="for each test; 20 unless more are asked"
    )
    parser.add_argument("--here", action="store_true", help="by this Python, which has what the suite needs")
    return parser.parse_known_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the suite on the devices, at the same time, and report."""
    chosen, rest = options(arguments)
    runs: list[Run] = []
    try:
        suite = check_suite(chosen.suite)
        python = Path(sys.executable) if chosen.here else ensure()
        wanted = [f"--max-examples={chosen.max_examples}", *(rest or ["array_api_tests"])]
        with tempfile.TemporaryDirectory() as folder:
            for device in chosen.device or BOTH:
                runs.append(start(python, suite, device, wanted, Path(folder)))
                say(f"the suite runs on {device}")
            return report([(run, wait(run)) for run in runs], whole=not rest)
    except (SuiteError, ListError) as error:
        say(str(error))
        return 2
    finally:
        for run in runs:
            run.process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
