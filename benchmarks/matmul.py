"""Matrix products through `Batch` on the software adapter, the same work as the peers' benchmark (mm256 …
mm2048).

Prints milliseconds and GFLOP/s, checked against NumPy. Run the peers minutes apart on the same quiet machine
and compare. Usage: matmul.py [sizes…]
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
from common import gpu

import webgrad as wg


def main(sizes: list[int]) -> int:
    device = gpu()
    random = np.random.default_rng(0)
    for size in sizes:
        a, b = (random.random((size, size), np.float32) - np.float32(0.5) for _ in range(2))
        batch = wg.Batch(device)
        left, right = batch.upload(a), batch.upload(b)
        result = batch.matmul(left, right)
        batch.execute()
        error = float(np.abs(batch.read(result) - a @ b).max())
        assert error < 1e-4 * size**0.5, f"wrong result: {error}"
        times = []
        began = time.perf_counter()
        while len(times) < 7 or (time.perf_counter() - began < 2 and len(times) < 200):
            start = time.perf_counter()
            result = batch.matmul(left, right)
            event = batch.execute()
            assert event is not None
            event.wait()
            times.append(time.perf_counter() - start)
        typical = statistics.median(times)
        print(
            f"matmul {size}²  median {typical * 1e3:8.2f} ms  min {min(times) * 1e3:8.2f} ms  "
            f"{2 * size**3 / typical / 1e9:6.1f} GFLOP/s (best {2 * size**3 / min(times) / 1e9:.1f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main([int(each) for each in sys.argv[1:]] or [256, 512, 1024]))
