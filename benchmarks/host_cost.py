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
from collections.abc import Callable

import numpy as np
from common import bare_pass, gpu, median_seconds, report

from webgrad.runtime.buffers import Buffer
from webgrad.runtime.pending import Pending
from webgrad.runtime.pipelines import Pipeline
from webgrad.runtime.submission import encode
from webgrad.runtime.webgpu import Device
from webgrad.wgsl import program_from_source

COMMANDS = 1000
REPEATS = 31
WEIGHTS = 2000  # so many that a new queue needs new bind groups for a fifth of its commands

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
        self.start = device.upload(np.ones(64, np.float32))
        self.input = device.upload(np.ones(64, np.float32))
        self.weights = [device.upload(np.ones(64, np.float32)) for _ in range(WEIGHTS)]
        self.usual = self.mix(0)

    def mix(self, seed: int) -> list[tuple[Pipeline, Buffer, int, bytes]]:
        """Each command's kernel, weight (every third its own), size and params; a seed, a queue."""
        random = np.random.default_rng(seed)
        sizes = np.where(random.random(COMMANDS) < 0.9, 256, 512).tolist()
        weights = iter(random.permutation(WEIGHTS))
        return [
            (
                self.pipelines[n & 3],
                self.input if n % 3 else self.weights[next(weights)],
                size,
                self.params[n],
            )
            for n, size in enumerate(sizes)
        ]

    def record(self, mix: list[tuple[Pipeline, Buffer, int, bytes]]) -> Buffer:
        value = self.start
        with self.device.queue.hold() as recorder:
            compute = recorder.compute
            for pipeline, weight, size, params in mix:
                value = compute(pipeline, (value, weight), size, params)
        return value


def times(run: Callable[[], object], device: Device, repeats: int = REPEATS) -> float:
    """Median seconds of `run`, with the GPU idle before each."""
    return median_seconds(run, repeats, device.queue.context.native.wait)


def ratio(run: Callable[[], object], base: Callable[[], object], device: Device) -> tuple[float, float]:
    """Median seconds of `run`, and how many times the median of `base` that is, the two taking turns."""
    pairs = [(times(run, device, 1), times(base, device, 1)) for _ in range(REPEATS)]
    own, other = (statistics.median(each) for each in zip(*pairs, strict=True))
    return own, own / other


def bare_loop(device: Device, work: Work) -> Callable[[], None]:
    """The same commands, handles at hand, through wgpu's cffi functions."""
    return bare_pass(device.queue.context.native, resolved_rows(device, work), work.params)


def newest_resolved(device: Device) -> object:
    return list(device.queue.context.resolved._queues.values())[-1][-1]


def resolved_rows(device: Device, work: Work) -> list[object]:
    kept = work.record(work.usual)
    device.flush()
    del kept
    return newest_resolved(device).prepared.rows


def main() -> int:
    device = gpu()
    work = Work(device)
    queue = device.queue
    bare = bare_loop(device, work)
    resolved = newest_resolved(device)
    pending = Pending(())
    pending.params = work.params

    def replay() -> None:
        queue.context.submit(encode(queue, resolved, pending, ()))
        queue.context.throttle()

    def repeated() -> object:
        value = work.record(work.usual)
        queue.flush()
        return value

    mixes = iter([work.mix(1 + n) for n in range(REPEATS + 5)])

    def first_time() -> object:
        mix = next(mixes)
        value = work.record(mix)
        queue.flush()
        return value

    def eager() -> object:
        result = queue.compute(work.pipelines[0], (work.input, work.weights[0]), 256, work.params[0])
        queue.flush()
        return result

    def compare(name: str, run: Callable[[], object], most: float) -> bool:
        seconds, factor = ratio(run, bare, device)
        value = f"{factor:.2f} × ({seconds / COMMANDS * 1e6:.1f} µs)"
        return report(f"{name}, × the bare loop", value, f"≤ {most} ×", factor <= most)

    for run in (bare, replay, repeated, first_time, eager):
        for _ in range(5):
            run()
    base = times(bare, device)
    print(f"bare cffi loop, encode to submit: {base / COMMANDS * 1e6:.2f} µs per command")
    good = [compare("replay of a resolved queue", replay, 1.0), compare("repeated queue", repeated, 2.0)]
    before = device.stats()
    good.append(compare("first time, pool warm", first_time, 6.0))
    after = device.stats()
    assert after["queues_resolved"] - before["queues_resolved"] == REPEATS, "a queue was not new"
    groups = (after["bind_groups_created"] - before["bind_groups_created"]) / (REPEATS * COMMANDS)
    print(f"      of its commands {groups:.0%} needed a new bind group")
    one = times(eager, device, 501)
    good.append(
        report("one eager command, call to submitted", f"{one * 1e6:.0f} µs", "≤ 100 µs", one <= 100e-6)
    )
    slowed = beside_a_busy_thread(replay, device)
    good.append(report("replay beside a busy thread, × alone", f"{slowed:.2f} ×", "≤ 3 ×", slowed <= 3))
    return 0 if all(good) else 1


def beside_a_busy_thread(run: Callable[[], object], device: Device) -> float:
    """How many times longer `run` takes while another thread computes."""
    alone = times(run, device)
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=spin)
    thread.start()
    beside = times(run, device)
    stop.set()
    thread.join()
    return beside / alone


if __name__ == "__main__":
    sys.exit(main())
