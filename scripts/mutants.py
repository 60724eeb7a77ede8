"""Which tests find which fault: `python -m scripts.mutants [--only words] [--nearest] [--with-fuzz] …`.

In: the table of faults, scripts/mutants_table.py and mutants_stages.py. Each is planted in a copy of the
tree, never in place, and the tests run there until one fails: those of the changed file first, then the
properties, then all others. A test that fails without the fault too finds nothing, and one that has no end
finds a fault only if it ends without. With --with-fuzz some random programs and graphs of `make fuzz` are
tried on every fault as well. Out: a table of what found each; exit code 0 where at least 95 in 100 are found.
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
from scripts.suite import WHOLE
from scripts.system import ROOT

__all__ = ["main", "mutated", "stages", "tried"]

ENOUGH = 0.95  # of the faults
LIMITS = (300, 1200, 7200)  # seconds of processor time for the tests of each stage
PATIENCE = 10  # by the wall's clock a run may take so many times its processor time
NOT_IN_RESULTS = "in no result"  # where make fuzz has nothing to find
MEMORY = 4 << 30  # bytes for one process
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
QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", *WHOLE)
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
SEED = re.compile(r"^FAILED: [\w-]+, seed (\d+)", re.MULTILINE)
# The parts of make fuzz that run the code of a folder, the quickest first, and how many cases of each.
ON_THE_CPU, COMPILED, ON_A_GPU = ("programs", 5_000), ("native", 5_000), ("gpu-programs", 1_000)
GRAPHS = ("graphs", 40)
FUZZ = {
    **dict.fromkeys(("gradients", "reference"), (ON_THE_CPU,)),
    **dict.fromkeys(("cpu", "native"), (COMPILED, ON_THE_CPU)),
    **dict.fromkeys(("ops", "functions"), (ON_THE_CPU, ON_A_GPU)),
    **dict.fromkeys(("schedule", "kernels", "wgsl"), (ON_A_GPU, GRAPHS)),
    "lower": (COMPILED, ON_A_GPU, GRAPHS),
    "runtime": (ON_A_GPU, ("views", 300), GRAPHS),
}

Found = tuple[Fault, str, str, float]  # by tests, by make fuzz, in so many seconds


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
    first = [*fault.tests, *(str(each.relative_to(root)) for each in mirrored)]
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
    """Run Python in a copy with limits of processor time and memory: its exit code and what it printed.

    A run that was ended for its time has a negative exit code.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "LP_NUM_THREADS": "0",
        "XDG_RUNTIME_DIR": tempfile.gettempdir(),
    }
    # Drivers reserve more memory than they use, so that a limit of addresses would not do.
    limit = (
        f"import resource; resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds + 10}))"
        f"; resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}))"
    )
    run = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0], None, '__main__', True)"
    module, *rest = command
    # Into a file: what a run that is ended leaves behind might hold a pipe open.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        with subprocess.Popen(
            [sys.executable, "-c", f"{limit}; {run}", module, *rest],
            cwd=copy,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as running:
            try:
                code = running.wait(PATIENCE * seconds)
            except subprocess.TimeoutExpired:
                running.kill()
                code = running.wait()
        output.seek(0)
        return code, output.read()


