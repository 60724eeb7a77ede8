"""How long the driver takes to compile each kernel of some graphs, with its own cache off.

lavapipe compiles at the first dispatch: every kernel is run alone, twice, and the difference is the compile.
The graphs are those of `make bench`, and some more.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"

sys.path.append(str(Path(__file__).parent / "peers"))

import numpy as np
from common import gpu, report
from tensors import block, block_inputs
from webgrad_tensors import graph
from worker import Missing
from workloads import WORKLOADS

import webgrad as wg
from webgrad.evaluate.gpu_plan import GpuPlan
from webgrad.graph.snapshot import snapshot, walk

MOST = 0.6  # seconds


def graphs() -> dict[str, Any]:
    random = np.random.default_rng(0)

    def tensor(*shape: int) -> Any:
        return wg.asarray(random.random(shape, np.float32))

    a, b, c = (tensor(256, 1024) for _ in range(3))
    weight, bias = tensor(1024, 512), tensor(512)
    parameters = [(tensor(*shape), tensor(*shape)) for shape in [(64, 32), (32,), (128, 64), (7, 9)] * 5]
    x, weights = block_inputs(128, 512, 8, 2048)
    labels = wg.asarray(random.integers(0, 1024, 256).astype(np.int32))
    return {
        "gelu(a*b+c)": lambda: [wg.gelu(a * b + c)],
        "softmax": lambda: [wg.softmax(a, axis=-1)],
        "log_softmax": lambda: [wg.log_softmax(a, axis=-1)],
        "layer_norm": lambda: [wg.layer_norm(a, (1024,), tensor(1024), tensor(1024))],
        "rms_norm": lambda: [wg.rms_norm(a, (1024,), tensor(1024))],
        "relu(x@w+b)": lambda: [wg.relu(a @ weight + bias)],
        "mse": lambda: [wg.mse_loss(a, b)],
        "cross_entropy": lambda: [wg.cross_entropy(a, labels)],
        "sum": lambda: [wg.sum(a), wg.sum(a, axis=0)],
        "transposed": lambda: [a.T + 1.0],
        "cumsum, sort, topk": lambda: [wg.cumsum(a, axis=1), wg.sort(a, axis=1), *wg.topk(a, 5)],
        "normal": lambda: [wg.random.normal((256, 1024))],
        "adam": lambda: adam(parameters),
        "transformer block": lambda: [block(x, *weights, heads=8)],
    }


def workloads(device: Any) -> dict[str, Any]:
    """What `make bench` measures, but the chains of tiny ops."""

    def build(name: str) -> Any:
        function, tensors = graph(name, WORKLOADS[name].inputs(), device)
        return [function(**tensors)]

    return {name: functools.partial(build, name) for name, work in WORKLOADS.items() if work.per == 1}


def adam(parameters: list[Any]) -> list[Any]:
    results = []
    for value, gradient in parameters:
        mean = value * 0.9 + gradient * 0.1
        square = value * 0.999 + (gradient * gradient) * 0.001
        results += [mean, square, value - 0.001 * (mean / 0.2) / (wg.sqrt(square / 0.3) + 1e-8)]
    return results


def main() -> int:
    device = gpu()
    wg.set_default_device(device)
    (wg.ones((8, 8)) @ wg.ones((8, 8)) + 1.0).numpy()  # the driver's own start
    slowest: list[tuple[float, str]] = []
    for name, build in (graphs() | workloads(device)).items():
        try:
            roots = [each.node for each in build()]
        except Missing as why:
            print(f"      {name:<20} {why}")
            continue
        walked = walk(roots)
        plan = GpuPlan(snapshot(walked, roots), device)
        steps, times = plan.steps, []
        for at in range(len(steps)):
            plan.steps = steps[: at + 1]
            for each in plan.steps:
                each.drop = []
            stored, plan.stored = plan.stored, ()
            times.append([timed(plan, walked.nodes, device) for _ in range(2)])
            plan.stored = stored
        compiles = [first - again for first, again in times]
        slowest += [(each, name) for each in compiles]
        shown = ", ".join(f"{max(each, 0) * 1e3:.0f}" for each in compiles)
        print(f"      {name:<20} {len(steps)} kernels: {shown} ms", flush=True)
    worst, name = max(slowest)
    ok = report("slowest driver compile of a kernel", f"{worst:.2f} s ({name})", f"≤ {MOST} s", worst <= MOST)
    return 0 if ok else 1


def timed(plan: GpuPlan, nodes: list[Any], device: Any) -> float:
    start = time.perf_counter()
    plan.run(nodes)
    device.flush()
    device.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
