"""A feed-forward network of 36 layers through `Batch` (Qwen3-4B's gate, up, silu · mul, down at a tenth of
its width, or of the width that is given: `python benchmarks/feed_forward.py 64`).

Counts what a run creates: at most three pipelines in all, one submission per execute, and nothing from the
second run on. Results are compared with NumPy.
"""

from __future__ import annotations

import sys

import numpy as np
from common import gpu, median_seconds, report

import webgrad as wg

LAYERS, ROWS = 36, 32
WIDTH = int(sys.argv[1]) if len(sys.argv) > 1 else 256
HIDDEN = WIDTH * 972 // 256
RUNS = 5
CREATED = ("pipelines_compiled", "bind_groups_created", "buffers_created")


def main() -> int:
    device = gpu()
    random = np.random.default_rng(0)
    shapes = [(WIDTH, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    weights = [
        [random.standard_normal(s, np.float32) * np.float32(s[0] ** -0.5) for s in shapes]
        for _ in range(LAYERS)
    ]
    x = random.standard_normal((ROWS, WIDTH), np.float32)
    owner = wg.Batch(device)
    layers = [[owner.upload(each) for each in layer] for layer in weights]

    def run() -> tuple[int, list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
        batch = wg.Batch(device)
        value = batch.upload(x)
        results = []
        for layer in layers:
            gate, up, down = (batch.import_buffer(each) for each in layer)
            hidden = batch.mul(batch.silu(batch.matmul(value, gate)), batch.matmul(value, up))
            results.append(batch.matmul(hidden, down))
        before = device.stats()["submissions"]
        batch.execute()
        return device.stats()["submissions"] - before, [batch.read(each) for each in results]

    before = device.stats()
    submissions, results = run()
    after_first = device.stats()
    later = [run() for _ in range(RUNS)]
    after_all = device.stats()
    error = 0.0
    for (gate, up, down), result in zip(weights, results, strict=True):
        gated = x.astype(np.float64) @ gate
        expected = (gated / (1 + np.exp(-gated)) * (x @ up)) @ down
        error = max(error, float(np.abs(result - expected).max() / np.abs(expected).max()))
    pipelines = after_first["pipelines_compiled"] - before["pipelines_compiled"]
    made = sum(after_all[name] - after_first[name] for name in CREATED)
    print(
        f"{LAYERS * 5} operations, {median_seconds(run) * 1e3:.1f} ms a run with upload and read-back; "
        f"in place: {after_first['in_place']}"
    )
    good = [
        report("relative error against NumPy", f"{error:.1e}", "≤ 1e-4", error <= 1e-4),
        report("pipelines compiled in all", str(pipelines), "≤ 3", pipelines <= 3),
        report(
            "submissions per execute",
            str({submissions, *(each for each, _ in later)}),
            "{1}",
            {submissions, *(each for each, _ in later)} == {1},
        ),
        report(f"objects created by runs 2 to {RUNS + 1}", str(made), "0", made == 0),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
