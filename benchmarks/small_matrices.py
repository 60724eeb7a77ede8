"""Factorisations of stacks of small matrices on a GPU, by kernels there and by way of the host's LAPACK.

Prints milliseconds of both, in turns, from matrices that were computed on the device to results that lie
there, and how many times the host's time the kernels' is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from common import gpu, median_seconds

import webgrad as wg
from webgrad.linalg import small

STACKS = ((1024, 4), (256, 8), (64, 16), (64, 32))
FACTORS: dict[str, Callable[[Any], Any]] = {
    "cholesky": wg.linalg.cholesky,
    "inv": wg.linalg.inv,
    "qr": wg.linalg.qr,
    "eigh": wg.linalg.eigh,
    "svd": lambda x: wg.linalg.svd(x, full_matrices=False),
}


def seconds(factor: Callable[[Any], Any], x: wg.Tensor) -> float:
    """The median time of a factorisation."""

    def run() -> None:
        found = factor(x + 0.0)
        wg.eval(*(found if isinstance(found, tuple) else (found,)))
        wg.synchronize()

    run()
    return median_seconds(run, 5)


def main() -> None:
    device = gpu()
    random = np.random.default_rng(0)
    for count, side in STACKS:
        a = random.standard_normal((count, side, side)).astype(np.float32)
        x = wg.asarray(a @ a.swapaxes(-1, -2) + np.eye(side, dtype=np.float32), device=device)
        wg.eval(x)
        for name, factor in FACTORS.items():
            there = seconds(factor, x)
            with patch.object(small, "SIDE", 0):
                host = seconds(factor, x)
            print(
                f"{name:<10} {count:>5} x {side:>2} x {side:>2}: {there * 1e3:8.2f} ms on the device, "
                f"{host * 1e3:8.2f} by the host, {there / host:6.2f} times"
            )


if __name__ == "__main__":
    main()
