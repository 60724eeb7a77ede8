"""Which tests find which fault: `python -m scripts.mutants [--only words] [--nearest] [--with-fuzz] …`.

In: the table of faults, scripts/mutants_table.py and mutants_stages.py. Each is planted in a copy of the
tree, never in place, and the tests run there until one fails: those of the changed file first, then the
properties, then all others. A test that fails without the fault too finds nothing. With --with-fuzz some
random programs and graphs of `make fuzz` are tried on every fault as well. Out: a table of what found each;
exit code 0 where at least 95 in 100 are found by tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scripts.figures import table
from scripts.mutants_table import FAULTS, Fault
from scripts.system import ROOT

__all__ = ["main", "mutated", "stages"]

ENOUGH = 0.95  # of the faults
LIMITS = (600, 1200, 7200)  # seconds of processor time for the tests of each stage
BESIDES = ("tests/gradients", "tests/ops", "tests/functions", "tests/properties")  # what is quickest first
# What needs a network, another language, or other packages would find nothing.
LEFT_OUT = (
    "tests/web",
    "tests/torch",
    "tests/transformers",
    "tests/scripts",
    "tests/benchmarks",
    "tests/examples",
)
COPIED = ("webgrad", "tests", "scripts", "docs", "examples", "benchmarks")
NO_COPY = shutil.ignore_patterns("__pycache__", "node_modules", "results", "files")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
FUZZ = ("scripts.fuzz", "--only", "programs", "graphs", "--jobs", "1", "--minutes", "10", "--count", "2000")


def mutated(fault: Fault, text: str) -> str:
    """A file's text with the fault; the row is dead where its text is not there exactly once."""
    count = text.count(fault.old)
    if count != 1:
        raise ValueError(f"{fault.file}: {fault.old!r} occurs {count} times, not once; mend the row")
    return text.replace(fault.old, fault.new)


def stages(fault: Fault, root: Path = ROOT) -> list[list[str]]:
    """The tests in the order in which they are tried: folders and files, no file twice."""
    path = Path(fault.file)
    folder = Path("tests", *path.parts[1:-1])
    mirrored = sorted((root / folder).glob(f"test_{path.stem}*.py"))
    first = [*(str(each.relative_to(root)) for each in mirrored), *fault.tests]
    near = [each for each in (str(folder), *BESIDES) if (root / each).is_dir() and each != "tests"]
    return [list(dict.fromkeys(each)) for each in (first, near, ["tests"]) if each]


@dataclass(slots=True)
class Copies:
    """Copies of the tree, one for each job, and which tests fail in it without any fault."""

    folder: Path
    free: list[Path] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    sound: dict[str, bool] = field(default_factory=dict)

    def add(self, number: int) -> None:
        """Make one more."""
        self.free.append(self.made(f"copy{number}"))

    def without_fault(self) -> Path:
        """A copy in which nothing is ever planted: what fails there fails because it is a copy."""
        with self.lock:
            made = self.folder / "sound"
            return made if made.exists() else self.made("sound")

    def made(self, name: str) -> Path:
        """The tree, copied."""
        made = self.folder / name
        made.mkdir()
        for name in COPIED:
            shutil.copytree(ROOT / name, made / name, ignore=NO_COPY)
        for each in ROOT.iterdir():
            if each.is_file():
                shutil.copy2(each, made / each.name)
        return made

    @contextmanager
    def taken(self) -> Iterator[Path]:
        """One that nobody else has."""
        with self.lock:
            copy = self.free.pop()
        try:
            yield copy
        finally:
            self.free.append(copy)


def bounded(command: Sequence[str], copy: Path, seconds: int) -> tuple[int, str]:
    """Run Python in a copy with a limit of processor time: its exit code and what it printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "LP_NUM_THREADS": "0",
        "XDG_RUNTIME_DIR": tempfile.gettempdir(),
    }
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds + 10}))"
    run = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0], None, '__main__', True)"
    module, *rest = command
    done = subprocess.run(
        [sys.executable, "-c", f"{limit}; {run}", module, *rest],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout


def pytest(copy: Path, tests: Sequence[str], seconds: int, deselected: Sequence[str]) -> tuple[int, str]:
    """Run tests in a copy up to the first that fails."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header"]
    options += [f"--ignore={each}" for each in LEFT_OUT]
    options += [f"--deselect={each}" for each in deselected]
    return bounded(["pytest", *options, *tests], copy, seconds)


