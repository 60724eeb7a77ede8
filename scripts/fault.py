"""What faults come to: `python -m scripts.fault --minutes 30 --only misuse interrupts --seed 1`.

Lost devices, no memory, sequences of misuse, signals, forks and damaged caches, injected and counted. Prints
a table for each, where it struck × what followed, and one of figures; exits with 1 if anything aborted, hung,
or ended in a wrong error or result.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import eq, le
from typing import Any

# Before a driver is loaded: its threads cost more than they give for work this small.
os.environ.setdefault("LP_NUM_THREADS", "0")
os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())

from scripts import fault_cases
from scripts.figures import Budget, duration, table
from tests.runtime.faults.batches import run_batches
from tests.runtime.faults.harness import LOSS_POINTS, Memory, check_books, lose_at
from tests.runtime.faults.test_loss import ENCODINGS as LOSS_ENCODINGS
from tests.runtime.faults.test_loss import Before, check_after, disturbed
from tests.runtime.faults.test_memory import ENCODINGS as MEMORY_ENCODINGS
from tests.runtime.faults.test_memory import Work, assert_accounted, creations
from tests.runtime.faults.test_shortage import random_work
from tests.runtime.helpers import bench
from webgrad.errors import DeviceLostError, OutOfMemoryError
from webgrad.runtime.layer import READBACK, STORAGE, UNIFORM

__all__ = ["PARTS", "main"]

USAGES = {STORAGE: "pool buffer", READBACK: "read-back buffer", UNIFORM: "uniform parameters"}


@dataclass(frozen=True, slots=True)
class Run:
    """How much of a part is to be done."""

    budget: Budget
    seed: int
    sequences: int
    interrupts: int
    forks: int
    caches: int
    crowds: int


Rows = Iterator[tuple[str, str, Counter[str]]]  # where, how, what followed
Part = Callable[[Run], Rows]


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


def losses(run: Run) -> Rows:
    """Where the device was lost × what followed: DeviceLostError, then a new device with what was kept."""
    for point in LOSS_POINTS:
        if run.budget.over:
            return
        outcomes = Counter(lose(point, settings) for settings in LOSS_ENCODINGS)
        yield f"device lost at {point}", f"encoded in {len(LOSS_ENCODINGS)} ways", outcomes


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


def shortages(run: Run) -> Rows:
    """Which creation failed × what followed; every error accounts for the memory, and the books balance."""
    for settings in MEMORY_ENCODINGS.values():
        outcomes: dict[str, list[Counter[str]]] = {}
        for at, arguments in enumerate(creations(settings), 1):
            usage = USAGES[(*arguments, STORAGE)[1]]
            once, for_good = outcomes.setdefault(usage, [Counter(), Counter()])
            for counts, lasting in ((once, False), (for_good, True)):
                try:
                    counts[run_out(settings, at, for_good=lasting)] += 1
                except Exception as error:
                    counts[f"WRONG, creation {at}: {type(error).__name__}: {error}"] += 1
        for usage, pair in outcomes.items():
            for counts, how in zip(pair, ("once", "for good"), strict=True):
                yield f"no memory {how}: {usage}", named(settings), counts


def crowds(run: Run) -> Rows:
    """Random work over the budget: what can be read is right, and what cannot keeps nobody else waiting."""
    outcomes, number = Counter[str](), 0
    while number < run.crowds and not (run.budget.over and number):
        try:
            refused = random_work(run.seed + number)
        except Exception as error:
            outcomes[f"WRONG, seed {run.seed + number}: {type(error).__name__}: {str(error)[:160]}"] += 1
        else:
            outcomes["refused in part, else right" if refused else "right"] += 1
        number += 1
    yield "random work over the budget", f"{number:,} programs", outcomes


def misuse(run: Run) -> Rows:
    """Sequences of wrong calls in processes of their own, by what the calls came to."""
    done, portion = 0, 100
    total: Counter[str] = Counter()
    while done < run.sequences and not (run.budget.over and done):
        report = run_batches(min(portion, run.sequences - done), run.seed, portion, first=done)
        done += report.sequences
        total["calls that succeeded"] += report.calls - sum(report.errors.values())
        total.update(report.errors)
        total.update(f"WRONG: {each}" for each in (*report.deaths, *report.hangs, *report.failures))
    yield f"{done:,} sequences of misuse", f"seed {run.seed}", total


def repeated(kinds: Sequence[str], case: Callable[[str, int, int], Counter[str]], count: str) -> Part:
    """A part whose every kind is tried so many times, in portions while there is time."""

    def part(run: Run) -> Rows:
        for number, kind in enumerate(kinds):
            wanted, done = int(getattr(run, count)), 0
            budget, outcomes = run.budget.part(1 / (len(kinds) - number)), Counter[str]()
            while done < wanted and not (budget.over and done):
                portion = min(100, wanted - done)
                outcomes += case(kind, portion, run.seed + done)
                done += portion
            yield kind, f"{done:,} times", outcomes

    return part


PARTS: dict[str, Part] = {
    "losses": losses,
    "memory": shortages,
    "crowds": crowds,
    "misuse": misuse,
    "interrupts": repeated(tuple(fault_cases.WORKS), fault_cases.interrupts_apart, "interrupts"),
    "forks": repeated(tuple(fault_cases.USES), fault_cases.forks, "forks"),
    "caches": repeated(tuple(fault_cases.CACHES), fault_cases.caches, "caches"),
}


def shown(outcomes: Counter[str]) -> str:
    """What followed, as one text."""
    return ", ".join(f"{count:,} {name}" for name, count in outcomes.most_common())


def main(arguments: Sequence[str]) -> int:
    """Run the parts that were asked for; 1 where something wrong followed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.fault", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long it may take (30)")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="parts (all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=2000, help="of misuse (2000)")
    parser.add_argument("--interrupts", type=int, default=500, help="for each kind of work (500)")
    parser.add_argument("--forks", type=int, default=200, help="for each device (200)")
    parser.add_argument("--caches", type=int, default=300, help="damaged files of each kind (300)")
    parser.add_argument("--crowds", type=int, default=100, help="programs with too little memory (100)")
    options = parser.parse_args(arguments)
    whole, figures, wrong = Budget(options.minutes), [], 0
    chosen = [name for name in PARTS if name in options.only]
    for number, name in enumerate(chosen):
        share = whole.part(1 / (len(chosen) - number))
        run = Run(
            share,
            options.seed,
            options.sequences,
            options.interrupts,
            options.forks,
            options.caches,
            options.crowds,
        )
        began, rows, faults, bad = time.monotonic(), [], 0, 0
        for where, how, outcomes in PARTS[name](run):
            bad += sum(count for what, count in outcomes.items() if what.startswith("WRONG"))
            faults += sum(outcomes.values())
            rows.append((where, how, shown(outcomes)))
        print(f"\n{table(('where', 'how', 'what followed'), rows)}", flush=True)
        figures.append((name, f"{faults:,}", duration(time.monotonic() - began), f"{bad:,}"))
        wrong += bad
    print(f"\n{table(('faults', 'outcomes', 'time', 'wrong'), figures)}", flush=True)
    if wrong:
        print(f"again: python -m scripts.fault --seed {options.seed} --only {' '.join(chosen)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
