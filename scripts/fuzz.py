"""What random input finds: `python -m scripts.fuzz --minutes 90 --only files graphs --seed 1 --jobs 2`.

100,000 small programs, 10,000 random graphs, 10,000,000 damaged files, and texts of users and of model files
changed at random, as many as fit into the time. Prints a table of figures, and for each failure the command
that shows it again; exit code 1 where there is one. A case is a function of its seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace

from scripts import (
    fuzz_diffusion,
    fuzz_exports,
    fuzz_files,
    fuzz_graphs,
    fuzz_kernels,
    fuzz_onnx,
    fuzz_packages,
    fuzz_programs,
    fuzz_texts,
    fuzz_views,
)
from scripts.figures import Budget, Progress, duration, table
from scripts.fuzzing import Found, Part, run

__all__ = ["PARTS", "main"]

# In this order; what one leaves of its time is the others'. The files have all that is left.
PARTS = (
    Part("settings", "settings of models", 1_000_000, 0.02, fuzz_texts.start_settings, portion=100_000),
    Part("templates", "chat templates", 200_000, 0.03, fuzz_texts.start_templates, 20_000, seconds=5.0),
    Part("tokenizers", "tokenizers' files", 200_000, 0.03, fuzz_texts.start_tokenizers, 20_000, seconds=5.0),
    Part("packages", "packages of datasets", 200_000, 0.03, fuzz_packages.start, 20_000, memory=1 << 30),
    Part("onnx", "ONNX models", 200_000, 0.1, fuzz_onnx.start, 5_000),
    Part("diffusion", "diffusion models", 50_000, 0.1, fuzz_diffusion.start, 1_000),
    # Drivers reserve far more memory than they use.
    Part("kernels", "users' kernels", 100_000, 0.12, fuzz_kernels.start, 500, seconds=20.0, memory=None),
    Part("exports", "exports, 10 graphs each", 500, 0.2, fuzz_exports.start, 10, seconds=60.0, memory=None),
    Part("programs", "small programs", 100_000, 0.3, fuzz_programs.start_cpu, 5_000, 20.0, memory=None),
    Part("native", "compiled programs", 10_000, 0.2, fuzz_programs.start_native, 500, 60.0, memory=None),
    Part(
        "gpu-programs",
        "small programs on a GPU",
        15_000,
        0.4,
        fuzz_programs.start_gpu,
        500,
        seconds=60.0,
        memory=None,
    ),
    Part("views", "programs of views", 20_000, 0.3, fuzz_views.start, 2_000, seconds=60.0, memory=None),
    Part("graphs", "graphs, 7 ways each", 10_000, 0.8, fuzz_graphs.start, 250, seconds=60.0, memory=None),
    Part("files", "files of weights", 10_000_000, 1.0, fuzz_files.start, 200_000),
)
MOST_REPORTS = 10


def main(arguments: Sequence[str]) -> int:
    """Try cases of each part while there is time; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.fuzz", description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--minutes", type=float, default=90.0, help="how long it may take (90)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="the parts to try (all)")
    parser.add_argument("--seed", type=int, default=1, help="the first case's seed (1)")
    parser.add_argument("--count", type=int, help="cases of each part (as many as the part has)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time (one a core)")
    parser.add_argument("--failures", type=int, default=200, help="a part ends after so many (200)")
    options = parser.parse_args(arguments)
    if not hasattr(os, "fork"):
        print("python -m scripts.fuzz forks its workers, which this system cannot do", file=sys.stderr)
        return 2
    # Before a driver is loaded: its threads cost more than they give for kernels this small.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    budget, progress = Budget(options.minutes), Progress()
    chosen = [replace(part, failures=options.failures) for part in PARTS if part.name in options.only]
    results: list[tuple[Part, int, Found]] = []
    try:
        for at, part in enumerate(chosen):
            count = part.count if options.count is None else options.count
            share = part.share if at + 1 < len(chosen) else 1.0
            found = run(part, options.seed, count, max(1, options.jobs), budget.part(share), progress)
            results.append((part, count, found))
            _report(part, found)
    except KeyboardInterrupt:
        print("interrupted: the figures are of what was done", flush=True)
        _figures(results)
        return 130
    _figures(results)
    return 1 if any(found.failures for _, _, found in results) else 0


def _report(part: Part, found: Found) -> None:
    """What came of a part's cases, and its failures with the way to see each again."""
    print(f"{part.name}: {found.done:,} in {duration(found.wall)}")
    for outcome, count in sorted(found.outcomes.items()):
        print(f"  {count:>12,}  {outcome}")
    seconds, seed = found.slowest
    print(f"  slowest: seed {seed}, {seconds * 1000:,.0f} ms", flush=True)
    for seed, text in found.failures[:MOST_REPORTS]:
        print(f"\nFAILED: {part.name}, seed {seed}: {text}")
        print(f"again: python -m scripts.fuzz --only {part.name} --seed {seed} --count 1", flush=True)
    if len(found.failures) > MOST_REPORTS:
        others = ", ".join(str(seed) for seed, _ in found.failures[MOST_REPORTS : MOST_REPORTS + 30])
        print(f"\nand {len(found.failures) - MOST_REPORTS} more, of the seeds {others}", flush=True)


def _figures(results: Sequence[tuple[Part, int, Found]]) -> None:
    rows = [
        (
            part.what,
            f"{found.done:,}",
            f"{count:,}",
            f"{found.rate:,.0f}/s" if found.rate >= 10 else f"{found.rate:.1f}/s",
            duration(found.wall),
            f"{found.slowest[0] * 1000:,.0f} ms",
            f"{found.memory / 2**20:.0f} MiB",
            f"{len(found.failures):,}",
        )
        for part, count, found in results
    ]
    print()
    print(table(("changed at random", "tried", "of", "rate", "time", "slowest", "grew", "failures"), rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