def finds(fault: Fault, copies: Copies, copy: Path, first_only: bool = False) -> str:
    """The test that finds a fault which is planted in a copy, or nothing."""
    unsound: list[str] = []
    lists = stages(fault)
    for tests, seconds in list(zip(lists, LIMITS[-len(lists) :], strict=True))[: 1 if first_only else None]:
        while True:
            code, output = pytest(copy, tests, seconds, unsound)
            if code in (0, 5):  # all passed, or there are none
                break
            named = FAILED.search(output)
            if named is None:
                return "out of time" if code < 0 else f"the run itself: {output.strip().splitlines()[-1:]}"
            test = named.group(1)
            if is_sound(copies, test):
                return test
            unsound.append(test)
    return ""


def is_sound(copies: Copies, test: str) -> bool:
    """Whether a test passes without a fault."""
    if test not in copies.sound:
        code, _ = bounded(["pytest", "-q", "-p", "no:cacheprovider", test], copies.without_fault(), LIMITS[0])
        copies.sound[test] = code == 0
    return copies.sound[test]


def change(path: Path, text: str) -> None:
    """Write a file anew, and forget what Python compiled of it, which goes by whole seconds of its time."""
    path.write_text(text, encoding="utf-8")
    for each in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        each.unlink()


def tried(fault: Fault, copies: Copies, fuzz: bool, first_only: bool = False) -> tuple[str, str, float]:
    """What found a fault: a test, a random graph; and the seconds it took."""
    begun = time.monotonic()
    with copies.taken() as copy:
        path = copy / fault.file
        text = path.read_text(encoding="utf-8")
        change(path, mutated(fault, text))
        try:
            found = finds(fault, copies, copy, first_only)
            by_fuzz = ""
            if fuzz:
                code, output = bounded(FUZZ, copy, LIMITS[1])
                seed = re.search(r"FAILED: (\w+, seed \d+)", output)
                by_fuzz = seed.group(1) if seed else "it ended" if code not in (0, 1) else ""
        finally:
            change(path, text)
    return found, by_fuzz, time.monotonic() - begun


def main(arguments: Sequence[str]) -> int:
    """Try the faults; 0 where enough of them are found."""
    parser = argparse.ArgumentParser(prog="python -m scripts.mutants", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[], help="faults whose file or text has one of these words"
    )
    parser.add_argument("--first", type=int, default=1, help="the number of the first fault to try (1)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument(
        "--with-fuzz", action="store_true", help="try random programs and graphs on each as well"
    )
    parser.add_argument(
        "--nearest", action="store_true", help="run only the tests of the changed file: quick, finds fewer"
    )
    options = parser.parse_args(arguments)
    chosen = [
        each
        for each in FAULTS[max(0, options.first - 1) :]
        if not options.only or any(word in f"{each.file} {each.what}" for word in options.only)
    ]
    rows = []
    with tempfile.TemporaryDirectory(prefix="webgrad-mutants-") as folder:
        copies = Copies(Path(folder))
        for number in range(max(1, options.jobs)):
            copies.add(number)
        with ThreadPoolExecutor(max(1, options.jobs)) as pool:
            work = {
                pool.submit(tried, each, copies, options.with_fuzz, options.nearest): each for each in chosen
            }
            for each in as_completed(work):
                fault, (found, by_fuzz, seconds) = work[each], each.result()
                rows.append((fault, found, by_fuzz, seconds))
                print(
                    f"{fault.file}: {fault.what}: {found or 'NOT FOUND'} {by_fuzz} ({seconds:.0f} s)",
                    flush=True,
                )
    report(rows, options.with_fuzz)
    return 0 if sum(1 for _, found, _, _ in rows if found) >= ENOUGH * len(rows) else 1


def report(rows: Sequence[tuple[Fault, str, str, float]], fuzz: bool) -> None:
    """The table, and counts."""
    columns = ("fault", "found by", "by make fuzz", "seconds") if fuzz else ("fault", "found by", "seconds")
    lines = [
        (f"{fault.file}: {fault.what}", found or "-", *([by_fuzz or "-"] if fuzz else []), f"{seconds:.0f}")
        for fault, found, by_fuzz, seconds in rows
    ]
    print()
    print(table(columns, lines))
    print(f"{sum(1 for each in rows if each[1])} of {len(rows)} found by tests", flush=True)
    if fuzz:
        print(f"{sum(1 for each in rows if each[1] or each[2])} of {len(rows)} found by tests or make fuzz")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
