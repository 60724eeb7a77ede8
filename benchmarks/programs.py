"""Training steps of public PyTorch programs, eager and under torch.compile here, beside torch's eager ones.

    python benchmarks/programs.py [names] [--mirrors FOLDER] [--rounds 7] [--seconds 0.5] [--cores N]

Each program is a process with torch, and two with webgrad.torch in its place; they take turns, and who waits
is stopped. A step is what tests/programs enters, until its loss is read. Given are medians of a step's
processor time with --cores 1, else of the clock, and torch's divided by ours: above 1, ours is quicker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runners import Runner, Worker

from scripts.environments import interpreter
from scripts.programs import names_of
from scripts.torch_tests import EXPECT, FOLDER, ensure
from tests.programs import sources

TWENTY = (
    *("nanogpt", "nanogpt-generate", "mingpt", "llama2c", "words-lstm", "words-transformer", "translation"),
    *("cifar-lenet", "cifar-resnet", "cifar-mobilenetv2", "cifar-densenet", "vit-vit", "vit-cct", "unet"),
    *("clip-vit", "conformer", "ddpm", "vae-vanilla_vae", "pointnet", "policy"),
)
SIDES = ("torch", "eager", "compiled")
GOALS = {"eager": (0.8, 0.4), "compiled": (1.2, 0.0)}  # of the median, and of each program


@dataclass(frozen=True)
class Side(Runner):
    """One side of the comparison; its environment is that of the tests with torch, or this one."""

    @property
    def python(self) -> Path:
        return interpreter(FOLDER) if self.environment else Path(sys.executable)


def measure(
    name: str, mirrors: Path | None, rounds: int, seconds: float, kind: str
) -> dict[str, float] | str:
    """Seconds of a step of each side, and of ours' very first; or what failed."""
    from tests.programs.table import PROGRAMS

    folder = str(sources.folder_of(sources.read_list()[PROGRAMS[name].repository], mirrors))
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    workers = {}
    try:
        for side in SIDES:
            environment = "torch" if side == "torch" else ""
            runner = Side(side, "program_steps", (side, name, folder), environment)
            workers[side] = Worker(runner, (("WEBGRAD_DEVICE", "cpu"),))
            if workers[side].problem:
                return f"{side}: {workers[side].problem}"
        steps = dict.fromkeys(SIDES, 1)
        for _ in range(rounds):
            for side, worker in workers.items():
                answer = worker.ask(steps=steps[side])
                if "failed" in answer:
                    return f"{side}: {answer['failed']}"
                times[side] += answer[kind]
                steps[side] = max(1, min(200, int(seconds / statistics.median(times[side]))))
        found = {side: statistics.median(each[1:] or each) for side, each in times.items()}
        return found | {"first": float(workers["eager"].about["first"])}
    finally:
        for worker in workers.values():
            worker.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="programs; without names twenty of them")
    parser.add_argument("--mirrors", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn")
    parser.add_argument("--cores", type=int, default=1)
    given = parser.parse_args(arguments)
    if code := ensure(FOLDER, (EXPECT,)):
        return code
    if hasattr(os, "sched_setaffinity"):  # both take as many threads as there are cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    kind = "processor" if given.cores == 1 else "wall"
    unknown = set(given.names) - set(names_of(()))  # from now on adapters can be imported
    if unknown:
        parser.error(f"there are no programs {' '.join(sorted(unknown))}")
    ratios: dict[str, list[float]] = {side: [] for side in GOALS}
    print(f"{'program':24} {'torch ms':>9} {'eager ms':>9} {'×':>6} {'compiled':>9} {'×':>6} {'first s':>8}")
    for name in given.names or TWENTY:
        found = measure(name, given.mirrors, given.rounds, given.seconds, kind)
        if isinstance(found, str):
            print(f"{name:24} {found}")
            continue
        for side, each in ratios.items():
            each.append(found["torch"] / found[side])
        eager, compiled = (f"{found[side] * 1e3:9.3f} {ratios[side][-1]:6.2f}" for side in GOALS)
        print(f"{name:24} {found['torch'] * 1e3:9.3f} {eager} {compiled} {found['first']:8.2f}", flush=True)
    reached = True
    for side, (middle, least) in GOALS.items():
        if each := ratios[side]:
            median = statistics.median(each)
            print(f"{side}: median {median:.2f} × torch's speed (goal {middle}), least {min(each):.2f} ×")
            reached = reached and median >= middle and min(each) >= least
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
