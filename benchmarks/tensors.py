"""Tensors on the software adapter: what building and repeating graphs costs the host, and how fast kernels
are.

The kernels are the peers' work at the peers' sizes (gelu16M, softmax4096, layernorm, sum16M, mm512 …),
checked against NumPy; run the peers minutes apart on the same quiet machine and compare. Host costs are
measured in a process of its own, where tiny dispatches run inline. Usage: tensors.py [host] [names…]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import gpu, inline_dispatches, report

import webgrad as wg
from webgrad.evaluate.evaluate import clear_plans

MEGA = 1 << 20


def seconds(run: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        kept = run()
        times.append(time.perf_counter() - start)
        del kept
    return times


def chain(x: Any, y: Any, nodes: int) -> Any:
    for _ in range(nodes // 2):
        x = x * y - 0.5
    return x


def host() -> int:
    device = gpu()
    a, b = (wg.asarray(np.full(1024, value, np.float32), device=device) for value in (1.0, 0.5))

    def add() -> Any:
        c = a + b
        wg.eval(c)
        return c

    def graph() -> Any:
        c = chain(a, b, 1000)
        wg.eval(c)
        return c

    first_add = seconds(add, 1)
    seconds(add, 50)
    each_add = statistics.median(seconds(add, 500)) * 1e6
    seconds(graph, 3)
    per_node = statistics.median(seconds(graph, 30)) * 1e3
    first = []
    for count in (1000, 1002, 1004, 1006, 1008):  # pipelines are known by now: no driver compiles
        clear_plans()
        start = time.perf_counter()
        wg.eval(chain(a, b, count))
        first.append((time.perf_counter() - start) / count)
    block = transformer_block_host()
    results = [
        report("repeated add, call to submitted", f"{each_add:.0f} µs", "≤ 100 µs", each_add <= 100),
        report("repeated graph of 1,000 nodes, a node", f"{per_node:.2f} µs", "≤ 6 µs", per_node <= 6),
        report("first time, 1,000 map nodes, a node", f"{statistics.median(first) * 1e3:.3f} ms", "≤ 0.5 ms",
               statistics.median(first) <= 0.5e-3),
        report("first time, transformer block, a node", f"{block * 1e3:.3f} ms", "≤ 0.5 ms", block <= 0.5e-3),
    ]  # fmt: skip
    print(f"      (the very first add, driver's compile included: {first_add[0] * 1e3:.0f} ms)")
    return 0 if all(results) else 1


def transformer_block_host() -> float:
    """Seconds a node to schedule, lower and write a block whose pipelines are known."""
    from webgrad.evaluate.evaluate import evaluate
    from webgrad.graph.snapshot import walk

    x, weights = block_inputs(8, 32, 2, 64)
    wg.eval(block(x, *weights, heads=2))
    wg.synchronize()  # the driver compiles at the first dispatch
    clear_plans()
    made = block(x, *weights, heads=2)
    count = len(walk([made.node]).nodes)
    start = time.perf_counter()
    evaluate([made.node])
    return (time.perf_counter() - start) / count


def block_inputs(sequence: int, width: int, heads: int, inner: int) -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)

    def tensor(*shape: int) -> Any:
        return wg.asarray((random.random(shape, np.float32) - np.float32(0.5)) * np.float32(0.1))

    shapes = [(width, width)] * 4 + [(width, inner), (inner, width), (width,), (width,)]
    return tensor(1, sequence, width), [tensor(*shape) for shape in shapes]


def block(
    x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any, gain: Any, bias: Any, *, heads: int
) -> Any:
    """A pre-norm transformer block with a causal mask."""
    _, sequence, width = x.shape

    def split(t: Any) -> Any:
        return t.reshape(1, sequence, heads, width // heads).permute(0, 2, 1, 3)

    normed = wg.layer_norm(x, (width,), gain, bias)
    query, key, value = split(normed @ wq), split(normed @ wk), split(normed @ wv)
    scores = (query @ key.mT) * (width // heads) ** -0.5
    mask = wg.triu(wg.full((sequence, sequence), -1e9, device=x.device), k=1)
    attended = wg.softmax(scores + mask, axis=-1) @ value
    x = attended.permute(0, 2, 1, 3).reshape(1, sequence, width) @ wo + x
    normed = wg.layer_norm(x, (width,), gain, bias)
    return wg.gelu(normed @ w1, approximate="tanh") @ w2 + x


def works() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Name → how to make the inputs, and the graph of them with NumPy's answer."""
    random = np.random.default_rng(0)

    def array(*shape: int) -> Any:
        return random.random(shape, np.float32) - np.float32(0.5)

    def gelu(a: Any, b: Any, c: Any) -> Any:
        return wg.gelu(a * b + c, approximate="tanh")

    def numpy_gelu(a: Any, b: Any, c: Any) -> Any:
        x = a * b + c
        return x / (1 + np.exp(-1.5957691216 * (x + 0.044715 * x**3)))

    def numpy_softmax(x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def numpy_norm(x: Any, gain: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gain + bias

    def product(size: int) -> Any:
        return lambda: (array(size, size), array(size, size)), lambda a, b: a @ b, lambda a, b: a @ b

    return {
        "gelu16M": (lambda: tuple(array(16 * MEGA) for _ in range(3)), gelu, numpy_gelu),
        "softmax4096": (lambda: (array(4096, 4096),), lambda x: wg.softmax(x, axis=-1), numpy_softmax),
        "layernorm": (
            lambda: (array(4096, 1024), array(1024), array(1024)),
            lambda x, gain, bias: wg.layer_norm(x, (1024,), gain, bias),
            numpy_norm,
        ),
        "sum16M": (lambda: (array(16 * MEGA),), wg.sum, lambda x: x.sum(dtype=np.float64)),
        "cumsum16M": (lambda: (array(16 * MEGA),), wg.cumsum, lambda x: x.cumsum(dtype=np.float64)),
        "sort1M": (lambda: (array(MEGA),), wg.sort, np.sort),
        "topk1M": (lambda: (array(MEGA),), lambda x: wg.topk(x, 50)[0], lambda x: np.sort(x)[:-51:-1]),
        "scatter1M": (
            lambda: (np.zeros(100_000, np.float32), random.integers(0, 100_000, MEGA), array(MEGA)),
            wg.index_add,
            lambda base, index, updates: np.bincount(index, updates, base.size),
        ),
        "mm256": product(256),
        "mm512": product(512),
        "mm1024": product(1024),
    }  # type: ignore[return-value]


def kernels(names: list[str]) -> int:
    device = gpu()
    for name, (inputs, graph, answer) in works().items():  # type: ignore[misc]
        if names and name not in names:
            continue
        arrays = inputs()
        tensors = [wg.asarray(each, device=device) for each in arrays]

        def run(tensors: Any = tensors, graph: Any = graph) -> Any:
            result = graph(*tensors)
            wg.eval(result)
            wg.synchronize(device)
            return result

        start = time.perf_counter()
        result = run()
        first = time.perf_counter() - start
        wanted = answer(*arrays)
        error = float(np.abs(result.numpy() - wanted).max() / max(1.0, float(np.abs(wanted).max())))
        assert error < 1e-4, f"{name} is wrong: {error}"
        del result
        times = seconds(run, 9)
        print(
            f"{name:<12} median {statistics.median(times) * 1e3:8.2f} ms  min {min(times) * 1e3:8.2f} ms  "
            f"first {first * 1e3:6.0f} ms  error {error:.1e}",
            flush=True,
        )
    return 0


def main(words: list[str]) -> int:
    if words[:1] == ["host"]:
        return host()
    if not words:
        inner = subprocess.run([sys.executable, __file__, "host"], check=False).returncode
        return kernels([]) or inner
    return kernels(words)


if __name__ == "__main__":
    if sys.argv[1:2] == ["host"]:
        inline_dispatches()
    wg.set_default_device("webgpu")
    sys.exit(main(sys.argv[1:]))
