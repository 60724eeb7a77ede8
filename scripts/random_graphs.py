"""Random graphs against NumPy, any number of them: `python -m scripts.random_graphs --count 10000 --seed 1`.

In: how many, the first seed, the ways to run them. Out: a report for each graph that is wrong, with a smaller
one, and exit code 1 if there was any. Long runs are cut into processes: compiled kernels take memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

__all__ = ["main"]

PER_PROCESS = 250  # graphs
MOST_REPORTS = 5
WAYS = ("cpu", "fused", "unfused", "some passes", "discrete", "narrow", "some choices")


def main(arguments: Sequence[str]) -> int:
    """Check graphs; the exit code says whether all were right."""
    parser = argparse.ArgumentParser(prog="python -m scripts.random_graphs", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many graphs (200)")
    parser.add_argument("--seed", type=int, default=1, help="the first one's seed (1)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="how to run them (all ways)")
    options = parser.parse_args(arguments)
    # Before a driver is loaded: its threads cost more than they give for graphs this small.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    if options.count > PER_PROCESS:
        return _in_processes(options.count, options.seed, options.ways)
    wrong = _check(range(options.seed, options.seed + options.count), options.ways)
    print(f"{options.count} graphs, {wrong} wrong", flush=True)
    return 1 if wrong else 0


def _check(seeds: range, ways: Sequence[str]) -> int:
    from tests.properties.helpers import unlimited_backlog
    from tests.properties.running import WAYS as RUNNERS
    from tests.properties.running import report
    from tests.properties.writing import write_program

    wrong = 0
    with unlimited_backlog():
        for seed in seeds:
            program = write_program(seed)
            texts = [text for way in ways if (text := report(program, RUNNERS[way], way, seed))]
            wrong += bool(texts)
            if texts and wrong <= MOST_REPORTS:
                print("\n\n".join(texts), end="\n\n", flush=True)
    return wrong


def _in_processes(count: int, seed: int, ways: Sequence[str]) -> int:
    failed, start = 0, time.monotonic()
    for first in range(seed, seed + count, PER_PROCESS):
        many = min(PER_PROCESS, seed + count - first)
        command = [sys.executable, "-m", "scripts.random_graphs", "--count", str(many), "--seed", str(first)]
        failed += subprocess.run([*command, "--ways", *ways], check=False).returncode != 0
        done = first + many - seed
        minutes = (time.monotonic() - start) / 60
        print(f"{done:,} of {count:,} in {minutes:.1f} minutes; {failed} parts with failures", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
