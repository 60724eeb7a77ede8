"""Fourier transforms against NumPy's, SciPy's and torch's (where they are installed), in one run.

Every transform runs in turn with all others, and the medians are compared: `wg / best` is our time over the
best of theirs, below 1 where we are quicker. With --process seconds of the processor are counted instead of
the clock's, which is what a busy machine allows: then run it with LP_NUM_THREADS=0, so that a software
adapter computes in this process's own thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg

# function, rows, length
SIZES = (
    ("fft", 1, 1 << 12),
    ("fft", 1, 1 << 16),
    ("fft", 1, 1 << 20),
    ("fft", 1024, 64),
    ("fft", 1024, 1024),
    ("fft", 16384, 64),
    ("fft", 1000, 1000),
    ("fft", 1000, 1009),
    ("rfft", 1, 1 << 20),
    ("rfft", 1024, 1024),
    ("irfft", 1024, 513),
    ("fft2", 1024, 1024),
)


def peers(name: str, x: Any) -> dict[str, Callable[[], Any]]:
    """The same function of other libraries; those that are not installed are left out."""
    found: dict[str, Callable[[], Any]] = {"numpy": lambda: getattr(np.fft, name)(x)}
    try:
        import scipy.fft

        found["scipy"] = lambda: getattr(scipy.fft, name)(x)
    except ImportError:
        pass
    try:
        import torch

        given = torch.from_numpy(x)
        found["torch"] = lambda: getattr(torch.fft, name)(given)
    except ImportError:
        pass
    return found


def ours(name: str, x: Any, device: str) -> Callable[[], None]:
    """Computed, and waited for; it stays on the device."""
    given = wg.asarray(x, device=device)
    wg.eval(given)

    def run() -> None:
        wg.eval(getattr(wg.fft, name)(given))
        wg.synchronize(device)

    return run


def measured(ways: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """The median seconds of each, all of them in turn; the first round does not count."""
    seconds: dict[str, list[float]] = {each: [] for each in ways}
    for at in range(rounds + 1):
        for each, run in ways.items():
            start = clock()
            run()
            if at:
                seconds[each].append(clock() - start)
    return {each: statistics.median(taken) for each, taken in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--devices", nargs="+", default=["cpu", "webgpu:0"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--process", action="store_true", help="seconds of the processor, not of the clock")
    given = parser.parse_args()
    clock = time.process_time if given.process else time.perf_counter
    generator = np.random.default_rng(0)
    for name, rows, length in SIZES:
        x: Any = generator.standard_normal((rows, length)).astype(np.float32)
        if name != "rfft":
            x = (x + 1j * generator.standard_normal((rows, length))).astype(np.complex64)
        theirs = peers(name, x)
        ways = {**theirs, **{f"wg {each}": ours(name, x, each) for each in given.devices}}
        found = measured(ways, given.rounds, clock)
        best = min(found[each] for each in theirs)
        times = ", ".join(f"{each} {1e3 * seconds:.2f}" for each, seconds in found.items())
        ratios = ", ".join(f"{each} / best {found[f'wg {each}'] / best:.2f}" for each in given.devices)
        print(f"{name} ({rows}, {length}) ms: {times}; {ratios}", flush=True)


if __name__ == "__main__":
    main()
