"""Training steps: the time of one, the kernels it launches, and that many of them leave nothing behind.

    training.py [mlp] [cnn] [gpt] [lstm] [--device cpu] [--library webgrad,torch] [--steps 30] [--long]

Each library is a process of its own, one after the other; peers are looked for as benchmarks/README.md says.
Times are medians, from the call of a step until its loss is there. `--long`: many steps of webgrad's, in
which memory must stay flat, nothing is compiled after step 2, and no buffer is made after step 3. It ends
with 1 where that does not hold, or where the mlp's step has more than 12 kernels.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nets import WORKLOADS, batch_of, net

RATE = 1e-3
MOST_KERNELS = {"mlp": 12}
LONG = 1000
PEERS = ("torch", "tinygrad")
Step = Callable[[], float]


# What is trained, in each library


def webgrad_step(workload: str, device: str) -> Step:
    import webgrad as wg

    wg.set_default_device(device)
    model = net(workload, wg.nn, wg.scaled_dot_product_attention)
    optimiser = wg.optim.Adam(model.parameters(), lr=RATE)

    @wg.jit  # type: ignore[untyped-decorator, unused-ignore]
    def step(pictures: Any, classes: Any) -> Any:
        optimiser.zero_grad()
        loss = wg.nn.functional.cross_entropy(model(pictures), classes)
        loss.backward()
        optimiser.step()
        return loss

    pictures, classes = (wg.asarray(each) for each in batch_of(workload))
    return lambda: float(step(pictures, classes).item())


def torch_step(workload: str, device: str) -> Step:
    import torch

    model = net(workload, torch.nn, torch.nn.functional.scaled_dot_product_attention)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    pictures, classes = (torch.from_numpy(each) for each in batch_of(workload))
    classes = classes.long()

    def step() -> float:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(pictures), classes)
        loss.backward()
        optimiser.step()
        return float(loss.item())

    return step


def tinygrad_step(workload: str, device: str) -> Step:
    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    peer = importlib.import_module("tinygrad_webgpu")  # first: it says which device tinygrad opens
    if workload not in ("mlp", "cnn"):
        raise SystemExit(f"{workload} is not written for tinygrad")
    nn, Tensor = importlib.import_module("tinygrad.nn"), peer.Tensor
    importlib.import_module("tinygrad.helpers").Context(TRAINING=1).__enter__()
    if workload == "mlp":
        modules = [nn.Linear(784, 256), Tensor.relu, nn.Linear(256, 10)]
    else:
        modules = [
            *(nn.Conv2d(1, 32, 3, padding=1), Tensor.relu, Tensor.max_pool2d),
            *(nn.Conv2d(32, 64, 3, padding=1), Tensor.relu, Tensor.max_pool2d),
            *(lambda x: x.flatten(1), nn.Linear(3136, 128), Tensor.relu, nn.Linear(128, 10)),
        ]
    optimiser = nn.optim.Adam(nn.state.get_parameters(modules), lr=RATE)
    pictures, classes = (Tensor(each).realize() for each in batch_of(workload))

    @peer.TinyJit
    def step() -> Any:
        optimiser.zero_grad()
        loss = pictures.sequential(modules).sparse_categorical_crossentropy(classes).backward()
        return loss.realize(*optimiser.schedule_step())

    return lambda: float(step().item())


LIBRARIES = {"webgrad": webgrad_step, "torch": torch_step, "tinygrad": tinygrad_step}


# Measuring


def seconds_of(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(library: str, workload: str, device: str, steps: int) -> bool:
    """Print one library's times; false where webgrad launches more kernels than it may."""
    step = LIBRARIES[library](workload, device)
    first = seconds_of(step)
    for _ in range(4):
        step()
    before = dispatches() if library == "webgrad" else 0
    walls, works = [], []
    for _ in range(steps):
        start = time.process_time()
        walls.append(seconds_of(step))
        works.append(time.process_time() - start)
    line = (
        f"{workload:4s} {library:9s} {statistics.median(walls) * 1e3:8.2f} ms a step "
        f"(least {min(walls) * 1e3:.2f}, of all cores {min(works) * 1e3:.2f}), the first {first:.2f} s"
    )
    if library != "webgrad" or not device.startswith("webgpu"):
        print(f"{line}, loss {step():.4f}")
        return True
    kernels, most = (dispatches() - before) // steps, MOST_KERNELS.get(workload, 1 << 30)
    print(f"{line}, {kernels} kernels, loss {step():.4f}")
    return kernels <= most


def dispatches() -> int:
    """Kernels launched so far; the cpu launches none."""
    import webgrad as wg

    return int(wg.stats().get("dispatches", 0))


def run_long(workload: str, device: str, steps: int) -> bool:
    """Many steps; whether they left nothing behind."""
    from common import resident_bytes

    import webgrad as wg

    step = webgrad_step(workload, device)
    counted: dict[str, list[int]] = {"pipelines_compiled": [], "buffers_created": []}
    memory = []
    for number in range(1, steps + 1):
        step()
        for name, values in counted.items():
            values.append(int(wg.stats().get(name, 0)))
        if number % (steps // 10) == 0:
            gc.collect()
            memory.append(resident_bytes())
    compiled = counted["pipelines_compiled"][-1] - counted["pipelines_compiled"][1]
    created = counted["buffers_created"][-1] - counted["buffers_created"][2]
    change = max((each / memory[0] - 1 for each in memory), key=abs)
    print(
        f"{workload:4s} {steps} steps on {device}: memory {change:+.2%} since step {steps // 10}, {compiled} "
        f"pipelines compiled after step 2, {created} buffers created after step 3"
    )
    return not compiled and not created and abs(change) <= 0.01


# Processes


def python_of(library: str) -> str | None:
    """A peer's interpreter, if it is installed."""
    if library not in PEERS:
        return sys.executable
    folder = Path(os.environ.get("BENCH_PEERS", Path(__file__).parents[1] / ".peers"))
    found = folder / library / "bin" / "python"
    return str(found) if found.is_file() else None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", default=[], metavar="workload", help=", ".join(WORKLOADS))
    parser.add_argument("--device", default="cpu", help="webgrad's: cpu, webgpu:0 …")
    parser.add_argument("--library", default="webgrad", help="webgrad, torch, tinygrad, with commas")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument(
        "--long", type=int, nargs="?", const=LONG, help=f"so many steps ({LONG}), and what they leave behind"
    )
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    libraries = given.library.split(",")
    workloads = given.workloads or list(WORKLOADS)
    unknown = [each for each in libraries if each not in LIBRARIES]
    unknown += [each for each in workloads if each not in WORKLOADS]
    if unknown:
        parser.error(
            f"{', '.join(unknown)}: the libraries are {', '.join(LIBRARIES)}, the workloads {WORKLOADS}"
        )
    fine = True
    for workload in workloads:
        for library in libraries:
            python = python_of(library)
            if given.here or (libraries == ["webgrad"]):
                fine &= measure(library, workload, given.device, given.steps)
            elif python is None:
                print(f"{workload:4s} {library:9s} is not installed: make bench-peers")
            else:
                command = [python, __file__, workload, "--here", "--library", library]
                command += ["--device", given.device, "--steps", str(given.steps)]
                fine &= subprocess.run(command, check=False).returncode == 0
        if given.long:
            fine &= run_long(workload, given.device, max(30, given.long))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
