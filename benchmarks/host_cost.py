"""What the host pays for a queue of 1,000 small dispatches, against the bare cffi loop in the same run.

Prints µs per command, to submit, and the ratio to the bare loop: replay of a resolved queue; a repeated queue
(allocate, record, free, find, replay, submit); a queue seen for the first time (pipelines known, pool warm);
one eager command; and the replay beside a busy Python thread. The GPU's own time is waited for, never
measured.
"""

from __future__ import annotations

import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
from wgpu.backends.wgpu_native import ffi, lib

from webgrad.runtime.buffers import Buffer
from webgrad.runtime.device import Device, open_device
from webgrad.runtime.resolve import Pending
from webgrad.wgsl import program_from_source

COMMANDS = 1000
REPEATS = 31
WEIGHTS = 400

SOURCE = """
struct Params {{ count: u32, factor: f32 }}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(1)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {{
    if (id.x < p.count) {{ y[id.x] = x[id.x] * p.factor + w[id.x] + {}.0; }}
}}
"""


class Work:
    """1,000 dependent commands over four kernels, each result dropped as soon as the next is recorded."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.pipelines = [
            device.pipeline(program_from_source(SOURCE.format(n), label=f"scale {n}")) for n in range(4)
        ]
        self.params = [struct.pack("<If", 1, 1.0 + n * 1e-6) for n in range(COMMANDS)]
        self.input = device.upload(np.ones(64, np.float32))
        self.weights = [device.upload(np.ones(64, np.float32)) for _ in range(WEIGHTS)]
        self.usual = self.mix(0)

    def mix(self, seed: int) -> list[tuple[int, Buffer]]:
        """Each command's size of result and, for every third, a weight; another seed, another queue."""
        random = np.random.default_rng(seed)
        sizes = np.where(random.random(COMMANDS) < 0.9, 256, 512).tolist()
        weights = iter(random.permutation(WEIGHTS))
        return [(size, self.input if n % 3 else self.weights[next(weights)]) for n, size in enumerate(sizes)]

    def record(self, mix: list[tuple[int, Buffer]]) -> Buffer:
        allocate, dispatch = self.device.queue.allocate, self.device.queue.dispatch
        value = self.input
        for n, (size, weight) in enumerate(mix):
            result = allocate(size)
            dispatch(self.pipelines[n & 3], (value, weight, result), self.params[n], (1, 1, 1))
            value = result
        return value


def median_time(run: Callable[[], object], device: Device, repeats: int = REPEATS) -> float:
    """Median seconds of `run`, with the GPU idle before each."""
    times = []
    for _ in range(repeats):
        device.queue.context.native.wait()
        start = time.perf_counter()
        kept = run()
        times.append(time.perf_counter() - start)
        del kept
    return statistics.median(times)


def bare_loop(device: Device, work: Work) -> Callable[[], None]:
    """The same commands, handles at hand, through wgpu's cffi functions."""
    rows = resolved_rows(device, work)
    native = device.queue.context.native
    params = [ffi.from_buffer(each) for each in work.params]
    commands = [
        (row.pipeline.handle, row.group.handle, data, row.params_size)
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
        for pipeline, group, data, size in commands:
            set_pipeline(compute_pass, pipeline)
            set_group(compute_pass, 0, group, 0, ffi.NULL)
            set_immediates(compute_pass, 0, data, size)
            dispatch(compute_pass, 1, 1, 1)
        lib.wgpuComputePassEncoderEnd(compute_pass)
        finished = lib.wgpuCommandEncoderFinish(encoder, ffi.NULL)
        lib.wgpuQueueSubmit(native.queue, 1, ffi.new("WGPUCommandBuffer[1]", [finished]))
        lib.wgpuComputePassEncoderRelease(compute_pass)
        lib.wgpuCommandEncoderRelease(encoder)
        lib.wgpuCommandBufferRelease(finished)

    return run


def newest_resolved(device: Device) -> object:
    return list(device.queue.context.resolved._queues.values())[-1][-1]


def resolved_rows(device: Device, work: Work) -> list[object]:
    with device.queue.hold():
        kept = work.record(work.usual)
    device.flush()
    del kept
    return newest_resolved(device).prepared.rows


def main() -> int:
    device = open_device("webgpu")
    assert isinstance(device, Device)
    work = Work(device)
    queue = device.queue
    bare = bare_loop(device, work)
    resolved = newest_resolved(device)
    pending = Pending()
    pending.params = work.params

    def replay() -> None:
        queue.context.submit(queue._encode(resolved, pending, ()))
        queue.context.throttle()

    def repeated() -> object:
        with queue.hold():
            value = work.record(work.usual)
        queue.flush()
        return value

    mixes = iter([work.mix(1 + n) for n in range(REPEATS + 5)])

    def first_time() -> object:
        mix = next(mixes)
        with queue.hold():
            value = work.record(mix)
        queue.flush()
        return value

    def eager() -> object:
        result = queue.allocate(256)
        queue.dispatch(work.pipelines[0], (work.input, work.weights[0], result), work.params[0], (1, 1, 1))
        queue.flush()
        return result

    for run in (bare, replay, repeated, first_time, eager):
        for _ in range(5):
            run()
    rows: list[tuple[str, float, str]] = []
    base = median_time(bare, device)
    before = dict(device.stats())
    rows.append(("replay of a resolved queue", median_time(replay, device) / base, "1.0"))
    rows.append(("repeated queue", median_time(repeated, device) / base, "2"))
    assert device.stats()["queues_resolved"] == before["queues_resolved"], "the repeated queue was not found"
    before = dict(device.stats())
    rows.append(("first time, pool warm", median_time(first_time, device) / base, "6"))
    after = device.stats()
    assert after["queues_resolved"] - before["queues_resolved"] >= REPEATS, "the queue was not new"
    groups = (after["bind_groups_created"] - before["bind_groups_created"]) / (REPEATS * COMMANDS)
    base = (base + median_time(bare, device)) / 2
    one = median_time(eager, device, 501)
    alone = median_time(replay, device)
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=spin)
    thread.start()
    beside = median_time(replay, device)
    stop.set()
    thread.join()
    print(f"Python {sys.version.split()[0]}, {device.info.name}, encoder {device.settings.encoder}")
    print(f"bare cffi loop, encode to submit        {base / COMMANDS * 1e6:6.2f} µs per command")
    for name, ratio, target in rows:
        print(
            f"{name:<38}  {ratio * base / COMMANDS * 1e6:6.2f} µs  {ratio:5.2f} × bare (target ≤ {target} ×)"
        )
    print(f"  bind groups made per command, first time: {groups:.2f}")
    print(f"one eager command, call to submitted    {one * 1e6:6.1f} µs (target ≤ 100 µs)")
    print(f"replay beside a busy thread             {beside / alone:6.2f} × alone (target ≤ 3 ×)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
