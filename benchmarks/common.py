"""What the benchmarks share: a GPU device or a clear refusal, medians, resident memory, result lines."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from webgrad.runtime import host
from webgrad.runtime.device import open_device
from webgrad.runtime.webgpu import Device

__all__ = ["bare_pass", "gpu", "inline_dispatches", "median_seconds", "report", "resident_bytes"]


def inline_dispatches() -> None:
    """Let Mesa's software adapter run tiny dispatches on the calling thread; before the driver is loaded."""
    os.environ.setdefault("LP_NUM_THREADS", "0")


def gpu() -> Device:
    """The best adapter, a software one included."""
    device = open_device("webgpu")
    assert isinstance(device, Device)
    print(f"device: {device.info.name}, {device.info.driver}; Python {sys.version.split()[0]}")
    return device


def bare_pass(native: Any, rows: Sequence[Any], params: Sequence[bytes]) -> Callable[[], None]:
    """Resolved commands, handles at hand, encoded into one pass through wgpu's C functions, and submitted."""
    from wgpu.backends.wgpu_native import ffi, lib

    commands = [
        (row.pipeline.handle, row.group.handle, ffi.from_buffer(data), row.params_size, row.grid)
        for row, data in zip(rows, params, strict=True)
    ]
    set_pipeline, set_group = lib.wgpuComputePassEncoderSetPipeline, lib.wgpuComputePassEncoderSetBindGroup
    set_immediates, dispatch = (
        lib.wgpuComputePassEncoderSetImmediates,
        lib.wgpuComputePassEncoderDispatchWorkgroups,
    )

    def run() -> None:
        encoder = lib.wgpuDeviceCreateCommandEncoder(native.device, ffi.NULL)
        compute_pass = lib.wgpuCommandEncoderBeginComputePass(encoder, ffi.NULL)
        for pipeline, group, data, size, grid in commands:
            set_pipeline(compute_pass, pipeline)
            set_group(compute_pass, 0, group, 0, ffi.NULL)
            set_immediates(compute_pass, 0, data, size)
            dispatch(compute_pass, *grid)
        lib.wgpuComputePassEncoderEnd(compute_pass)
        finished = lib.wgpuCommandEncoderFinish(encoder, ffi.NULL)
        lib.wgpuQueueSubmit(native.queue, 1, ffi.new("WGPUCommandBuffer[1]", [finished]))
        lib.wgpuComputePassEncoderRelease(compute_pass)
        lib.wgpuCommandEncoderRelease(encoder)
        lib.wgpuCommandBufferRelease(finished)

    return run


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
    found = host.resident_bytes()
    if not found:
        raise SystemExit("this system does not say how much memory a process takes")
    return found


def report(name: str, value: str, target: str, ok: bool) -> bool:
    """One result line; gives `ok` back."""
    print(f"{'ok  ' if ok else 'MISS'}  {name:<48} {value:>16}   target {target}")
    return ok
