"""What faults come to: lost devices, no memory and random misuse, injected and counted.

    python benchmarks/faults.py --sequences 2000 --seed 1

Prints three tables: where the device was lost × what followed, where memory ran out × what followed, and the
misuse sequences by outcome. Exits with 1 if anything aborted, hung, or ended in a wrong error or result.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from operator import eq, le
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the workloads and injections are those of the tests

from tests.runtime.faults.batches import run_batches
from tests.runtime.faults.harness import LOSS_POINTS, Memory, check_books, lose_at
from tests.runtime.faults.test_loss import ENCODINGS as LOSS_ENCODINGS
from tests.runtime.faults.test_loss import Before, check_after, disturbed
from tests.runtime.faults.test_memory import ENCODINGS as MEMORY_ENCODINGS
from tests.runtime.faults.test_memory import Work, assert_accounted, creations
from tests.runtime.helpers import bench
from webgrad.errors import DeviceLostError, OutOfMemoryError
from webgrad.runtime.native import READBACK, STORAGE, UNIFORM

USAGES = {STORAGE: "pool buffer", READBACK: "read-back buffer", UNIFORM: "uniform parameters"}


def named(settings: dict[str, Any]) -> str:
    """A short name of a way to encode."""
    return f"{settings['encoder']}, {'immediates' if settings['immediates'] else 'uniforms'}"


def lose(point: str, settings: dict[str, Any]) -> str:
    """Lose a device at one point; what followed, in a word or two."""
    private = bench(**settings)
    before = Before.on(private)
    lose_at(private, point)
    try:
        disturbed(private, before)
    except DeviceLostError:
        check_after(private, before)
        return "lost, back"
    except Exception as error:
        return f"WRONG {type(error).__name__}"
    return "WRONG no error"


def losses() -> bool:
    """The table of losses; whether all went as they must."""
    print(f"{'device lost at':<28}" + "".join(f"{named(each):<20}" for each in LOSS_ENCODINGS))
    outcomes: list[str] = []
    for point in LOSS_POINTS:
        row = [lose(point, settings) for settings in LOSS_ENCODINGS]
        print(f"{point:<28}" + "".join(f"{outcome:<20}" for outcome in row), flush=True)
        outcomes += row
    print(
        "lost, back: DeviceLostError; then a new device, with what was kept; the rest says that it is lost\n"
    )
    return not any(outcome.startswith("WRONG") for outcome in outcomes)


def run_out(settings: dict[str, Any], at: int, *, for_good: bool) -> str:
    """Let the n-th creation fail, or all from it on; what followed."""
    private = bench(**settings)
    work = Work(private)
    refused = 0
    with Memory(private.queue.context.native).failing(partial(le if for_good else eq, at)):
        for step in work.steps:
            try:
                step()
            except OutOfMemoryError as error:
                assert_accounted(error)
                refused += 1
                break
    check_books(private)
    for step in work.steps:
        step()
    work.check()
    return "refused, done later" if refused else "retried, done"


def shortages() -> bool:
    """The table of allocations that fail; an outcome that must not be raises here."""
    print(f"{'no memory for':<28}{'failures':<20}{'once':<40}for good")
    for settings in MEMORY_ENCODINGS.values():
        outcomes: dict[str, list[Counter[str]]] = {}
        for at, arguments in enumerate(creations(settings), 1):
            usage = USAGES[(*arguments, STORAGE)[1]]
            once, for_good = outcomes.setdefault(usage, [Counter(), Counter()])
            once[run_out(settings, at, for_good=False)] += 1
            for_good[run_out(settings, at, for_good=True)] += 1
        for usage, (once, for_good) in outcomes.items():
            columns = [
                ", ".join(f"{count} {name}" for name, count in each.items()) for each in (once, for_good)
            ]
            print(f"{usage:<28}{named(settings):<20}{columns[0]:<40}{columns[1]}", flush=True)
    print("every error said what was asked, used and allowed; the books balanced; the results were right\n")
    return True


def misuse(total: int, seed: int, per_process: int) -> bool:
    """The table of sequences; whether all went as they must."""
    start = time.perf_counter()
    report = run_batches(total, seed, per_process)
    print(f"{report.sequences:,} sequences of misuse, seed {seed}: {report.calls:,} calls", end=" ")
    print(f"in {time.perf_counter() - start:.0f} s")
    rows = [("succeeded", report.calls - sum(report.errors.values())), *report.errors.most_common()]
    rows += [("aborts", len(report.deaths)), ("hangs", len(report.hangs))]
    rows += [("wrong errors or results", len(report.failures))]
    for name, count in rows:
        print(f"  {name:<28}{count:>8,}")
    if not report.clean:
        print(report.describe())
    return report.clean


def main() -> int:
    """Run all three."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-process", type=int, default=100)
    options = parser.parse_args()
    results = [losses(), shortages(), misuse(options.sequences, options.seed, options.per_process)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
