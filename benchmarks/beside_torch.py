"""Ops on the cpu beside torch, in one process and in turns: which of them are slower, and how much.

    PYTHONPATH=.:.venv/lib/python3.11/site-packages .peers/torch/bin/python benchmarks/beside_torch.py [conv]

Names choose the cases that contain them. With --threads 1 times are processor times of one thread, else of
the clock. Every result is compared with torch's. A ratio above 1 means that webgrad is quicker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Case = tuple[str, Callable[..., Any], Callable[..., Any], list[Array]]  # a name, ours, torch's, the inputs
RNG = np.random.default_rng(0)
# samples, channels, outputs, size, kernel, stride, groups
CONVOLUTIONS = [
    (1, 64, 64, 56, 3, 1, 1),
    (1, 64, 128, 56, 3, 2, 1),
    (32, 1, 32, 28, 3, 1, 1),
    (32, 32, 64, 14, 3, 1, 1),
    (1, 3, 64, 224, 7, 2, 1),
    (1, 64, 256, 56, 1, 1, 1),
    (1, 64, 64, 56, 3, 1, 64),
    (1, 64, 64, 56, 7, 1, 64),
]
PRODUCTS = [(256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (333, 257, 199), (128, 10, 256)]
PRODUCTS += [(128, 784, 256), (32, 1024, 256), (1, 8192, 2048)]
POOLS = [(8, 64, 56, 2, 2), (1, 64, 112, 3, 2), (1, 64, 56, 5, 1)]
AXES = (None, 0, 1)


def drawn(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def convolutions(wg: Any, torch: Any) -> Iterator[Case]:
    for samples, channels, outputs, size, kernel, stride, groups in CONVOLUTIONS:
        name = f"{kernel}×{kernel} {channels}→{outputs} {size}² × {samples} / {stride}, {groups} groups"
        x, w = drawn(samples, channels, size, size), drawn(outputs, channels // groups, kernel, kernel)
        how = {"stride": stride, "padding": kernel // 2, "groups": groups}
        after = (size - 1) // stride + 1
        g = drawn(samples, outputs, after, after)

        def ours(x: Any, w: Any, g: Any, how: Any = how) -> Any:
            return wg.conv2d(x, w, **how)

        def loss(x: Any, w: Any, g: Any, how: Any = how) -> Any:
            return (wg.conv2d(x, w, **how) * g).sum()

        def theirs(x: Any, w: Any, g: Any, how: Any = how) -> Any:
            return torch.nn.functional.conv2d(x, w, **how)

        yield f"conv {name}", ours, theirs, [x, w, g]
        for at, which in enumerate(("input", "weight")):

            def back(x: Any, w: Any, g: Any, at: int = at, how: Any = how) -> Any:
                two = [[how["stride"]] * 2, [how["padding"]] * 2, [1, 1], False, [0, 0], how["groups"]]
                wanted = [at == 0, at == 1, False]
                return torch.ops.aten.convolution_backward(g, x, w, None, *two, wanted)[at]

            yield f"conv's {which} {name}", wg.grad(loss, argnums=at), back, [x, w, g]


def products(wg: Any, torch: Any) -> Iterator[Case]:
    for m, n, k in PRODUCTS:
        yield f"matmul {m} × {n} × {k}", lambda a, b: a @ b, lambda a, b: a @ b, [drawn(m, k), drawn(k, n)]
        transposed = [drawn(m, k), drawn(n, k)]
        yield f"matmul {m} × {n} × {k}, B.T", lambda a, b: a @ b.T, lambda a, b: a @ b.T, transposed
    for size in (16, 32, 64):
        batches = [drawn(96, size, size), drawn(96, size, size)]
        yield f"matmul 96 × {size}³", lambda a, b: a @ b, lambda a, b: a @ b, batches


def pools(wg: Any, torch: Any) -> Iterator[Case]:
    for samples, channels, size, kernel, stride in POOLS:
        how, name = (kernel, stride, kernel // 2 * (kernel % 2)), f"{kernel}×{kernel} {size}² / {stride}"
        x = [drawn(samples, channels, size, size)]
        for kind in ("max_pool2d", "avg_pool2d"):
            ours, theirs = getattr(wg, kind), getattr(torch.nn.functional, kind)
            yield (
                f"{kind} {name}",
                lambda x, f=ours, how=how: f(x, *how),
                lambda x, f=theirs, how=how: f(x, *how),
                x,
            )


def folds(wg: Any, torch: Any) -> Iterator[Case]:
    x = [drawn(2048, 2048)]
    for name in ("sum", "mean", "argmax"):
        own, other = getattr(wg, name), getattr(torch, name)
        for axis in AXES:

            def ours(x: Any, f: Any = own, axis: Any = axis) -> Any:
                return f(x, axis=axis)

            def theirs(x: Any, f: Any = other, axis: Any = axis) -> Any:
                return f(x) if axis is None else f(x, axis)

            yield f"{name} of 2048² along {axis}", ours, theirs, x
    for name in ("softmax", "log_softmax"):
        f, g = getattr(wg, name), getattr(torch, name)
        yield f"{name} 2048²", lambda x, f=f: f(x, axis=-1), lambda x, g=g: g(x, -1), x
    yield "cumsum 2048²", lambda x: wg.cumulative_sum(x, axis=1), lambda x: x.cumsum(1), x


def maps(wg: Any, torch: Any) -> Iterator[Case]:
    gelu, images = (wg.nn.functional.gelu, torch.nn.functional.gelu), drawn(8, 64, 56, 56)
    yield "gelu 1024²", *gelu, [drawn(1024, 1024)]
    for name, x, order in (
        ("transpose 1024²", drawn(1024, 1024), (1, 0)),
        ("transposes 12 × 197 × 64", drawn(12, 197, 64), (0, 2, 1)),
        ("channels last 8 × 64 × 56²", images, (0, 2, 3, 1)),
        ("channels first 8 × 64 × 56²", images, (0, 3, 1, 2)),
    ):
        yield (
            name,
            lambda x, order=order: wg.permute_dims(x, order) * 1,
            lambda x, order=order: x.permute(order).contiguous(),
            [x],
        )


def embeddings(wg: Any, torch: Any) -> Iterator[Case]:
    index, table = RNG.integers(0, 10000, (64, 128)).astype(np.int32), drawn(10000, 256)
    functional, g = wg.nn.functional, drawn(64, 128, 256)
    yield "embedding", functional.embedding, torch.nn.functional.embedding, [index, table]

    def loss(table: Any, index: Any, g: Any) -> Any:
        return (functional.embedding(index, table) * g).sum()

    def back(table: Any, index: Any, g: Any) -> Any:
        return torch.ops.aten.embedding_dense_backward(g, index.long(), len(table), -1, False)

    yield "embedding's gradient", wg.grad(loss), back, [table, index, g]


def main() -> None:
    parser = argparse.ArgumentParser(description="Ops on the cpu beside torch.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="of a turn")
    given = parser.parse_args()
    if given.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import torch

    import webgrad as wg

    torch.set_num_threads(given.threads)
    wg.set_default_device("cpu")
    clock = time.thread_time if given.threads == 1 else time.perf_counter
    for cases in (convolutions, products, pools, folds, maps, embeddings):
        for name, ours, theirs, inputs in cases(wg, torch):
            if not given.names or any(each in name for each in given.names):
                print(f"{name:44s} {compared(wg, torch, ours, theirs, inputs, given, clock)}", flush=True)


def compared(
    wg: Any,
    torch: Any,
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    inputs: list[Array],
    given: Any,
    clock: Callable[[], float],
) -> str:
    """Medians and their ratio, or how far apart the results are."""
    captured, arrays = wg.jit(ours), [wg.asarray(each) for each in inputs]
    tensors = [torch.from_numpy(each) for each in inputs]

    def run() -> Any:
        result = captured(*arrays)
        wg.eval(result)
        return result

    def peer() -> Any:
        with torch.inference_mode():
            return theirs(*tensors)

    found, want = run().numpy().astype(np.float64), peer().numpy()
    off = abs(found - want).max() / max(abs(want).max(), 1e-9)
    if off > 1e-4:
        return f"differs by {off:.1e} of the largest element"
    counts = [max(1, int(given.seconds / max(_seconds(each, 3, clock), 1e-6))) for each in (run, peer)]
    turns = [
        [_seconds(each, count, clock) for each, count in zip((run, peer), counts, strict=True)]
        for _ in range(given.turns)
    ]
    mine, other = (statistics.median(each) * 1e6 for each in zip(*turns, strict=True))
    ratio = statistics.median(b / a for a, b in turns)
    return f"{mine:10.1f} µs, torch {other:10.1f} µs, {ratio:5.2f} ×"


def _seconds(run: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(count):
        run()
    return (clock() - start) / count


if __name__ == "__main__":
    main()
