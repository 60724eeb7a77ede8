"""What stays as it is for a long time: `python -m scripts.soak --minutes 30 --only decoding`.

A million dispatches, two million commands of a diffusion model, training and decoding over and over, and all
reference prompts. Each runs in a process of its own and prints its figures; they are gathered in one table.
Exit code 1 where memory grew, an answer changed or a process died.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.figures import Budget, duration, table
from scripts.system import ROOT

__all__ = ["PARTS", "main"]


LEAST = 60.0  # seconds that a part which was begun may take


@dataclass(frozen=True, slots=True)
class Part:
    """A script, its arguments, and which share of the time left it is told to take; 0: it ends by itself."""

    command: tuple[str, ...]
    share: float = 0.0


PARTS = {
    "dispatches": Part(("benchmarks/soak.py",)),
    "diffusion": Part(("benchmarks/diffusion_stream.py",)),
    "training, GPU": Part(("benchmarks/long_loops.py", "training", "webgpu"), 0.15),
    "training, cpu": Part(("benchmarks/long_loops.py", "training", "cpu"), 0.15),
    "decoding, GPU": Part(("benchmarks/long_loops.py", "decoding", "webgpu"), 0.2),
    "decoding, cpu": Part(("benchmarks/long_loops.py", "decoding", "cpu"), 0.2),
    "prompts": Part(("-m", "pytest", "-q", "-m", "soak", "tests/models")),
}


def run(name: str, part: Part, budget: Budget) -> tuple[list[tuple[str, str, str, str]], bool]:
    """One part in its process: the rows of its figures, and whether all is well."""
    command = [sys.executable, *part.command]
    if part.share:
        command.append(f"{budget.left * part.share:.0f}")
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=max(LEAST, budget.left)
        )
    except subprocess.TimeoutExpired:
        took = duration(time.monotonic() - began)
        if part.share:  # it was told when to end, long before that
            return [(name, "it did not end when it should have", took, "MISS")], False
        return [(name, "cut off: the time was over", took, "not done")], True
    took = duration(time.monotonic() - began)
    rows = [(name, *_figure(line)) for line in done.stdout.splitlines() if line.startswith(("ok  ", "MISS"))]
    well = done.returncode == 0
    if not rows:
        last = (done.stdout.strip().splitlines() or ["it said nothing"])[-1]
        rows = [(name, last, "", "ok" if well else "MISS")]
    print(f"{name}: {took}{'' if well else ', failed'}", flush=True)
    if not well:
        print(f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}\nagain: {' '.join(command[1:])}", flush=True)
    return rows, well


def _figure(line: str) -> tuple[str, str, str]:
    """What, how much, whether that is well: out of a line that benchmarks/common.py's report printed."""
    verdict, rest = line[:4].strip(), line[4:].split("   target ")
    what, _, value = rest[0].strip().rpartition("  ")
    return what.strip(), f"{value.strip()} (target {rest[-1]})", verdict


def main(arguments: Sequence[str]) -> int:
    """Run the parts while there is time; 1 where one is not well."""
    parser = argparse.ArgumentParser(prog="python -m scripts.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long it may take (30)")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="parts (all)")
    options = parser.parse_args(arguments)
    budget = Budget(options.minutes)
    rows: list[tuple[str, str, str, str]] = []
    failed = False
    for name, part in PARTS.items():
        if name not in options.only:
            continue
        if budget.over:
            rows.append((name, "not begun: the time was over", "", "not done"))
            continue
        found, well = run(name, part, budget)
        rows += found
        failed |= not well
    print(f"\n{table(('part', 'what', 'figure', 'is'), rows)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