def pytest(copy: Path, tests: Sequence[str], seconds: int, deselected: Sequence[str]) -> tuple[int, str]:
    """Run tests in a copy up to the first that fails."""
    options = ["-x", *QUIET, *(f"--ignore={each}" for each in LEFT_OUT)]
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
                if is_sound(copies, ["pytest", *QUIET, *tests], seconds // 2, (0, 1, 5)):
                    last = output.strip().splitlines()[-1:]
                    return f"did not end: signal {-code}" if code < 0 else f"the run itself: {last}"
                break  # nor without the fault
            test = named.group(1)
            if is_sound(copies, ["pytest", *QUIET, test]):
                return test
            unsound.append(test)
    return ""


def is_sound(
    copies: Copies, command: Sequence[str], seconds: int = LIMITS[0], fine: Sequence[int] = (0,)
) -> bool:
    """Whether a command ends without a fault, with one of these exit codes."""
    key = " ".join(command)
    if key not in copies.sound:
        copies.sound[key] = bounded(command, copies.without_fault(), seconds)[0] in fine
    return copies.sound[key]


def fuzzed(fault: Fault, copies: Copies, copy: Path) -> str:
    """The random program or graph that finds a fault which is planted in a copy, or nothing."""
    if not fault.in_results:
        return NOT_IN_RESULTS
    for part, count in FUZZ[Path(fault.file).parts[1]]:
        command = ["scripts.fuzz", "--only", part, "--jobs", "1", "--seed"]
        last = 0
        while last < count:
            seeds = [str(last + 1), "--count", str(count - last), "--failures", "1"]
            code, output = bounded([*command, *seeds], copy, LIMITS[1])
            failed = SEED.search(output)
            if failed is None and code:
                return f"{part}: {output.strip().splitlines()[-1:]}"
            last = int(failed.group(1)) if failed else count
            if failed and is_sound(copies, [*command, str(last), "--count", "1"]):
                return f"{part}, seed {last}"
    return ""


def change(path: Path, text: str) -> None:
    """Write a file anew, and forget what Python compiled of it, which goes by whole seconds of its time."""
    path.write_text(text, encoding="utf-8")
    for each in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        each.unlink()


def tried(
    fault: Fault, copies: Copies, *, fuzz: bool, first_only: bool = False, tests: bool = True
) -> tuple[str, str, float]:
    """What found a fault: a test, a random graph; and the seconds it took."""
    begun = time.monotonic()
    with copies.taken() as copy:
        path = copy / fault.file
        text = path.read_text(encoding="utf-8")
        change(path, mutated(fault, text))
        try:
            found = finds(fault, copies, copy, first_only) if tests else ""
            by_fuzz = fuzzed(fault, copies, copy) if fuzz else ""
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
    parser.add_argument("--last", type=int, help="the number of the last (of all)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument(
        "--with-fuzz", action="store_true", help="try random programs and graphs on each as well"
    )
    parser.add_argument("--only-fuzz", action="store_true", help="try these alone, without tests")
    parser.add_argument(
        "--nearest", action="store_true", help="run only the tests of the changed file: quick, finds fewer"
    )
    options = parser.parse_args(arguments)
    chosen = [
        each
        for each in FAULTS[max(0, options.first - 1) : options.last]
        if not options.only or any(word in f"{each.file} {each.what}" for word in options.only)
    ]
    tests, fuzz = not options.only_fuzz, options.with_fuzz or options.only_fuzz
    rows = list[Found]()
    with tempfile.TemporaryDirectory(prefix="webgrad-mutants-") as folder:
        copies = Copies(Path(folder))
        for number in range(max(1, options.jobs)):
            copies.add(number)
        with ThreadPoolExecutor(max(1, options.jobs)) as pool:
            how = {"fuzz": fuzz, "first_only": options.nearest, "tests": tests}
            work = {pool.submit(tried, each, copies, **how): each for each in chosen}
            for each in as_completed(work):
                fault, (by_tests, by_fuzz, seconds) = work[each], each.result()
                rows.append((fault, by_tests, by_fuzz, seconds))
                number = FAULTS.index(fault) + 1
                said = [each or "NOT FOUND" for each in (*[by_tests] * tests, *[by_fuzz] * fuzz)]
                print(f"{number} {fault.file}: {fault.what}: {', '.join(said)} ({seconds:.0f} s)", flush=True)
    report(rows, tests=tests, fuzz=fuzz)
    found = shown(rows, 1 if tests else 2)
    return 0 if sum(map(bool, found)) >= ENOUGH * len(found) else 1


def shown(rows: Sequence[Found], at: int) -> list[str]:
    """What found each fault that could be found."""
    return [str(row[at]) for row in rows if row[at] != NOT_IN_RESULTS]


def report(rows: Sequence[Found], *, tests: bool, fuzz: bool) -> None:
    """The table, and counts."""
    asked = [(1, "tests")] * tests + [(2, "make fuzz")] * fuzz
    columns = ("fault", *(f"found by {name}" for _, name in asked), "seconds")
    lines = [
        (f"{row[0].file}: {row[0].what}", *(str(row[at]) or "-" for at, _ in asked), f"{row[3]:.0f}")
        for row in rows
    ]
    print()
    print(table(columns, lines))
    for at, name in asked:
        found = shown(rows, at)
        print(f"{sum(map(bool, found))} of {len(found)} found by {name}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
