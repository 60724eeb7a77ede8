"""Training steps as a user first writes them, without `jit`, beside torch's: an MLP, a CNN, a transformer;
and small ones, where building the graph is all the work: an MLP of 64 columns, an LSTM over 16 times.

    eager_steps.py [mlp] [cnn] [transformer] [small] [recurrent] [--rounds 9] [--steps 10] [--cores N]

Both libraries are processes of their own that stay alive and take turns; who waits is stopped. One step is
forward, backward and Adam, until its loss is there. Given are medians of a step's time and of its processor
time on all cores, and torch's divided by ours: above 1, ours is quicker. It ends with 1 where a ratio is
below the goal. `--profile` shows where ours spends its time in Python.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GOAL = 0.7
RATE = 1e-3
BATCH, LENGTH, WIDTH, HEADS, WORDS = 16, 64, 128, 4, 65
Step = Callable[[], float]
Times = dict[str, list[float]]


# What is trained: the same code for both libraries, whose names are the same


def picture_step(library: Any, workload: str) -> Callable[[Any, Any], Any]:
    nn = library.nn
    if workload == "mlp":
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    elif workload == "small":
        model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))
    else:
        model = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(1568, 10)),
        )
    return _trained(library, model, model.parameters())


def text_step(library: Any, workload: str) -> Callable[[Any, Any], Any]:
    nn, functional = library.nn, library.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.behind = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.mixed, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            mixed = self.mixed(self.before(x)).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = (mixed[:, :, each].transpose(1, 2) for each in range(3))
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.joined(seen.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
            return x + self.narrow(functional.gelu(self.wide(self.behind(x))))

    words, places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
    blocks, last, head = nn.Sequential(Block(), Block()), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
    modules = nn.ModuleList([words, places, blocks, last, head])

    def model(text: Any) -> Any:
        return head(last(blocks(words(text) + places.weight))).reshape(-1, WORDS)

    return _trained(library, model, modules.parameters())


def series_step(library: Any, workload: str) -> Callable[[Any, Any], Any]:
    layer, head = library.nn.LSTM(32, 32, batch_first=True), library.nn.Linear(32, 10)
    parameters = [*layer.parameters(), *head.parameters()]
    return _trained(library, lambda series: head(layer(series)[0][:, -1]), parameters)


def _trained(library: Any, model: Any, parameters: Any) -> Callable[[Any, Any], Any]:
    optimiser = library.optim.Adam(parameters, lr=RATE)

    def step(given: Any, wanted: Any) -> Any:
        optimiser.zero_grad()
        loss = library.nn.functional.cross_entropy(model(given), wanted)
        loss.backward()
        optimiser.step()
        return loss

    return step


WORKLOADS: dict[str, Callable[[Any, str], Callable[[Any, Any], Any]]] = {
    "mlp": picture_step,
    "cnn": picture_step,
    "transformer": text_step,
    "small": picture_step,
    "recurrent": series_step,
}


def batch_of(workload: str) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    if workload == "transformer":
        text = random.integers(0, WORDS, (BATCH, LENGTH + 1))
        return text[:, :-1].copy(), text[:, 1:].reshape(-1)
    shapes = {"mlp": (BATCH, 784), "small": (BATCH, 16), "recurrent": (BATCH, 16, 32)}
    shape = shapes.get(workload, (BATCH, 1, 28, 28))
    return random.random(shape, np.float32), random.integers(0, 10, BATCH)


def step_of(library: str, workload: str) -> Step:
    given, wanted = batch_of(workload)
    if library == "torch":
        import torch

        torch.manual_seed(0)
        step = WORKLOADS[workload](torch, workload)
        arguments: list[Any] = [torch.from_numpy(each) for each in (given, wanted)]
    else:
        import webgrad as wg

        wg.set_default_device("cpu")
        step = WORKLOADS[workload](wg, workload)
        whole = [each.astype(np.int32) if each.dtype == np.int64 else each for each in (given, wanted)]
        arguments = [wg.asarray(each) for each in whole]
    return lambda: float(step(*arguments).item())


# A process of each library, taking turns


def work(library: str, workload: str, cores: str) -> None:
    """Answer each number of steps with their times."""
    if hasattr(os, "sched_setaffinity"):  # both libraries take as many threads as there are cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    step = step_of(library, workload)
    first = [step() for _ in range(5)]
    print(json.dumps(first[-1]), flush=True)
    for line in sys.stdin:
        walls, works = [], []
        for _ in range(int(line)):
            wall, processor = time.perf_counter(), time.process_time()
            step()
            walls.append(time.perf_counter() - wall)
            works.append(time.process_time() - processor)
        print(json.dumps({"wall": walls, "processor": works}), flush=True)


class Runner:
    """A process that takes steps when it is asked to, and is stopped in between."""

    def __init__(self, library: str, workload: str, python: str, cores: int) -> None:
        environment = {"WEBGRAD_COMPILE": "repeated", **os.environ}
        environment["PYTHONPATH"] = str(Path(__file__).parents[1]) if library == "webgrad" else ""
        self.process = subprocess.Popen(
            [python, __file__, "--work", library, workload, str(cores)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.loss = self._heard()
        self.process.send_signal(signal.SIGSTOP)
        self.times: Times = {"wall": [], "processor": []}

    def take(self, steps: int) -> None:
        self.process.send_signal(signal.SIGCONT)
        assert self.process.stdin is not None
        print(steps, file=self.process.stdin, flush=True)
        for name, found in self._heard().items():
            self.times[name] += found
        self.process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.communicate()

    def _heard(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a runner has ended; its message is above")
        return json.loads(line)


def compare(workload: str, rounds: int, steps: int, cores: int, torch: str | None) -> bool:
    """Print what a step of each takes; false where ours reaches less than the goal."""
    pythons = {"webgrad": sys.executable} | ({} if torch is None else {"torch": torch})
    runners = {name: Runner(name, workload, python, cores) for name, python in pythons.items()}
    for _ in range(rounds):
        for each in runners.values():
            each.take(steps)
    for each in runners.values():
        each.end()
    medians = {
        name: {kind: statistics.median(times) * 1e3 for kind, times in each.times.items()}
        for name, each in runners.items()
    }
    for name, found in medians.items():
        print(
            f"{workload:11s} {name:8s} {found['wall']:7.2f} ms a step, {found['processor']:7.2f} of all cores"
            f", loss {runners[name].loss:.4f}"
        )
    if torch is None:
        return True
    ratios = {kind: medians["torch"][kind] / medians["webgrad"][kind] for kind in ("wall", "processor")}
    print(f"{workload:11s} torch / ours: {ratios['wall']:.2f} ×, {ratios['processor']:.2f} × of all cores")
    return max(ratios.values()) >= GOAL


def profile(workload: str, steps: int) -> None:
    import cProfile
    import pstats

    step = step_of("webgrad", workload)
    for _ in range(5):
        step()
    seen = cProfile.Profile()
    seen.enable()
    for _ in range(steps):
        step()
    seen.disable()
    pstats.Stats(seen).sort_stats("tottime").print_stats(40)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", choices=[[], *WORKLOADS], metavar="workload")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work)
        return 0
    if given.profile:
        for each in given.workloads or WORKLOADS:
            profile(each, given.steps)
        return 0
    folder = Path(os.environ.get("BENCH_PEERS", Path(__file__).parents[1] / ".peers"))
    torch = folder / "torch" / "bin" / "python"
    if not torch.is_file():
        print("torch is not installed: make bench-peers")
    found = [
        compare(each, given.rounds, given.steps, given.cores, str(torch) if torch.is_file() else None)
        for each in given.workloads or WORKLOADS
    ]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
