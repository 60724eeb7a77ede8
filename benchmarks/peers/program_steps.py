"""A program of tests/programs in a process of its own: `program_steps.py torch|eager|compiled NAME FOLDER`.

In: JSON lines, {"steps": n}. Out: a JSON line for each: {"wall": [s, …], "processor": [s, …], "loss": x}; the
first line says that the first steps are done, and how long the very first took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Programs have modules of the names that those beside this file have.
sys.path[:] = [str(HERE.parents[1]), *(each for each in sys.path if Path(each) not in (HERE, HERE.parent))]

WARM = 8  # steps before the first that counts


def main(side: str, name: str, folder: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if side != "torch":
        import webgrad.torch

        webgrad.torch.install()
    import torch

    from tests.programs.program import STAND_INS, inert
    from tests.programs.table import PROGRAMS

    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    torch.manual_seed(0)
    inert("torch.utils.tensorboard")
    program = PROGRAMS[name]
    sys.path[:0] = [str(Path(folder) / program.folder), str(STAND_INS)]
    entered: Any = program.enter()  # type: ignore[operator]
    step = torch.compile(entered.step) if side == "compiled" else entered.step
    for module in entered.modules.values():
        module.float()  # where the tests take doubles
    batches = [
        tuple(each.float() if each.is_floating_point() else each for each in batch)
        for batch in entered.batches
    ]

    def take(number: int) -> float:
        return float(step(*batches[number % len(batches)])[-1].detach().sum().item())

    begun = time.perf_counter()
    loss = take(0)
    first = time.perf_counter() - begun
    for number in range(1, WARM):
        take(number)
    print(json.dumps({"ready": {"first": str(first)}}), file=answers, flush=True)
    for line in sys.stdin:
        walls, works = [], []
        for number in range(json.loads(line)["steps"]):
            wall, processor = time.perf_counter(), time.process_time()
            loss = take(number)
            walls.append(time.perf_counter() - wall)
            works.append(time.process_time() - processor)
        print(json.dumps({"wall": walls, "processor": works, "loss": loss}), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
