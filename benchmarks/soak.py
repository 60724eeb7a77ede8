"""A million dispatches: resident memory and native objects must stay flat (± 1 %) after the warm-up.

A mix of lengths and sizes, uploads, read-backs, dropped results and evictions, the same in every 20,000
dispatches. Usage: soak.py [dispatches]
"""

from __future__ import annotations

import gc
import struct
import sys
import time

from common import gpu, inline_dispatches, report, resident_bytes

inline_dispatches()

import numpy as np  # noqa: E402

from webgrad.runtime.native import native_object_counts  # noqa: E402
from webgrad.wgsl import program_from_source  # noqa: E402

DISPATCHES, CHUNK, WARM_UP = 1_000_000, 20_000, 5

SOURCE = """
struct Params { count: u32, factor: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(8)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.count) { y[id.x] = x[id.x] * p.factor; }
}
"""


def farthest(values: list[int]) -> str:
    return f"{max((value / values[0] - 1 for value in values), key=abs):+.2%}"


def flat(values: list[int]) -> bool:
    return all(abs(value / values[0] - 1) <= 0.01 for value in values)


def main(dispatches: int) -> int:
    device = gpu()
    pipeline = device.pipeline(program_from_source(SOURCE, label="scale"))
    memory, objects = [], []
    done = wrong = 0
    began = time.perf_counter()
    while done < dispatches:
        target = done + CHUNK
        random = np.random.default_rng(0)  # the same mix every time: what is left behind must be the same too
        device.queue.context.pool.clear()
        while done < target:
            length = int(random.integers(10, 200))  # lengths and sizes vary: some queues are new, some known
            start = random.random(int(random.integers(1, 64)) * 4, np.float32)
            value = device.upload(start)
            for _ in range(length):
                result = device.allocate(start.nbytes)
                device.dispatch(
                    pipeline,
                    (value, result),
                    struct.pack("<If", start.size, -1.0),
                    (-(-start.size // 8), 1, 1),
                )
                value = result
            done += length
            if length % 3 == 0:
                wrong += not np.array_equal(device.read(value).view(np.float32), start * (-1) ** length)
            elif length % 3 == 1:
                device.flush()
        device.synchronize()
        gc.collect()
        memory.append(resident_bytes())
        objects.append(sum(native_object_counts().values()))
    seconds = time.perf_counter() - began
    stats = device.stats()
    print(
        f"{stats['dispatches']:,} dispatches in {seconds:.0f} s, {stats['submissions']:,} submissions, "
        f"{stats['queues_resolved']:,} queues resolved, {stats['buffers_evicted']:,} buffers evicted"
    )
    steady_memory, steady_objects = memory[WARM_UP:], objects[WARM_UP:]
    print(
        f"resident memory: {steady_memory[0] >> 20} MiB warmed up, {steady_memory[-1] >> 20} MiB at the end"
    )
    print(f"native objects: {min(steady_objects)} to {max(steady_objects)}")
    good = [
        report(
            "resident memory, farthest from the first", farthest(steady_memory), "± 1 %", flat(steady_memory)
        ),
        report(
            "native objects, farthest from the first", farthest(steady_objects), "± 1 %", flat(steady_objects)
        ),
        report("wrong results", str(wrong), "0", wrong == 0),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else DISPATCHES))
