"""What the benchmarks share: a GPU device or a clear refusal, medians, resident memory, result lines."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from webgrad.runtime.device import open_device
from webgrad.runtime.webgpu import Device

__all__ = ["gpu", "inline_dispatches", "median_seconds", "report", "resident_bytes"]


def inline_dispatches() -> None:
    """Let Mesa's software adapter run tiny dispatches on the calling thread; before the driver is loaded."""
    os.environ.setdefault("LP_NUM_THREADS", "0")


def gpu() -> Device:
    """The best adapter, a software one included."""
    device = open_device("webgpu")
    assert isinstance(device, Device)
    print(f"device: {device.info.name}, {device.info.driver}; Python {sys.version.split()[0]}")
    return device


def median_seconds(
    run: Callable[[], object], repeats: int = 7, before: Callable[[], object] = lambda: None
) -> float:
    """The median time of `run`, with `before` called untimed ahead of each."""
    times = []
    for _ in range(repeats):
        before()
        start = time.perf_counter()
        kept = run()
        times.append(time.perf_counter() - start)
        del kept
    return statistics.median(times)


def resident_bytes() -> int:
    """The process's resident memory."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        raise SystemExit("resident memory is read from /proc, which this system lacks")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def report(name: str, value: str, target: str, ok: bool) -> bool:
    """One result line; gives `ok` back."""
    print(f"{'ok  ' if ok else 'MISS'}  {name:<48} {value:>16}   target {target}")
    return ok
